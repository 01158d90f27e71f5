//! How many instructions the paths of agents and observers take, from request to answer, beside the figures in
//! `tests/instructions/figures.toml`.
//!
//! Clients, daemon and session are tasks of one thread, time is paused, and the terminal is in memory. So a count is
//! the same each time.

#[path = "../../../tests/instructions/counting.rs"]
mod counting;
mod in_memory;

use std::ops::Range;
use std::time::Duration;

use serde_json::json;
use tokio::runtime::{Builder, Runtime};
use tokio::time::sleep;

use crate::transport::tests::instructions::counting::check;
use crate::transport::tests::instructions::in_memory::{AgentInMemory, Audience};

/// The time between two acts: longer than the time between two frames.
const PAUSE: Duration = Duration::from_millis(20);
/// How often the path is taken before it is counted, so that nothing is done for the first time.
const BEFORE: usize = 2;
/// How often the path is taken that is counted.
const COUNTED: usize = 20;
const OBSERVERS: usize = 100;

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_all().start_paused(true).build().unwrap()
}

/// Checks what an agent does. `act` is given the number of the act.
fn check_agent(path: &str, act: impl AsyncFn(&mut AgentInMemory, usize)) {
    check(path, || {
        let runtime = runtime();
        let mut agent = runtime.block_on(AgentInMemory::at_prompt());
        let acts = async |agent: &mut AgentInMemory, numbers: Range<usize>| {
            for number in numbers {
                act(agent, number).await;
                sleep(PAUSE).await;
            }
        };
        runtime.block_on(acts(&mut agent, 0..BEFORE));
        move || runtime.block_on(acts(&mut agent, BEFORE..BEFORE + COUNTED))
    });
}

/// An agent sends a few characters, and reads the screen that shows them.
#[test]
fn send_then_read() {
    check_agent("send_then_read", async |agent, number| {
        let text = format!("w{number};");
        agent.call("send_text", json!({"session": agent.id, "text": text})).await;
        let screen = agent.call("read_screen", json!({"session": agent.id})).await;
        assert!(screen.contains(&text), "{screen}");
    });
}

/// An agent sends a line, and is answered with the rows that it changed.
#[test]
fn step() {
    check_agent("step", async |agent, _| {
        let until = json!({"text": "row 9 of the output"});
        let line = json!({"session": agent.id, "text": "make", "enter": true, "until": until});
        let answer = agent.call("send_text", line).await;
        assert!(answer.contains(r#""outcome":"matched""#), "{answer}");
    });
}

/// An agent runs a command in a shell.
#[test]
fn run_in_shell() {
    check_agent("run_in_shell", async |agent, _| {
        let answer = agent.call("run", json!({"session": agent.id, "command": "make"})).await;
        assert!(answer.contains(r#""exit_code":0"#), "{answer}");
    });
}

/// A row changes, and each observer is sent the delta.
#[test]
fn fan_out() {
    check("fan_out", || {
        let runtime = runtime();
        let mut audience = runtime.block_on(Audience::of(OBSERVERS));
        let changes = async |audience: &mut Audience, times: usize| {
            for _ in 0..times {
                audience.see_change().await;
                sleep(PAUSE).await;
            }
        };
        runtime.block_on(changes(&mut audience, BEFORE));
        move || runtime.block_on(changes(&mut audience, COUNTED))
    });
}
