//! Programs of other users, as a daemon of root starts them. Other daemons cannot, which the accounts' tests show.

use std::collections::BTreeMap;
use std::os::unix::fs::{PermissionsExt, chown};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use tempfile::TempDir;
use tokio::time::timeout;

use super::*;
use crate::core::frame::{Frame, Size};
use crate::core::policy::PermittedAct;
use crate::core::shell::activity::{ActivityState, Evidence};
use crate::session::command::Accepted;
use crate::session::pty::command::Launch;
use crate::session::pty::environment::ClientEnvironment;
use crate::session::recover::tests::{caller, registry, registry_with_scripts};
use crate::session::tests::permitted::permit;

/// Nobody's number, and that of another group.
const NOBODY: u32 = 65_534;
const GAMES: u32 = 60;

/// An account whose home is a directory of the test; `None` where only root could use it.
fn account() -> Option<(Account, TempDir)> {
    if own_uid() != 0 {
        return None;
    }
    let home = tempfile::tempdir().unwrap();
    chown(home.path(), Some(NOBODY), Some(NOBODY)).unwrap();
    let account = Account {
        uid: NOBODY,
        gid: NOBODY,
        groups: vec![NOBODY, GAMES],
        name: "ada".to_owned(),
        home: home.path().to_owned(),
        shell: "/bin/sh".into(),
    };
    Some((account, home))
}

fn creation(registry: &Registry, launch: Launch, account: &Account) -> Creation {
    Creation {
        id: registry.fresh_id(),
        tenant: caller().tenant,
        name: None,
        launch,
        cwd: None,
        run_as: Some(account.clone()),
        sandbox: false,
        client: ClientEnvironment::default(),
        env: BTreeMap::new(),
        size: Size { rows: 5, cols: 20 },
        tags: Vec::new(),
        is_listed: false,
        record: false,
        first: None,
    }
}

async fn create(registry: &Registry, creation: Creation) -> Result<Session, CreateError> {
    let permit = permit(&caller(), PermittedAct::Create, None);
    registry
        .create(&permit, creation, Accepted::nothing(), |_| {})
        .await
        .map(|(session, _)| session)
}

async fn ended(session: &Session) {
    let mut frames = session.frames();
    frames.wait_for(|frame| frame.exit.value.is_some()).await.unwrap();
}

#[tokio::test]
async fn run_as_starts_the_program_as_a_login_of_that_user_would() {
    let Some((account, home)) = account() else { return };
    let registry = registry();
    let line = "{ id -u; id -ru; id -g; id -G; stat -c %u \"$(tty)\"; pwd; \
                echo $HOME $USER $LOGNAME $SHELL; } >told";
    let session =
        create(&registry, creation(&registry, Launch::Line(line.to_owned()), &account)).await;
    ended(&session.unwrap()).await;
    let told = fs::read_to_string(home.path().join("told")).unwrap();
    let path = home.path().display();
    let expected = format!(
        "{NOBODY}\n{NOBODY}\n{NOBODY}\n{NOBODY} {GAMES}\n{NOBODY}\n{path}\n{path} ada ada /bin/sh\n"
    );
    assert_eq!(told, expected);
}

#[tokio::test]
async fn run_as_starts_the_login_shell_of_that_user() {
    let Some((account, _home)) = account() else { return };
    let registry = registry();
    let session = create(&registry, creation(&registry, Launch::Shell, &account)).await.unwrap();
    assert_eq!(session.about().command, "/bin/sh");
    assert_eq!(session.about().confinement.user, Some(NOBODY));
}

/// The shared directory, which goes with the test if it came with it.
struct SharedScripts {
    were_there: bool,
}

impl Drop for SharedScripts {
    fn drop(&mut self) {
        if !self.were_there {
            let _ = fs::remove_dir_all(SHARED);
        }
    }
}

#[tokio::test]
async fn run_as_lets_shells_of_that_user_mark_their_prompts() {
    let Some((account, _home)) = account() else { return };
    let _shared = SharedScripts { were_there: Path::new(SHARED).exists() };
    let own = tempfile::tempdir().unwrap();
    let registry = registry_with_scripts(own.path().to_owned());
    for shell in ["bash", "zsh", "fish"] {
        if !Path::new("/bin").join(shell).exists() {
            continue;
        }
        let launch = Launch::Program { name: shell.to_owned(), args: vec!["-i".to_owned()] };
        let session = create(&registry, creation(&registry, launch, &account)).await.unwrap();
        let mut frames = session.frames();
        let is_marked = |frame: &Arc<Frame>| {
            let activity = &frame.activity.value;
            activity.state == ActivityState::Prompt && activity.evidence == Evidence::Osc133
        };
        let marked = frames.wait_for(is_marked);
        timeout(Duration::from_secs(30), marked).await.expect(shell).unwrap();
        assert_eq!(registry.scratch(&session).unwrap().owner, Some(NOBODY));
    }
}

#[tokio::test]
async fn run_as_judges_directories_and_programs_by_the_rights_of_that_user() {
    let Some((account, home)) = account() else { return };
    let registry = registry();
    let roots = tempfile::tempdir().unwrap();
    fs::set_permissions(roots.path(), PermissionsExt::from_mode(0o700)).unwrap();
    let tool = roots.path().join("tool");
    fs::write(&tool, "#!/bin/sh\n").unwrap();
    fs::set_permissions(&tool, PermissionsExt::from_mode(0o755)).unwrap();
    let shell = || creation(&registry, Launch::Line("true".to_owned()), &account);
    let elsewhere = Creation { cwd: Some(roots.path().to_owned()), ..shell() };
    let refused = create(&registry, elsewhere).await.unwrap_err().to_string();
    assert!(refused.ends_with(" is not a directory that user ada can enter"), "{refused}");
    let path = format!("{}:/bin", roots.path().display());
    let program = |name: &str| {
        let launch = Launch::Program { name: name.to_owned(), args: Vec::new() };
        let env = BTreeMap::from([("PATH".to_owned(), path.clone())]);
        Creation { env, ..creation(&registry, launch, &account) }
    };
    let refused = create(&registry, program("tool")).await.unwrap_err();
    assert!(matches!(refused, CreateError::Command(CommandError::NotFound { .. })), "{refused}");
    assert!(create(&registry, program("true")).await.is_ok());
    // Root still sees what it may see.
    assert!(tool.is_file() && Path::new(home.path()).is_dir());
}

#[tokio::test]
async fn a_session_that_ends_with_its_daemon_is_not_sandboxed() {
    let registry = registry();
    let launch = Launch::Line("true".to_owned());
    let root = Account::of_uid(0).unwrap();
    let asked = Creation { run_as: None, sandbox: true, ..creation(&registry, launch, &root) };
    let refused = create(&registry, asked).await.unwrap_err();
    assert!(matches!(refused, CreateError::Sandbox(SandboxError::NoShim)), "{refused}");
}
