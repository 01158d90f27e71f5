//! The manual: whether it is one, and whether it tells of every command.

use std::process::Output;

use crate::harness::home::{Home, is_installed};

/// The page as `man` shows it, with what it complains of on standard error.
fn rendered(home: &Home, page: &std::path::Path) -> Output {
    let (program, options) = if is_installed("mandoc") {
        ("mandoc", &["-T", "utf8", "-W", "error"][..])
    } else {
        ("groff", &["-man", "-Tutf8", "-ww"][..])
    };
    home.command(program).args(options).arg(page).output().unwrap()
}

#[test]
fn every_command_has_a_page_that_renders_without_complaint() {
    if !is_installed("mandoc") && !is_installed("groff") {
        return;
    }
    let home = Home::new();
    let directory = home.path("home/man/man1");
    home.printed(&format!("man --out {}", directory.display()));
    let mut pages: Vec<_> =
        std::fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    let name = |page: &std::path::PathBuf| page.file_name().unwrap().to_str().unwrap().to_owned();
    let names: Vec<String> = pages.iter().map(name).collect();
    for expected in ["termgate.1", "termgate-new.1", "termgate-lease-acquire.1", "termgate-man.1"] {
        assert!(names.iter().any(|name| name == expected), "{expected} is not among {names:?}");
    }
    for page in &pages {
        let output = rendered(&home, page);
        assert!(output.status.success() && output.stderr.is_empty(), "{page:?}: {output:?}");
        assert!(!output.stdout.is_empty(), "{page:?}");
    }
}

#[test]
fn the_page_on_standard_output_names_the_commands_and_the_exit_codes() {
    let home = Home::new();
    let page = home.printed("man");
    assert!(page.starts_with(".ie"), "{page:.40}");
    for part in [".TH termgate 1", "termgate\\-new(1)", "Exit codes"] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

#[test]
fn a_place_where_no_page_can_be_written_is_told() {
    let home = Home::new();
    let output = home.run("man --out /proc/man");
    assert_eq!(output.status.code(), Some(2));
    assert!(
        String::from_utf8_lossy(&output.stderr).contains("--out: cannot write into /proc/man"),
        "{output:?}"
    );
}
