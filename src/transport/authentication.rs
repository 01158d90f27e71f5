//! Authentication by token: the first line of a connection may show one and so set its principal.
//!
//! Secrets appear in no log and no answer. A connection ends when its token leaves the file, changes or expires.

use std::borrow::Cow;
use std::fmt;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, UNIX_EPOCH};

use bytes::Bytes;
use rmcp::model::{ErrorCode, ErrorData, RequestId};
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::watch;
use tokio::time::timeout;
use tokio_util::task::AbortOnDropHandle;

use crate::core::ids::{PrincipalId, TenantId};
use crate::core::policy::{Door, Standing};
use crate::core::token::{Rejection, Secret, Token, TokenHash, TokenScope, UnixTime};
use crate::session::clock::Clock;
use crate::transport::connection::link::ClientLink;
use crate::transport::framing::lines::{LineInput, LineReader};
use crate::transport::framing::{AUTHENTICATE_METHOD, RawRequest, answer_line, check, error_line};
use crate::transport::limits::Limits;
use crate::transport::tokens::{FileStamp, TokenStore};
use crate::transport::unix::changes::Changes;
use crate::transport::unix::peer::Source;
use crate::wire::error::ErrorWire;

/// The JSON-RPC code of a rejected token, from the range for implementations.
const REJECTED: ErrorCode = ErrorCode(-32011);

/// The longest wait before the expiry is checked again, because the wall clock may be set.
const LOOK_INTERVAL: Duration = Duration::from_secs(3600);

/// Checks tokens. Clones share the state.
#[derive(Clone, Debug)]
pub struct Authority(Arc<AuthorityState>);

#[derive(Debug)]
struct AuthorityState {
    /// `None` when the user has no state directory, and so no tokens.
    store: Option<TokenStore>,
    own: TenantId,
    clock: Clock,
    /// Changes of the token file, watched since the first token was shown.
    news: Mutex<Option<FileWatch>>,
    /// Called when a token ends.
    on_end: OnEnd,
    /// The tasks that wait for the end of each shown token. After an edit of a token, both versions are here until the
    /// task of the old one has run.
    followed: Mutex<Vec<(Token, AbortOnDropHandle<()>)>>,
}

/// Receives a principal that may no longer write.
struct OnEnd(Box<dyn Fn(PrincipalId) + Send + Sync>);

impl fmt::Debug for OnEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("OnEnd")
    }
}

#[derive(Debug)]
struct FileWatch {
    changes: watch::Receiver<()>,
    _watching: AbortOnDropHandle<()>,
}

/// The right of a connection to continue while its token is valid.
#[derive(Debug)]
pub struct Pass {
    authority: Authority,
    token: Token,
    changes: watch::Receiver<()>,
    /// The version of the file in which the token was last found.
    seen: Mutex<Option<FileStamp>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ShownToken<'a> {
    #[serde(borrow)]
    token: Cow<'a, str>,
    #[serde(rename = "_meta")]
    _meta: Option<serde::de::IgnoredAny>,
}

/// The result for an accepted token.
#[derive(Debug, Serialize)]
struct Welcome {
    /// The principal's name, the same on every connection.
    principal: String,
    scope: &'static str,
}

impl Authority {
    /// Creates an authority for the tokens in `store`, all of tenant `own`. `on_end` receives the principal of each
    /// token that ends.
    pub fn new(
        store: Option<TokenStore>,
        own: TenantId,
        clock: Clock,
        on_end: impl Fn(PrincipalId) + Send + Sync + 'static,
    ) -> Self {
        let on_end = OnEnd(Box::new(on_end));
        let (news, followed) = (Mutex::new(None), Mutex::default());
        Self(Arc::new(AuthorityState { store, own, clock, news, on_end, followed }))
    }

