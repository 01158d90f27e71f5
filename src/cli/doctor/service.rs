//! Whether the system would keep a daemon running; it only looks.

use std::path::{Path, PathBuf};

use crate::cli::doctor::check::Check;
use crate::cli::doctor::ground::Ground;

/// What shows that systemd runs this machine.
const SYSTEMD: &str = "/run/systemd/system";
/// Where systemd notes whose services go on without a login.
const LINGER: &str = "/var/lib/systemd/linger";
/// The name of the daemon's unit.
const UNIT: &str = "termgate.service";
/// Where systems keep the units of users.
const UNITS: [&str; 3] =
    ["/etc/systemd/user", "/usr/local/lib/systemd/user", "/usr/lib/systemd/user"];

/// Whether the daemon is a service of the user, and whether that goes on without a login.
pub(super) fn systemd(ground: &Ground) -> Vec<Check> {
    let user = ground.variable("USER").or_else(|| ground.variable("LOGNAME"));
    let lingers = user.is_some_and(|user| Path::new(LINGER).join(user).exists());
    vec![told(Path::new(SYSTEMD).exists(), unit(ground).as_deref(), lingers)]
}

fn told(systemd: bool, unit: Option<&Path>, lingers: bool) -> Check {
    const NAME: &str = "service";
    match (systemd, unit, lingers) {
        (false, _, _) => Check::ok(NAME, "systemd does not run here"),
        (true, None, _) => Check::ok(NAME, "not installed; commands start the daemon as needed"),
        (true, Some(unit), true) => {
            Check::ok(NAME, format!("{}, also while nobody is logged in", unit.display()))
        }
        (true, Some(unit), false) => Check::warn(
            NAME,
            format!("{}, until you log out", unit.display()),
            "To keep it running, run: loginctl enable-linger",
        ),
    }
}

fn unit(ground: &Ground) -> Option<PathBuf> {
    let config = ground.variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let home = ground.variable("HOME").map(|home| Path::new(home).join(".config"));
    let own = config.or(home).map(|config| config.join("systemd/user"));
    let places = own.into_iter().chain(UNITS.map(PathBuf::from));
    places.map(|place| place.join(UNIT)).find(|unit| unit.exists())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::doctor::check::Verdict;

    #[test]
    fn a_service_that_ends_with_the_login_is_a_warning() {
        let unit = Some(Path::new("/etc/systemd/user/termgate.service"));
        assert_eq!(told(true, unit, false).verdict, Verdict::Warn);
        assert_eq!(told(true, unit, true).verdict, Verdict::Ok);
        assert_eq!(told(true, None, false).verdict, Verdict::Ok);
        assert_eq!(told(false, unit, false).verdict, Verdict::Ok);
    }
}
