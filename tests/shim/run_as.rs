//! Programs of another user: what they are, and what they cannot do to the process that holds their terminal.

use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use nix::unistd::Uid;
use termgate::session::pty::account::Account;
use termgate::session::pty::command::Launch;
use termgate::session::pty::sandbox::{SandboxPlaces, SandboxRequest};
use termgate::session::pty::spawn::SpawnError;

use crate::shim::harness::{Kind, Terminal, environment, read_to_end, spec};

const NOBODY: u32 = 65_534;

/// What a program tells of itself and of its parent, which holds its terminal.
const TELLS: &str = "id -u; id -G; stat -Lc %u /proc/self/fd/0; \
    kill -0 $PPID 2>/dev/null && echo signals; \
    cat /proc/$PPID/environ >/dev/null 2>&1 && echo reads; \
    ls /proc/$PPID/fd >/dev/null 2>&1 && echo lists; \
    grep CapEff /proc/self/status; echo done";

/// `None` where only root could use it.
fn nobody() -> Option<Account> {
    Uid::effective().is_root().then(|| Account {
        uid: NOBODY,
        gid: NOBODY,
        groups: vec![NOBODY],
        name: "nobody".to_owned(),
        home: "/".into(),
        shell: "/bin/sh".into(),
    })
}

#[tokio::test]
async fn run_as_gives_a_program_no_right_to_the_process_that_holds_its_terminal() {
    let Some(nobody) = nobody() else { return };
    for kind in Kind::BOTH {
        let mut spec = spec(Launch::Line(TELLS.to_owned()));
        spec.user = nobody.program_user();
        let terminal = Terminal::open(kind, &spec).unwrap();
        let told = read_to_end(&terminal).await;
        let expected =
            ["65534", "65534", "65534", "CapEff:\t0000000000000000", "done"].map(str::to_owned);
        assert_eq!(told.lines().map(str::to_owned).collect::<Vec<_>>(), expected, "{kind:?}");
    }
}

#[tokio::test]
async fn run_as_starts_nothing_where_that_user_cannot_be() {
    let Some(nobody) = nobody() else { return };
    let roots = tempfile::tempdir().unwrap();
    fs::set_permissions(roots.path(), PermissionsExt::from_mode(0o700)).unwrap();
    for kind in Kind::BOTH {
        let mut spec = spec(Launch::Line(format!("id -u >{}/told", roots.path().display())));
        spec.user = nobody.program_user();
        spec.cwd = roots.path().to_owned();
        let refused = Terminal::open(kind, &spec).unwrap_err();
        assert!(matches!(refused, SpawnError::Program { .. }), "{kind:?}: {refused}");
        assert_eq!(fs::read_dir(roots.path()).unwrap().count(), 0, "{kind:?}");
    }
}

#[tokio::test]
async fn run_as_and_a_sandbox_hold_together() {
    let Some(nobody) = nobody() else { return };
    let (places, environment) = (SandboxPlaces::default(), environment());
    let request =
        SandboxRequest { places: &places, readable: &[], uid: NOBODY, environment: &environment };
    let Ok(words) = nobody.look(|| request.words()).unwrap() else {
        eprintln!("bubblewrap is not there, so no sandbox was tried");
        return;
    };
    let mut spec = spec(Launch::Line(format!("{TELLS}; cat /proc/1/comm")));
    spec.user = nobody.program_user();
    spec.sandbox = words;
    let terminal = match Terminal::open(Kind::Held, &spec) {
        Ok(terminal) => terminal,
        Err(SpawnError::Sandbox(error)) => {
            eprintln!("bubblewrap makes no sandbox here ({error}), so none was tried");
            return;
        }
        Err(error) => panic!("{error}"),
    };
    let told = read_to_end(&terminal).await;
    // The first process of the sandbox is its own, which it may signal, but neither read nor end.
    let told: Vec<_> = told.lines().map(OsString::from).collect();
    let expected = [
        "65534",
        "65534",
        "65534",
        "signals",
        "CapEff:\t0000000000000000",
        "done",
        "termgate-inside",
    ];
    assert_eq!(told, expected.map(OsString::from));
}