    /// Determines the principal of a connection and answers a first line that shows a token.
    ///
    /// Returns `None` when the token is rejected. Any other first line stays to be read. The log names `source`.
    pub async fn introduce<R, W, G>(
        &self,
        link: &mut ClientLink<LineReader<R>, W, G>,
        standing: Standing,
        source: Source,
        limits: &Limits,
    ) -> Option<(Standing, Option<Pass>)>
    where
        R: AsyncRead + Unpin,
        W: AsyncWrite + Unpin,
    {
        let input = link.reader.next().await;
        let LineInput::Line(line) = &input else {
            link.reader.put_back(input);
            return Some((standing, None));
        };
        // A long line shows no token and is parsed elsewhere, so that it blocks no other client.
        let shown = line.is_short().then(|| shown(line.bytes(), limits)).flatten();
        let Some((id, shown)) = shown else {
            link.reader.put_back(input);
            return Some((standing, None));
        };
        let admitted = shown.and_then(|secret| self.admit(&standing, &secret));
        let (line, introduced) = match admitted {
            Ok(pass) => {
                link.reader.greeted();
                let standing = pass.standing(standing);
                (welcome(&id, &pass, &standing), Some((standing, Some(pass))))
            }
            Err(rejection) => {
                let connection = standing.caller.connection.0;
                tracing::info!(peer = %source, connection, %rejection, "a token was rejected");
                (refusal(&id, rejection), None)
            }
        };
        let written = timeout(limits.closing, link.writer.write_all(&line)).await;
        introduced.filter(|_| matches!(written, Ok(Ok(()))))
    }

    fn admit(&self, standing: &Standing, secret: &Secret) -> Result<Pass, Rejection> {
        if standing.managed {
            return Err(Rejection::InsideSession);
        }
        if standing.door == Door::Operator {
            return Err(Rejection::OperatorsDoor);
        }
        let hash = secret.hash();
        // Check first without a watch, so that an unknown token starts none.
        self.find(&hash)?;
        let changes = self.changes()?;
        let token = self.find(&hash)?;
        self.follow(&token, &changes);
        Ok(self.pass(token, changes))
    }

    fn pass(&self, token: Token, changes: watch::Receiver<()>) -> Pass {
        Pass { authority: self.clone(), token, changes, seen: Mutex::new(None) }
    }

    /// Calls `on_end` when a token ends, whether or not its owner is connected then.
    fn follow(&self, token: &Token, changes: &watch::Receiver<()>) {
        let mut followed = self.0.followed.lock().unwrap_or_else(PoisonError::into_inner);
        if followed.iter().any(|(it, _)| it == token) {
            return;
        }
        let (authority, pass) = (self.clone(), self.pass(token.clone(), changes.clone()));
        let following = tokio::spawn(async move {
            pass.ended().await;
            // First, so that a token that is back at once is followed again. This aborts only the current task, which
            // waits for nothing more.
            let mut followed = authority.0.followed.lock().unwrap_or_else(PoisonError::into_inner);
            followed.retain(|(it, _)| *it != pass.token);
            drop(followed);
            (authority.0.on_end.0)(pass.token.principal());
        });
        followed.push((token.clone(), AbortOnDropHandle::new(following)));
    }

    /// Finds the token with this hash in the current file.
    fn find(&self, hash: &TokenHash) -> Result<Token, Rejection> {
        let store = self.0.store.as_ref().ok_or(Rejection::Unknown)?;
        let tokens = store.read().map_err(|error| {
            tracing::error!(%error, "the tokens cannot be read");
            Rejection::Unreadable
        })?;
        tokens.find(self.now(), hash).cloned()
    }

    /// Subscribes to changes of the file, from now on.
    fn changes(&self) -> Result<watch::Receiver<()>, Rejection> {
        let store = self.0.store.as_ref().ok_or(Rejection::Unknown)?;
        let mut news = self.0.news.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(news) = news.as_ref().filter(|news| news.changes.has_changed().is_ok()) {
            let mut changes = news.changes.clone();
            changes.mark_unchanged();
            return Ok(changes);
        }
        let fresh = FileWatch::of(store).map_err(|error| {
            tracing::error!(%error, "the tokens cannot be watched");
            Rejection::Unreadable
        })?;
        let changes = fresh.changes.clone();
        *news = Some(fresh);
        Ok(changes)
    }

