//! Which files count, what is laid over what, and what a project may not do.

use super::*;

use std::fs;

use tempfile::TempDir;

use crate::config::key::KEYS;

/// A home with a repository in it, and a working directory below that.
struct Place {
    root: TempDir,
    environment: BTreeMap<OsString, OsString>,
}

impl Place {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("home/repo/.git")).unwrap();
        fs::create_dir_all(root.path().join("home/repo/src")).unwrap();
        let home = root.path().join("home").into();
        Self { root, environment: [("HOME".into(), home)].into() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    fn set(&mut self, name: &str, value: &str) {
        self.environment.insert(name.into(), value.into());
    }

    /// The sources in the working directory; the system's file stands in the place as well.
    fn sources(&self) -> Sources {
        let mut sources = Sources::new(
            None,
            &self.path("home/repo/src"),
            &self.environment,
            ToolNames::default(),
        );
        sources.operator[0].path = self.path("etc/termgate.toml");
        sources
    }

    fn user(&self, text: &str) -> PathBuf {
        self.write("home/.config/termgate/termgate.toml", text)
    }

    fn project(&self, text: &str) -> PathBuf {
        self.write("home/repo/.termgate.toml", text)
    }

    fn problems(&self) -> Vec<String> {
        let error = self.sources().load().unwrap_err();
        let root = format!("{}/", self.root.path().display());
        error.0.iter().map(|problem| problem.to_string().replace(&root, "")).collect()
    }
}

fn key(name: &str) -> &'static ConfigKey {
    ConfigKey::find(name).unwrap()
}

#[test]
fn without_any_file_the_defaults_hold() {
    let effective = Place::new().sources().load().unwrap();
    assert_eq!(effective.config, Config::built_in());
    assert!(KEYS.iter().all(|key| *effective.origin(key) == ValueOrigin::Default));
}

#[test]
fn each_layer_is_laid_over_those_before_it() {
    let mut place = Place::new();
    let key = key("lease.ttl_ms");
    let origin = |place: &Place, flags: Vec<Flag>| {
        let effective = place.sources().with_flags(flags).load().unwrap();
        (key.value(&effective.config), effective.origin(key).to_string())
    };
    let at = |path: PathBuf| format!("{}:1:7", path.display());
    let system = at(place.write("etc/termgate.toml", "lease.ttl_ms = 9001"));
    assert_eq!(origin(&place, vec![]), (Value::Number(9_001), system));
    let user = at(place.user("lease.ttl_ms = 9002"));
    assert_eq!(origin(&place, vec![]), (Value::Number(9_002), user));
    let project = at(place.project("lease.ttl_ms = 8003"));
    assert_eq!(origin(&place, vec![]), (Value::Number(8_003), project));
    place.set("TERMGATE_LEASE__TTL_MS", "9004");
    let variable = "TERMGATE_LEASE__TTL_MS".to_owned();
    assert_eq!(origin(&place, vec![]), (Value::Number(9_004), variable));
    let flag = Flag { name: "--flag", key: "lease.ttl_ms", value: Value::Number(9_005) };
    assert_eq!(origin(&place, vec![flag]), (Value::Number(9_005), "--flag".to_owned()));
}

#[test]
fn a_group_that_the_machine_does_not_have_is_a_problem_of_the_value_that_holds() {
    let mut place = Place::new();
    let file = place.user("[sockets]\nclients = 'root'\nobservers = 'no-such-group'");
    let [problem] = &place.problems()[..] else { panic!("one problem") };
    let at = "home/.config/termgate/termgate.toml:3:1: sockets.observers: ";
    assert!(problem.starts_with(at), "{problem}");
    assert!(problem.contains("no group \"no-such-group\""), "{problem}");
    let checked = place.sources().check(&file).unwrap_err();
    assert_eq!(checked.0.len(), 1, "{checked}");

    place.set("TERMGATE_SOCKETS__OBSERVERS", "*");
    let config = place.sources().load().unwrap().config;
    assert_eq!((&*config.sockets.clients, &*config.sockets.observers), ("root", "*"));
}

