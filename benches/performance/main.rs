//! What termgate costs, measured beside yardsticks that take turns with it in the same run.
//!
//! `cargo bench` measures every row, `cargo bench -- NAME…` some, `cargo bench -- --list` lists them. With `--profile`,
//! each row is sampled as well, which makes it slower.

#![allow(clippy::print_stdout, reason = "a bench prints its results")]

mod rows;
mod support;

use std::process::ExitCode;

use termgate::core::nearest::nearest_of;

use crate::rows::{ROWS, Row};
use crate::support::machine::{load, machine};
use crate::support::profile::Profile;
use crate::support::report::Report;
use crate::support::{echo, hop, painter, pump, tmux, tool_server};

fn main() -> anyhow::Result<ExitCode> {
    // This program is also what some rows start as a yardstick or in a terminal.
    if tool_server::serve_if_asked()?
        || hop::serve_if_asked()?
        || echo::serve_if_asked()?
        || painter::serve_if_asked()?
        || pump::serve_if_asked()?
        || rows::memory::write_if_asked()?
    {
        return Ok(ExitCode::SUCCESS);
    }
    // Cargo adds `--bench`.
    let mut names: Vec<String> =
        std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if names.iter().any(|name| name == "--list") {
        ROWS.iter().for_each(|row| println!("{:<14} {}", row.name, row.about));
        return Ok(ExitCode::SUCCESS);
    }
    let all = names.len();
    names.retain(|name| name != "--profile");
    let profiles = names.len() < all;
    let rows = match chosen(&names) {
        Ok(rows) => rows,
        Err(error) => {
            eprintln!("{error}");
            return Ok(ExitCode::from(2));
        }
    };
    println!("{}; {}", machine(), tmux::version()?);
    let mut report = Report::default();
    for (index, row) in rows.iter().enumerate() {
        println!("\n## {} ({} of {}): {}", row.name, index + 1, rows.len(), row.about);
        let profile = profiles.then(|| Profile::begin(row.name)).transpose()?;
        report.measure(row.name, row.measure);
        if let Some(Err(error)) = profile.map(Profile::finish) {
            println!("\nno profile: {error:#}");
        }
        println!("\n{}", load());
    }
    Ok(report.finish())
}

/// The rows of these names, or all of them if there is no name.
fn chosen(names: &[String]) -> Result<Vec<&'static Row>, String> {
    if names.is_empty() {
        return Ok(ROWS.iter().collect());
    }
    let row = |name: &String| {
        let named = ROWS.iter().find(|row| row.name == name);
        named.ok_or_else(|| format!("unknown row `{name}`; {}", hint(name)))
    };
    names.iter().map(row).collect()
}

/// The rows whose names resemble this one, or contain it.
fn hint(name: &str) -> String {
    let names = || ROWS.iter().map(|row| row.name);
    let mut near = nearest_of(name, names(), 3);
    if near.is_empty() {
        near = names().filter(|row| row.contains(name)).collect();
    }
    match near.as_slice() {
        [] => "`cargo bench -- --list` lists all".to_owned(),
        near => format!("did you mean {}?", near.join(" or ")),
    }
}