    fn now(&self) -> UnixTime {
        let since = self.0.clock.wall_time().duration_since(UNIX_EPOCH);
        UnixTime(since.unwrap_or_default().as_secs())
    }
}

impl FileWatch {
    /// Sends changes until the directory of the tokens is removed.
    fn of(store: &TokenStore) -> io::Result<Self> {
        // The daemon itself has files open in the same directory.
        let file = Changes::of_file_in_use(store.path())?;
        let (told, changes) = watch::channel(());
        let watching =
            tokio::spawn(
                async move { while file.next().await.is_ok() && told.send(()).is_ok() {} },
            );
        Ok(Self { changes, _watching: AbortOnDropHandle::new(watching) })
    }
}

impl Pass {
    /// The name of the token and what it allows.
    pub fn name_and_scope(&self) -> (Arc<str>, TokenScope) {
        (Arc::clone(self.token.name.label()), self.token.scope)
    }

    /// The standing of the token's owner on a connection with this standing.
    fn standing(&self, mut standing: Standing) -> Standing {
        let caller = &mut standing.caller;
        caller.principal = self.token.principal();
        caller.tenant = self.authority.0.own.clone();
        caller.label = Arc::clone(self.token.name.label());
        standing.token = Some(self.token.scope);
        standing
    }

    /// Whether the token is unchanged and not expired now.
    pub fn holds(&self) -> bool {
        let Self { authority, token, seen, .. } = self;
        let over = |at: UnixTime| authority.now().until(at).is_zero();
        if token.expires.is_some_and(over) {
            return false;
        }
        let stamp = authority.0.store.as_ref().and_then(TokenStore::stamp);
        let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
        if stamp.is_some() && stamp == *seen {
            return true;
        }
        let found = authority.find(&token.hash).is_ok_and(|found| found == *token);
        *seen = stamp.filter(|_| found);
        found
    }

    /// Completes when the token has expired or changed.
    pub async fn ended(&self) {
        let Self { authority, token, .. } = self;
        let changes = &mut self.changes.clone();
        loop {
            let clock = &authority.0.clock;
            let expiry = async {
                match token.expires.map(|at| authority.now().until(at).min(LOOK_INTERVAL)) {
                    Some(left) => clock.sleep_until(clock.now() + left).await,
                    None => std::future::pending().await,
                }
            };
            let told = tokio::select! {
                told = changes.changed() => told,
                () = expiry => Ok(()),
            };
            // The watch has ended; the directory may exist again.
            let renewed = match told {
                Ok(()) => Ok(changes.clone()),
                Err(_) => authority.changes(),
            };
            match (renewed, authority.find(&token.hash)) {
                (Ok(renewed), Ok(found)) if found == *token => *changes = renewed,
                (_, _) => return,
            }
        }
    }
}

/// Returns the id and the secret if the line is an authentication request.
fn shown(line: &[u8], limits: &Limits) -> Option<(RequestId, Result<Secret, Rejection>)> {
    check(line, limits.tokens_max).ok()?;
    let request = RawRequest::read(line).filter(|it| it.method == AUTHENTICATE_METHOD)?;
    let shown = request.params::<ShownToken<'_>>();
    let secret = shown.ok().and_then(|shown| shown.token.parse().ok());
    Some((request.id, secret.ok_or(Rejection::Malformed)))
}

fn welcome(id: &RequestId, pass: &Pass, standing: &Standing) -> Bytes {
    let principal = standing.caller.name().to_string();
    tracing::info!(connection = standing.caller.connection.0, principal, "a token was accepted");
    answer_line(id, Ok(&Welcome { principal, scope: pass.token.scope.as_str() }))
}

