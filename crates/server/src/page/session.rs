//! Signed-in visitors. A cookie names the owner, the expiry and the session, and is signed with a key that only the server
//! has. Only signed-out sessions are stored. Every server of a store, and the same server after a restart, therefore accepts
//! a cookie as long as the owner's token stays the same.

use std::collections::HashMap;

use http::HeaderMap;
use http::header::{COOKIE, HOST};
use outlast_core::{OwnerId, Scope, Timestamp};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};

use super::options::PageView;
use crate::http::{App, Callers, the_one};

const NAME: &str = "outlast_page";
/// The prefix of the store's setting that lists an owner's signed-out sessions.
const SIGNED_OUT: &str = "page-signed-out:";
/// The time for which a browser stays signed in.
const LIFE_SECS: u64 = 12 * 60 * 60;

/// The person who uses the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Visitor {
    /// The owner whose jobs they may change.
    pub(crate) owner: OwnerId,
    /// The owners whose jobs they see.
    pub(crate) view: PageView,
}

impl Visitor {
    /// Returns the jobs that are shown.
    pub(super) fn scope(&self) -> Scope {
        match self.view {
            PageView::Own => self.own(),
            PageView::AllOwners => Scope::Operator,
        }
    }

    /// Returns the jobs that can be changed.
    pub(super) fn own(&self) -> Scope {
        Scope::Owner(self.owner.clone())
    }
}

/// Identifies the visitor: by token, by cookie, or as the only owner if the server needs no token.
pub(crate) async fn visitor(app: &App, headers: &HeaderMap) -> Option<Visitor> {
    let owner = match &app.options.callers {
        Callers::WithoutToken(owner) => owner.clone(),
        Callers::WithToken(tokens) => match tokens.owner(headers) {
            Some(owner) => owner,
            None => {
                let session = session(app, headers)?;
                if app.signed_out.contains(app, &session).await {
                    return None;
                }
                session.owner
            }
        },
    };
    Some(Visitor { owner, view: app.options.page.view })
}

/// Ends the session of a request, if there is one: the cookie is invalid from now on.
pub(super) async fn sign_out(app: &App, headers: &HeaderMap) {
    if let Some(session) = session(app, headers) {
        app.signed_out.add(app, session).await;
    }
}

/// Returns the session in the cookie of a request.
fn session(app: &App, headers: &HeaderMap) -> Option<CookieSession> {
    let Callers::WithToken(tokens) = &app.options.callers else { return None };
    let cookie = cookie(headers)?;
    let name = hex_text(cookie.split('.').next()?)?;
    let key = match &app.options.page.entry {
        Some(entry) if entry.owner.as_str() == name => entry.key,
        _ => tokens.digest(&name)?,
    };
    open(&key, &cookie, seconds(app.engine().now()))
}

/// Sessions that were signed out before they expired.
#[derive(Default)]
pub(crate) struct SignedOut {
    /// The expiry of each session.
    here: Mutex<HashMap<String, u64>>,
    /// Serializes changes to the stored list.
    storing: tokio::sync::Mutex<()>,
}

impl SignedOut {
    /// Returns true if the session was signed out, here or at another server of the store.
    async fn contains(&self, app: &App, session: &CookieSession) -> bool {
        if self.here.lock().contains_key(&session.id) {
            return true;
        }
        // If the store cannot be read, the page shows nothing either.
        let stored = app.engine().get_setting(&stored_name(&session.owner)).await;
        let stored = stored.ok().flatten().unwrap_or_default();
        entries(&stored).any(|(id, _)| id == session.id)
    }

    /// Adds a session, and removes those that have expired.
    async fn add(&self, app: &App, session: CookieSession) {
        let now = seconds(app.engine().now());
        {
            let mut here = self.here.lock();
            here.retain(|_, until| *until > now);
            here.insert(session.id.clone(), session.until);
        }
        let _one_at_a_time = self.storing.lock().await;
        let name = stored_name(&session.owner);
        let stored = match app.engine().get_setting(&name).await {
            Ok(stored) => stored.unwrap_or_default(),
            Err(error) => return not_stored(&error),
        };
        let mut lines: Vec<String> = entries(&stored)
            .filter(|(_, until)| *until > now)
            .map(|(id, until)| format!("{id} {until}"))
            .collect();
        lines.push(format!("{} {}", session.id, session.until));
        if let Err(error) = app.engine().put_setting(&name, &lines.join("\n")).await {
            not_stored(&error);
        }
    }
}

fn not_stored(error: &outlast_core::StoreError) {
    tracing::warn!(%error, "failed to store that a session was signed out; it is ended at this server only");
}

fn stored_name(owner: &OwnerId) -> String {
    format!("{SIGNED_OUT}{}", owner.as_str())
}

/// Parses the ids and expiries of sessions in the stored text.
fn entries(stored: &str) -> impl Iterator<Item = (&str, u64)> {
    stored.lines().filter_map(|line| {
        let (id, until) = line.split_once(' ')?;
        Some((id, until.parse().ok()?))
    })
}

