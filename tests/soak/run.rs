//! A soak from its beginning to its verdict.

use std::fs;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};

use crate::harness::dice::Dice;
use crate::harness::waiting::LOOK;
use crate::outlive::observer::Observer;
use crate::soak::fault::{Fault, Mischief};
use crate::soak::growth::Samples;
use crate::soak::plan::Plan;
use crate::soak::puppet::Puppet;
use crate::soak::report::Report;
use crate::soak::world::World;
use crate::soak::{printer, users};

/// How soon an observer knows all again.
const AGREES: Duration = Duration::from_secs(20);
const MINUTE: Duration = Duration::from_secs(60);

/// Runs one, prints what it found, and says whether all is as it must be.
pub(crate) fn run(plan: Plan) -> ExitCode {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .enable_all()
        .build()
        .expect("there is memory for two threads");
    let good = runtime.block_on(soak(plan));
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn soak(plan: Plan) -> bool {
    let mut dice = Dice::told("SOAK_SEED");
    let (world, daemon) = World::begin(plan).await;
    let samples = Arc::new(Samples::default());
    let mut users = Users::start(&world, &mut dice);
    let measured = (Arc::clone(&world), Arc::clone(&samples));
    users.others.spawn(async move { measured.1.take(&measured.0).await });
    let told = (Arc::clone(&world), Arc::clone(&samples));
    users.others.spawn(async move { tell(&told.0, &told.1).await });
    let calm = &world.printers[1].session;
    let is_line = |row: u64, text: &str| {
        let whole = printer::line(row);
        assert!(whole.starts_with(text), "row {row} is {text:?} and not {whole:?}");
    };
    let observer = Observer::start(world.home.gateway(), calm.clone(), is_line);
    let mut mischief = Mischief {
        world: &world,
        dice: Dice::seeded(dice.below(u64::MAX)),
        daemon: Some(daemon),
        observer: Puppet::start(&world, "observe", &world.printers[0].session),
        holder: Puppet::start(&world, "hold", &world.held),
        slowest_start: Duration::ZERO,
    };
    let made = rage(&mut mischief).await;
    observer.agrees(&mut world.home.client().await, AGREES).await;
    observer.end().await;
    let Mischief { daemon, slowest_start, .. } = mischief;
    fs::write(world.home.path("stop"), "").unwrap();
    world.stops.store(true, std::sync::atomic::Ordering::Relaxed);
    users.settle(&world).await;
    if let Err(finding) = end(&world).await {
        world.finds(finding);
    }
    if let Some(daemon) = daemon {
        let (code, said) = daemon.ends().await;
        if code != Some(0) {
            world.finds(format!("the daemon ended with {code:?}: {said}"));
        }
    }
    Report { world: &world, samples: &samples, made: &made, slowest_start }.print()
}

/// Has one thing after the other go wrong, and gives back how often each did.
async fn rage(mischief: &mut Mischief<'_>) -> Vec<(Fault, usize)> {
    let world = mischief.world;
    let plan = &world.plan;
    let mut made: Vec<(Fault, usize)> = Fault::ALL.iter().map(|fault| (*fault, 0)).collect();
    let mut round = Vec::new();
    // A miniature lasts until each has happened.
    let is_missing = |made: &[(Fault, usize)]| {
        !plan.judges_figures
            && made.iter().any(|(fault, count)| *count == 0 && world.can_make(*fault))
    };
    while world.began.elapsed() < plan.span || is_missing(&made) {
        sleep(plan.between_faults).await;
        if round.is_empty() {
            round = Fault::ALL.to_vec();
        }
        let fault = round.swap_remove(mischief.dice.below(round.len() as u64) as usize);
        let spared = plan.judges_figures && world.began.elapsed() > plan.one_daemon_from();
        if (fault.ends_daemon() && spared) || !world.can_make(fault) {
            continue;
        }
        world.turn();
        let since = Instant::now();
        let mut outcome = mischief.make(fault).await;
        if outcome.is_ok() {
            outcome = mischief.all_are_there().await;
        }
        if let Err(finding) = outcome {
            world.finds(format!("{}: {finding}", fault.name()));
        }
        // Who was away is back by then, and has caught up.
        sleep(plan.between_faults / 10 + since.elapsed() / 2).await;
        world.turn();
        made.iter_mut().filter(|(made, _)| *made == fault).for_each(|(_, count)| *count += 1);
    }
    made
}

/// All who use the sessions.
struct Users {
    writers: JoinSet<Vec<(String, bool)>>,
    others: JoinSet<()>,
}

impl Users {
    fn start(world: &Arc<World>, dice: &mut Dice) -> Self {
        let mut users = Self { writers: JoinSet::new(), others: JoinSet::new() };
        for _ in 0..world.plan.readers {
            let (world, dice) = (Arc::clone(world), Dice::seeded(dice.below(u64::MAX)));
            users.others.spawn(async move { users::read(&world, dice).await });
        }
        for number in 0..world.plan.writers {
            let world = Arc::clone(world);
            users.others.spawn(async move { users::write(&world, &world.typed[number]).await });
        }
        for number in 0..world.plan.churners {
            let world = Arc::clone(world);
            users.writers.spawn(async move { users::churn(&world, number).await });
        }
        for _ in 0..world.plan.observers {
            let world = Arc::clone(world);
            users.others.spawn(async move { users::observe(&world).await });
        }
        for number in 0..world.printers.len() {
            let world = Arc::clone(world);
            let reading = async move { printer::read_all(&world, &world.printers[number]).await };
            users.others.spawn(reading);
        }
        users
    }

    /// Waits for all of them. One that panicked found something.
    async fn settle(mut self, world: &World) {
        let mut lines = Vec::new();
        while let Some(ended) = self.writers.join_next().await {
            match ended {
                Ok(wrote) => lines.extend(wrote),
                Err(error) => world.finds(format!("a writer gave up: {error}")),
            }
        }
        users::settle_churn(world, lines).await;
        while let Some(ended) = self.others.join_next().await {
            if let Err(error) = ended {
                world.finds(format!("a client gave up: {error}"));
            }
        }
    }
}

/// Prints how it goes, once a minute.
async fn tell(world: &World, samples: &Samples) {
    let mut told = Duration::ZERO;
    while world.goes_on() {
        sleep(LOOK * 50).await;
        if world.began.elapsed() >= told + MINUTE {
            told += MINUTE;
            Report::print_minute(world, samples, told);
        }
    }
}

/// Ends the daemon as an operator does: the journal is sound, and no session is left.
async fn end(world: &World) -> Result<(), String> {
    let verified = world.printed("journal verify").await?;
    if !verified.contains("all hashes match") {
        return Err(format!("journal verify: {verified}"));
    }
    world.printed("stop").await?;
    let left = world.home.shims();
    if left.is_empty() { Ok(()) } else { Err(format!("shims are left: {left:?}")) }
}
