//! Who is signed in: a cookie that names its owner and its end, signed with a key that only the server has. Nothing of it is
//! stored, so every server of a store and the same server after a restart knows it as long as the owner's token stays.

use http::HeaderMap;
use http::header::COOKIE;
use outlast_core::{OwnerId, Scope, Timestamp};
use sha2::{Digest, Sha256};

use super::options::PageView;
use crate::http::{App, Callers};

const NAME: &str = "outlast_page";
/// How long a browser stays signed in.
const LIFE_SECS: u64 = 12 * 60 * 60;

/// Who looks at the page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Visitor {
    /// Whose jobs they may change.
    pub(crate) owner: OwnerId,
    /// What they see.
    pub(crate) view: PageView,
}

impl Visitor {
    /// What is shown.
    pub(super) fn scope(&self) -> Scope {
        match self.view {
            PageView::Own => self.own(),
            PageView::AllOwners => Scope::Operator,
        }
    }

    /// What can be changed.
    pub(super) fn own(&self) -> Scope {
        Scope::Owner(self.owner.clone())
    }
}

/// Who makes a request, if that is known: by the token it shows, by its cookie, or because none is asked for.
pub(crate) fn visitor(app: &App, headers: &HeaderMap) -> Option<Visitor> {
    let page = &app.options.page;
    let owner = match &app.options.callers {
        Callers::WithoutToken(owner) => Some(owner.clone()),
        Callers::WithToken(tokens) => tokens.owner(headers).or_else(|| {
            let cookie = cookie(headers)?;
            let name = cookie.split('.').next()?;
            let key = match &page.entry {
                Some(entry) if entry.owner.as_str() == hex_text(name)? => entry.key,
                _ => tokens.digest(&hex_text(name)?)?,
            };
            opened(&key, &cookie, seconds(app.engine().now()))
        }),
    };
    owner.map(|owner| Visitor { owner, view: page.view })
}

/// The header that keeps an owner signed in.
pub(super) fn set_cookie(
    key: &[u8; 32],
    owner: &OwnerId,
    now: Timestamp,
    over_tls: bool,
) -> String {
    let value = sealed(key, owner, seconds(now) + LIFE_SECS);
    let secure = if over_tls { "; Secure" } else { "" };
    format!("{NAME}={value}; Path=/ui; HttpOnly; SameSite=Strict; Max-Age={LIFE_SECS}{secure}")
}

/// The header that ends it.
pub(super) fn clear_cookie() -> String {
    format!("{NAME}=; Path=/ui; HttpOnly; SameSite=Strict; Max-Age=0")
}

fn seconds(now: Timestamp) -> u64 {
    now.as_millis().unsigned_abs() / 1_000
}

fn cookie(headers: &HeaderMap) -> Option<String> {
    let pairs = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut found = pairs.flat_map(|pairs| pairs.split(';')).filter_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == NAME).then(|| value.to_owned())
    });
    found.next()
}

fn sealed(key: &[u8; 32], owner: &OwnerId, until: u64) -> String {
    let name: String = owner.as_str().bytes().map(|byte| format!("{byte:02x}")).collect();
    let signed = format!("{name}.{until}");
    format!("{signed}.{}", signature(key, &signed))
}

fn opened(key: &[u8; 32], cookie: &str, now: u64) -> Option<OwnerId> {
    let (signed, given) = cookie.rsplit_once('.')?;
    let right = signature(key, signed);
    let differs = right.len() != given.len()
        || right.bytes().zip(given.bytes()).fold(0, |differs, (a, b)| differs | (a ^ b)) != 0;
    let (name, until) = signed.split_once('.')?;
    (!differs && until.parse::<u64>().ok()? > now).then(|| hex_text(name).map(OwnerId::new))?
}

/// The key stands around the text twice, so that no one can go on with a text that was signed.
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
        let (key, owner) = ([1; 32], OwnerId::new("ann-1"));
        let cookie = sealed(&key, &owner, 100);
        assert_eq!(opened(&key, &cookie, 99), Some(owner));
        assert_eq!(opened(&key, &cookie, 100), None, "it has ended");
        assert_eq!(opened(&[2; 32], &cookie, 99), None, "of another key");
        let (rest, _) = cookie.rsplit_once('.').unwrap();
        let longer = cookie.replacen(".100.", ".900.", 1);
        for forged in [rest, &longer, "", "..", "zz.1.2", &format!("{cookie}0")] {
            assert_eq!(opened(&key, forged, 99), None, "{forged}");
        }
    }
}