#[test]
fn a_project_opens_no_socket() {
    let place = Place::new();
    place.project("sockets.observers = '*'");
    let problems = place.problems();
    assert!(problems[0].contains("only the operator may set this"), "{problems:?}");
}

#[test]
fn a_given_file_stands_in_for_those_of_the_system_and_the_user_only() {
    let place = Place::new();
    place.user("lease.auto = true");
    place.project("lease.ttl_ms = 5000");
    let given = place.write("my.toml", "sessions.max = 7");
    let directory = place.path("home/repo/src");
    let sources = Sources::new(Some(given), &directory, &place.environment, ToolNames::default());
    let config = sources.load().unwrap().config;
    assert!(!config.lease.auto);
    assert_eq!((config.sessions.own, config.lease.ttl.as_secs()), (7, 5));
}

#[test]
fn a_given_file_must_be_there_and_the_others_need_not() {
    let place = Place::new();
    let (gone, directory) = (place.path("gone.toml"), place.path("home"));
    let sources = Sources::new(Some(gone), &directory, &place.environment, ToolNames::default());
    let error = sources.load().unwrap_err().to_string();
    assert!(error.contains("gone.toml: cannot be read: "), "{error}");
    assert!(place.sources().load().is_ok());
    let none = Sources::new(None, &directory, &BTreeMap::new(), ToolNames::default());
    assert_eq!(none.files(), [ConfigSource { layer: Layer::System, path: SYSTEM.into() }]);
}

#[test]
fn the_users_file_is_where_xdg_says() {
    let mut place = Place::new();
    let user = |place: &Place| place.sources().files()[1].path.clone();
    assert_eq!(user(&place), place.path("home/.config/termgate/termgate.toml"));
    place.set("XDG_CONFIG_HOME", "relative");
    assert_eq!(user(&place), place.path("home/.config/termgate/termgate.toml"));
    place.set("XDG_CONFIG_HOME", "/elsewhere");
    assert_eq!(user(&place), Path::new("/elsewhere/termgate/termgate.toml"));
}

#[test]
fn a_project_may_tighten() {
    let place = Place::new();
    place.user("[lease]\nttl_ms = 20000\nauto = true\n");
    place.project(
        "lease = { ttl_ms = 20000, max_hold_ms = 1000, grace_ms = 0, auto = false }\n\
         screen.frame_interval_ms = 50\n\
         history = { rows = 100, bytes = 65536 }\n\
         sessions = { max = 3, keep_ended_ms = 0 }\n",
    );
    let config = place.sources().load().unwrap().config;
    assert!(!config.lease.auto);
    assert_eq!((config.lease.ttl.as_secs(), config.sessions.own), (20, 3));
    assert_eq!((config.frame_interval.as_millis(), config.screen.history.rows_max), (50, 100));
}

#[test]
fn what_a_project_would_widen_stays_as_it_is_and_is_told() {
    let place = Place::new();
    place.user("lease.ttl_ms = 20000");
    place.project(
        "[lease]\nttl_ms = 20001\nauto = true\n\
         [screen]\nframe_interval_ms = 7\n\
         [history]\nrows = 10001\nbytes = 65536\n",
    );
    let effective = place.sources().load().unwrap();
    let without = Place::new();
    without.user("[lease]\nttl_ms = 20000\n[history]\nbytes = 65536\n");
    assert_eq!(effective.config, without.sources().load().unwrap().config);
    let expected = [
        "2:1: lease.ttl_ms: not taken; the file of a project may only lower the 20000 that holds \
         without it",
        "3:1: lease.auto: not taken; the file of a project may only switch this off",
        "5:1: screen.frame_interval_ms: not taken; the file of a project may only raise the 8 that \
         holds without it",
        "7:1: history.rows: not taken; the file of a project may only lower the 10000 that holds \
         without it",
    ];
    let root = place.path("home/repo/.termgate.toml");
    let mut expected: Vec<_> =
        expected.iter().map(|line| format!("{}:{line}", root.display())).collect();
    let mut told: Vec<_> = effective.notes.iter().map(ToString::to_string).collect();
    told.sort();
    expected.sort();
    assert_eq!(told, expected);
}