/// Returns the header that signs an owner in.
pub(super) fn set_cookie(
    key: &[u8; 32],
    owner: &OwnerId,
    now: Timestamp,
    headers: &HeaderMap,
) -> String {
    let id = uuid::Uuid::new_v4().simple().to_string();
    let session = CookieSession { owner: owner.clone(), until: seconds(now) + LIFE_SECS, id };
    let value = seal(key, &session);
    let secure = if is_tls(headers) { "; Secure" } else { "" };
    let name = cookie_name(headers);
    format!("{name}={value}; Path=/ui; HttpOnly; SameSite=Strict; Max-Age={LIFE_SECS}{secure}")
}

/// Returns the header that removes the cookie from the browser.
pub(super) fn clear_cookie(headers: &HeaderMap) -> String {
    format!("{}=; Path=/ui; HttpOnly; SameSite=Strict; Max-Age=0", cookie_name(headers))
}

/// Returns the name of the cookie, which includes the port under which the browser knows this server. Browsers send the
/// cookies of a host to all its ports, so two servers on one host would otherwise overwrite each other's cookie.
fn cookie_name(headers: &HeaderMap) -> String {
    let host = the_one(headers, &HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    match host.rsplit_once(':').and_then(|(_, port)| port.parse::<u16>().ok()) {
        Some(port) => format!("{NAME}_{port}"),
        None => NAME.to_owned(),
    }
}

/// Returns true if the browser reached a proxy in front of this server over TLS.
fn is_tls(headers: &HeaderMap) -> bool {
    headers.get("x-forwarded-proto").is_some_and(|scheme| scheme == "https")
}

fn seconds(now: Timestamp) -> u64 {
    now.as_millis().unsigned_abs() / 1_000
}

fn cookie(headers: &HeaderMap) -> Option<String> {
    let own = cookie_name(headers);
    let pairs = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut found = pairs.flat_map(|pairs| pairs.split(';')).filter_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == own).then(|| value.to_owned())
    });
    found.next()
}

/// The content of a cookie.
#[derive(Clone, Debug, PartialEq, Eq)]
struct CookieSession {
    owner: OwnerId,
    /// The expiry, in seconds since the Unix epoch.
    until: u64,
    id: String,
}

fn seal(key: &[u8; 32], session: &CookieSession) -> String {
    let CookieSession { owner, until, id } = session;
    let name: String = owner.as_str().bytes().map(|byte| format!("{byte:02x}")).collect();
    let signed = format!("{name}.{until}.{id}");
    format!("{signed}.{}", signature(key, &signed))
}

fn open(key: &[u8; 32], cookie: &str, now: u64) -> Option<CookieSession> {
    let (signed, given) = cookie.rsplit_once('.')?;
    let right = signature(key, signed);
    let differs = right.len() != given.len()
        || right.bytes().zip(given.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b)) != 0;
    let mut parts = signed.split('.');
    let (name, until, id) = (parts.next()?, parts.next()?.parse().ok()?, parts.next()?.to_owned());
    if differs || until <= now || id.is_empty() || parts.next().is_some() {
        return None;
    }
    Some(CookieSession { owner: hex_text(name).map(OwnerId::new)?, until, id })
}

/// Signs a text. The key is hashed before and after the text, so that nobody can extend a signed text.
fn signature(key: &[u8; 32], text: &str) -> String {
    let inner = Sha256::new().chain_update(key).chain_update(b"page").chain_update(text).finalize();
    let outer = Sha256::new().chain_update(key).chain_update(inner).finalize();
    outer.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn hex_text(hex: &str) -> Option<String> {
    let bytes = (0..hex.len())
        .step_by(2)
        .map(|at| hex.get(at..at + 2).and_then(|pair| u8::from_str_radix(pair, 16).ok()));
    String::from_utf8(bytes.collect::<Option<Vec<u8>>>()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i5_a_cookie_is_its_owners_until_its_end_and_cannot_be_made_up() {
        let key = [1; 32];
        let session =
            CookieSession { owner: OwnerId::new("ann-1"), until: 100, id: "a1".to_owned() };
        let cookie = seal(&key, &session);
        assert_eq!(open(&key, &cookie, 99), Some(session));
        assert_eq!(open(&key, &cookie, 100), None, "it has ended");
        assert_eq!(open(&[2; 32], &cookie, 99), None, "of another key");
        let (rest, _) = cookie.rsplit_once('.').unwrap();
        let longer = cookie.replacen(".100.", ".900.", 1);
        let renamed = cookie.replacen(".a1.", ".a2.", 1);
        for forged in [rest, &longer, &renamed, "", "..", "...", "zz.1.2.3", &format!("{cookie}0")]
        {
            assert_eq!(open(&key, forged, 99), None, "{forged}");
        }
    }

    #[test]
    fn i5_the_name_of_the_cookie_contains_the_port() {
        let table = [
            ("127.0.0.1:8080", "outlast_page_8080"),
            ("[::1]:9", "outlast_page_9"),
            ("research.example", "outlast_page"),
            ("[::1]", "outlast_page"),
        ];
        for (host, expected) in table {
            let mut headers = HeaderMap::new();
            headers.insert(HOST, host.parse().unwrap());
            assert_eq!(cookie_name(&headers), expected, "{host}");
        }
    }
}
