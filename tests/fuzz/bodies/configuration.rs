//! Configuration and policy files, and the file of tokens: values or errors that name a place, and what is printed reads back.

use std::path::Path;

use termgate::config::file::read;
use termgate::config::key::KEYS;
use termgate::config::problem::{Problem, ValueOrigin};
use termgate::config::{Config, policy, tokens};
use termgate::core::policy::rules::PolicyRules;
use termgate::surface::TOOL_NAMES;

pub fn check(data: &[u8]) {
    let Ok(text) = str::from_utf8(data) else { return };
    let path = Path::new("fuzzed.toml");
    let (given, problems) = read(text, path);
    check_places(text, &problems);
    check_places(text, &policy::read(text, path, TOOL_NAMES, &mut PolicyRules::default()));
    let mut config = Config::built_in();
    for setting in given {
        assert!(setting.key.kind.takes(&setting.value), "{setting:?}");
        setting.key.set(&mut config, setting.value.clone());
        assert_eq!(setting.key.value(&config), setting.value, "{}", setting.key.name);
    }
    let printed: String =
        KEYS.iter().map(|key| format!("{} = {}\n", key.name, key.value(&config))).collect();
    let (given, problems) = read(&printed, path);
    assert!(problems.is_empty(), "{problems:?} in\n{printed}");
    let mut again = Config::built_in();
    for setting in given {
        setting.key.set(&mut again, setting.value);
    }
    assert_eq!(again, config, "{printed}");
    check_tokens(text);
}

fn check_places(text: &str, problems: &[Problem]) {
    for problem in problems {
        let told = problem.to_string();
        assert!(!told.contains('\n'), "an error has one line: {told:?}");
        let ValueOrigin::File { at: Some(at), .. } = &problem.origin else {
            panic!("{told} has no place")
        };
        let line = text.split('\n').nth(at.line - 1).expect("the line exists");
        assert!((1..=line.chars().count() + 1).contains(&at.column), "{told}");
    }
}

fn check_tokens(text: &str) {
    match tokens::read(text) {
        Ok(read) => assert_eq!(tokens::read(&tokens::text(&read)).as_ref(), Ok(&read)),
        Err(problem) => assert!(!problem.is_empty() && !problem.contains('\n'), "{problem:?}"),
    }
}