#[test]
fn a_project_may_say_again_what_holds_already() {
    let place = Place::new();
    place.user("lease.auto = true");
    place.project("lease = { auto = true, ttl_ms = 30000 }");
    let effective = place.sources().load().unwrap();
    assert!(effective.config.lease.auto && effective.notes.is_empty(), "{effective:?}");
}

#[test]
fn a_project_may_never_touch_the_right_to_write_nor_what_protects_the_daemon() {
    for key in KEYS.iter().filter(|key| key.project.is_none()) {
        let place = Place::new();
        let value = key.value(&Config::built_in());
        place.project(&format!("{} = {value}", key.name));
        let expected = "only the operator may set this, not the file of a project";
        let told = place.problems();
        assert!(told.len() == 1 && told[0].ends_with(expected), "{told:?}");
    }
}

#[test]
fn the_environment_gives_back_what_a_project_tightened() {
    let mut place = Place::new();
    place.project("lease.ttl_ms = 1000");
    place.set("TERMGATE_LEASE__TTL_MS", "60000");
    assert_eq!(place.sources().load().unwrap().config.lease.ttl.as_secs(), 60);
}

#[test]
fn a_projects_file_is_the_nearest_up_to_the_root_of_the_repository() {
    let place = Place::new();
    let (home, below) = (place.path("home"), place.path("home/repo/src"));
    let found = || find_project(&below, Some(&home));
    place.write("home/.termgate.toml", "");
    assert_eq!(found(), None);
    let root = place.project("");
    assert_eq!(found(), Some(root));
    let nearest = place.write("home/repo/src/.termgate.toml", "");
    assert_eq!(found(), Some(nearest));
}

#[test]
fn outside_of_a_repository_it_is_looked_for_up_to_the_home_directory() {
    let place = Place::new();
    let (home, below) = (place.path("home"), place.path("home/notes/2026"));
    fs::create_dir_all(&below).unwrap();
    place.write(".termgate.toml", "");
    assert_eq!(find_project(&below, Some(&home)), None);
    let of_home = place.write("home/.termgate.toml", "");
    assert_eq!(find_project(&below, Some(&home)), Some(of_home));
}

#[test]
fn what_lies_above_a_directory_outside_of_home_and_repositories_is_nobodys() {
    let place = Place::new();
    let (home, below) = (place.path("home"), place.path("tmp/below"));
    fs::create_dir_all(&below).unwrap();
    place.write("tmp/.termgate.toml", "");
    assert_eq!(find_project(&below, Some(&home)), None);
    let own = place.write("tmp/below/.termgate.toml", "");
    assert_eq!(find_project(&below, Some(&home)), Some(own));
}

#[test]
fn mistakes_of_all_layers_are_told_at_once() {
    let mut place = Place::new();
    place.write("etc/termgate.toml", "a = 1");
    place.user("lease.ttl_ms = 1");
    place.project("allow_write = true");
    place.set("TERMGATE_LEASE__X", "1");
    assert_eq!(place.problems().len(), 4);
}

#[test]
fn one_file_is_checked_by_what_its_name_makes_of_it() {
    let place = Place::new();
    let check = |path: PathBuf| place.sources().check(&path);
    let text = "allow_write = true\n";
    assert!(check(place.write("my.toml", text)).is_ok());
    assert!(check(place.project(text)).is_err());
    assert!(check(place.path("gone.toml")).is_err());
    assert!(check(place.path("gone/.termgate.toml")).is_err());
}