fn refusal(id: &RequestId, rejection: Rejection) -> Bytes {
    let error = ErrorWire::from(rejection);
    let data = Some(json!(error));
    error_line(Some(id), &ErrorData::new(REJECTED, error.message, data))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use tempfile::TempDir;
    use tokio::time::Instant;

    use super::*;
    use crate::core::caller::{Caller, Kind};
    use crate::core::ids::ConnectionId;
    use crate::core::policy::Reach;
    use crate::transport::tokens::{NewToken, read_secret};

    /// A paused clock begins 1,000 s after the epoch.
    const BEGIN: u64 = 1_000;

    struct Tokens {
        home: TempDir,
        store: TokenStore,
        authority: Authority,
        /// Those whose token has ended.
        ended: Arc<Mutex<Vec<PrincipalId>>>,
    }

    impl Tokens {
        fn new() -> Self {
            let home = tempfile::tempdir().unwrap();
            let store = TokenStore::in_state(home.path());
            let own = TenantId::of_uid(1000);
            let ended = Arc::new(Mutex::new(Vec::new()));
            let on_end = {
                let ended = Arc::clone(&ended);
                move |principal| ended.lock().unwrap().push(principal)
            };
            let clock = Clock::paused();
            let authority = Authority::new(Some(store.clone()), own, clock, on_end);
            Self { home, store, authority, ended }
        }

        fn make(&self, name: &str, expires: Option<u64>) -> Secret {
            let scope = TokenScope::Write;
            let expires = expires.map(UnixTime);
            let new = NewToken { name: name.parse().unwrap(), scope, expires };
            let out: PathBuf = self.home.path().join(name);
            self.store.make(UnixTime(BEGIN), new, &out).unwrap();
            read_secret(&out).unwrap()
        }

        fn admit(&self, secret: &Secret) -> Result<Pass, Rejection> {
            self.authority.admit(&standing(), secret)
        }
    }

    fn standing() -> Standing {
        let caller = Caller {
            principal: PrincipalId::Connection(7),
            connection: ConnectionId(7),
            tenant: TenantId::of_uid(0),
            kind: Kind::Agent,
            label: Arc::from("agent"),
        };
        let (door, reach) = (Door::Gateway, Reach::Tenant);
        Standing::of_member(caller, 0, door, reach)
    }

    #[tokio::test(start_paused = true)]
    async fn who_shows_a_token_is_its_owner_in_the_tenant_whose_token_it_is() {
        let tokens = Tokens::new();
        let pass = tokens.admit(&tokens.make("ci", None)).unwrap();
        let Standing { caller, token, .. } = pass.standing(standing());
        assert_eq!(caller.name().to_string(), "ci#t1");
        assert_eq!((caller.connection, caller.kind), (ConnectionId(7), Kind::Agent));
        assert_eq!(caller.tenant, TenantId::of_uid(1000));
        assert_eq!(token, Some(TokenScope::Write));
    }

    #[tokio::test(start_paused = true)]
    async fn a_stay_ends_when_the_token_expires() {
        let tokens = Tokens::new();
        let long = 3 * LOOK_INTERVAL.as_secs() + 5;
        let secret = tokens.make("ci", Some(BEGIN + long));
        let pass = tokens.admit(&secret).unwrap();
        let begin = Instant::now();
        pass.ended().await;
        assert_eq!(begin.elapsed().as_secs(), long);
        assert_eq!(tokens.admit(&secret).unwrap_err(), Rejection::Expired);
    }

    #[tokio::test(start_paused = true)]
    async fn a_stay_ends_when_the_token_is_no_longer_what_it_was_and_not_when_others_change() {
        let tokens = Tokens::new();
        let pass = tokens.admit(&tokens.make("ci", None)).unwrap();
        let mut ended = std::pin::pin!(pass.ended());
        tokens.make("other", None);
        assert!(timeout(Duration::from_secs(60), ended.as_mut()).await.is_err());
        let text = fs::read_to_string(tokens.store.path()).unwrap();
        let narrowed = text.replacen("\"write\"", "\"read_only\"", 1);
        fs::write(tokens.store.path(), narrowed).unwrap();
        ended.await;
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_that_has_ended_holds_no_more_though_nobody_was_told() {
        let tokens = Tokens::new();
        let revoked = tokens.admit(&tokens.make("ci", None)).unwrap();
        let expired = tokens.admit(&tokens.make("short", Some(BEGIN + 60))).unwrap();
        assert!(revoked.holds() && expired.holds());
        tokens.make("other", None);
        assert!(revoked.holds() && expired.holds());
        // Nothing is awaited in between, so that no task could have looked.
        tokens.store.revoke(&"ci".parse().unwrap()).unwrap();
        assert!(!revoked.holds() && expired.holds());
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(!expired.holds());
    }

    #[tokio::test(start_paused = true)]
    async fn the_end_of_a_token_is_told_also_when_its_owner_is_not_there() {
        let tokens = Tokens::new();
        let pass = tokens.admit(&tokens.make("ci", Some(BEGIN + 60))).unwrap();
        let again = tokens.admit(&tokens.make("other", None)).unwrap();
        drop((pass, again));
        tokio::time::sleep(Duration::from_secs(59)).await;
        assert_eq!(*tokens.ended.lock().unwrap(), []);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(*tokens.ended.lock().unwrap(), [PrincipalId::Token(1)]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_token_whose_entry_was_edited_is_followed_before_the_end_of_the_old_one_is_noticed() {
        let tokens = Tokens::new();
        let secret = tokens.make("ci", Some(BEGIN + 60));
        let old = tokens.admit(&secret).unwrap();
        let text = fs::read_to_string(tokens.store.path()).unwrap();
        fs::write(tokens.store.path(), text.replacen("\"write\"", "\"read_only\"", 1)).unwrap();
        // Nothing is awaited in between, so that the old task has not run.
        let new = tokens.admit(&secret).unwrap();
        drop((old, new));
        tokio::time::sleep(Duration::from_secs(59)).await;
        assert_eq!(*tokens.ended.lock().unwrap(), [PrincipalId::Token(1)]);
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert_eq!(*tokens.ended.lock().unwrap(), [PrincipalId::Token(1); 2]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_program_inside_a_session_and_the_operators_door_are_told_nothing_of_a_token() {
        let tokens = Tokens::new();
        let good = tokens.make("ci", None);
        let never = Secret::from_random([0; 32]);
        for secret in [&good, &never] {
            let inside = Standing { managed: true, ..standing() };
            let told = tokens.authority.admit(&inside, secret).unwrap_err();
            assert_eq!(told, Rejection::InsideSession);
            let operator = Standing { door: Door::Operator, ..standing() };
            let told = tokens.authority.admit(&operator, secret).unwrap_err();
            assert_eq!(told, Rejection::OperatorsDoor);
        }
    }

    #[test]
    fn only_the_request_itself_is_taken_for_one() {
        let secret = Secret::from_random([7; 32]);
        let text = secret.reveal();
        let limits = Limits::default();
        let found = |line: &str| shown(line.as_bytes(), &limits).map(|(_, shown)| shown);
        let line = |head: &str, params: &str| format!("{{{head},\"params\":{params}}}");
        let head = r#""jsonrpc":"2.0","id":1,"method":"termgate/authenticate""#;
        let good = format!("{{\"token\":\"{text}\"}}");
        assert_eq!(found(&line(head, &good)), Some(Ok(secret.clone())));
        let with_meta = format!("{{\"token\":\"{text}\",\"_meta\":{{\"a\":1}}}}");
        assert_eq!(found(&line(head, &with_meta)), Some(Ok(secret)));
        let more = format!("{{\"token\":\"{text}\",\"more\":1}}");
        for params in ["{}", "[]", "null", more.as_str()] {
            assert_eq!(found(&line(head, params)), Some(Err(Rejection::Malformed)), "{params}");
        }
        let others = [
            head.replace("2.0", "1.0"),
            head.replace("termgate/authenticate", "ping"),
            head.replace(r#""id":1,"#, ""),
        ];
        for head in others {
            assert_eq!(found(&line(&head, &good)), None, "{head}");
        }
        assert_eq!(found(&format!(r#"["2.0",1,"termgate/authenticate",{good}]"#)), None);
    }
}
