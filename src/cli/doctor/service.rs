//! Whether systemd keeps a daemon running. It only reads files.

use std::path::{Path, PathBuf};

use crate::cli::doctor::check::Check;
use crate::cli::doctor::ground::DoctorFacts;

/// Exists when systemd runs this machine.
const SYSTEMD: &str = "/run/systemd/system";
/// Contains a file for each user whose services run without a login.
const LINGER: &str = "/var/lib/systemd/linger";
/// The daemon's units: the first runs it, the second listens and starts it on demand.
const SERVICE: &str = "termgate.service";
const SOCKET: &str = "termgate.socket";
/// The link beside the units when the socket is enabled.
const ENABLED: &str = "sockets.target.wants/termgate.socket";
/// The system directories of user units.
const UNITS: [&str; 3] =
    ["/etc/systemd/user", "/usr/local/lib/systemd/user", "/usr/lib/systemd/user"];

/// The installed parts of the daemon as a user service.
#[derive(Debug)]
struct InstalledUnits {
    service: Option<PathBuf>,
    socket: Option<PathBuf>,
    /// Whether the socket listens from the login on.
    enabled: bool,
    /// Whether the user's services run without a login.
    lingers: bool,
}

/// Whether the daemon is a user service, and whether that runs without a login.
pub(super) fn systemd(ground: &DoctorFacts) -> Vec<Check> {
    const NAME: &str = "service";
    if !Path::new(SYSTEMD).exists() {
        return vec![Check::ok(NAME, "systemd does not run here")];
    }
    let user = ground.variable("USER").or_else(|| ground.variable("LOGNAME"));
    let lingers = user.is_some_and(|user| Path::new(LINGER).join(user).exists());
    vec![told(NAME, &InstalledUnits::among(&places(ground), lingers))]
}

impl InstalledUnits {
    /// Finds the parts in these directories; an earlier directory takes precedence.
    fn among(places: &[PathBuf], lingers: bool) -> Self {
        let find = |name| places.iter().map(|place| place.join(name)).find(|path| path.exists());
        let enabled = places.iter().any(|place| place.join(ENABLED).is_symlink());
        Self { service: find(SERVICE), socket: find(SOCKET), enabled, lingers }
    }
}

fn told(name: &'static str, installed: &InstalledUnits) -> Check {
    const BOTH: &str = "Install both units, as docs/SYSTEMD.md says.";
    let InstalledUnits { service, socket, enabled, lingers } = installed;
    match (service, socket) {
        (None, None) => Check::ok(name, "not installed; commands start the daemon as needed"),
        (Some(there), None) => {
            Check::warn(name, format!("{} cannot start without {SOCKET}", there.display()), BOTH)
        }
        (None, Some(there)) => {
            let found = format!("{} has nothing to start without {SERVICE}", there.display());
            Check::warn(name, found, BOTH)
        }
        (Some(_), Some(socket)) if !enabled => Check::warn(
            name,
            format!("{} does not listen after you log in", socket.display()),
            "To have it listen, run: systemctl --user enable --now termgate.socket",
        ),
        (Some(service), Some(_)) if *lingers => {
            Check::ok(name, format!("{}, also without a login session", service.display()))
        }
        (Some(service), Some(_)) => Check::warn(
            name,
            format!("{}, until you log out", service.display()),
            "To keep it running, run: loginctl enable-linger",
        ),
    }
}

/// The directories of this user's units, the user's own first.
fn places(ground: &DoctorFacts) -> Vec<PathBuf> {
    let below = |variable: &str, usual: &str| {
        let given = ground.variable(variable).map(PathBuf::from);
        given.or_else(|| Some(Path::new(ground.variable("HOME")?).join(usual)))
    };
    let own = [below("XDG_CONFIG_HOME", ".config"), below("XDG_DATA_HOME", ".local/share")];
    let own = own.into_iter().flatten().map(|home| home.join("systemd/user"));
    own.chain(UNITS.map(PathBuf::from)).collect()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;
    use crate::cli::doctor::check::Verdict;

    /// The shipped units of these names, copied to where a user has them.
    fn units(names: &[&str]) -> (tempfile::TempDir, Vec<PathBuf>) {
        let directory = tempfile::tempdir().unwrap();
        for name in names {
            let shipped = Path::new(env!("CARGO_MANIFEST_DIR")).join("config").join(name);
            fs::copy(shipped, directory.path().join(name)).unwrap();
        }
        let places = vec![PathBuf::from("/nowhere"), directory.path().to_owned()];
        (directory, places)
    }

    fn check(places: &[PathBuf], lingers: bool) -> Check {
        told("service", &InstalledUnits::among(places, lingers))
    }

    #[test]
    fn a_service_that_ends_with_the_login_is_a_warning() {
        let (directory, places) = units(&["termgate.service", "termgate.socket"]);
        let wants = directory.path().join("sockets.target.wants");
        fs::create_dir(&wants).unwrap();
        symlink(directory.path().join("termgate.socket"), wants.join("termgate.socket")).unwrap();
        assert_eq!(check(&places, true).verdict, Verdict::Ok);
        let until = check(&places, false);
        assert_eq!(until.verdict, Verdict::Warn);
        assert!(until.advice.is_some_and(|advice| advice.contains("enable-linger")));
    }

    #[test]
    fn units_that_were_not_enabled_are_a_warning_with_the_command() {
        let (_directory, places) = units(&["termgate.service", "termgate.socket"]);
        let idle = check(&places, true);
        assert_eq!(idle.verdict, Verdict::Warn);
        let enable = "systemctl --user enable --now termgate.socket";
        assert!(idle.advice.is_some_and(|advice| advice.contains(enable)));
    }

    #[test]
    fn one_unit_without_the_other_is_a_warning_and_none_is_fine() {
        for (there, missing) in
            [("termgate.service", "termgate.socket"), ("termgate.socket", "termgate.service")]
        {
            let (_directory, places) = units(&[there]);
            let half = check(&places, true);
            assert_eq!(half.verdict, Verdict::Warn, "{there}");
            assert!(half.found.contains(missing), "{half:?}");
        }
        let (_directory, places) = units(&[]);
        assert_eq!(check(&places, false).verdict, Verdict::Ok);
    }
}
