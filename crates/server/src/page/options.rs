//! What the page is told once.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use outlast_core::{Job, OwnerId, Profile, SpendLimits};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// How long a one-time link is good.
const LINK_LIFE: Duration = Duration::from_secs(60);

/// Makes sure that a worker goes on with a job that the page has started.
pub type Carry = Arc<dyn Fn(Job) -> BoxFuture<'static, ()> + Send + Sync>;

/// What the page may show and do.
pub struct PageOptions {
    /// How it asks; `None` where no provider is configured.
    pub research: Option<PageResearch>,
    /// What an owner may spend.
    pub limits: SpendLimits,
    /// Whose jobs are shown.
    pub view: PageView,
    /// The one-time link that signs its bearer in, where there is one.
    pub entry: Option<PageEntry>,
}

impl PageOptions {
    /// A page that nobody is shown.
    pub fn none() -> Self {
        let limits = SpendLimits::default();
        Self { research: None, limits, view: PageView::Own, entry: None }
    }
}

/// Whose jobs are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageView {
    /// Those of the owner who is signed in.
    Own,
    /// Those of all owners, for the person who runs this machine. Only the visitor's own can be changed.
    AllOwners,
}

/// How the page asks.
#[derive(Clone)]
pub struct PageResearch {
    /// Who may be asked; the first is asked where no provider is named.
    pub profiles: Vec<Profile>,
    /// How many failures are forgiven.
    pub max_failures: u32,
    /// How long one try may take.
    pub attempt_timeout: Duration,
    /// How long a retried job with a limit on its life may stay unfinished.
    pub life: Duration,
    /// Who goes on with what was asked.
    pub carry: Carry,
}

/// A link that signs one browser in, once and within a minute.
pub struct PageEntry {
    pub(super) owner: OwnerId,
    /// Signs the cookies of this process.
    pub(super) key: [u8; 32],
    code: Mutex<Option<Code>>,
    /// Cancelled once the link was used.
    used: CancellationToken,
}

struct Code {
    digest: [u8; 32],
    until: Instant,
}

impl PageEntry {
    /// An entry for this owner, and the code that its link carries: 128 bits, so that the link fits a terminal of 80 columns.
    /// `secret` is random.
    pub fn new(owner: OwnerId, secret: &[u8; 32]) -> (Self, String) {
        let part = |label: &str| -> [u8; 32] {
            Sha256::new().chain_update(secret).chain_update(label).finalize().into()
        };
        let code: String = part("code").iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        let kept = Code { digest: Sha256::digest(&code).into(), until: Instant::now() + LINK_LIFE };
        let used = CancellationToken::new();
        (Self { owner, key: part("cookies"), code: Mutex::new(Some(kept)), used }, code)
    }

    /// Ends when the link is of no more use: it was used, or is too old.
    pub fn spent(&self) -> impl Future<Output = ()> + Send + use<> {
        let used = self.used.clone();
        async move { drop(tokio::time::timeout(LINK_LIFE, used.cancelled()).await) }
    }

    /// Whether this is the code, for the first time and in time. A wrong code leaves the right one valid.
    pub(super) fn takes(&self, code: &str) -> bool {
        let mut kept = self.code.lock();
        let digest: [u8; 32] = Sha256::digest(code).into();
        match kept.take() {
            Some(right) if right.digest == digest => {
                self.used.cancel();
                Instant::now() < right.until
            }
            other => {
                *kept = other;
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i5_a_one_time_link_is_good_once_and_for_a_minute() {
        let (entry, code) = PageEntry::new(OwnerId::new("ann"), &[7; 32]);
        assert!(!entry.takes("something else"));
        assert!(code.len() == 32 && "http://127.0.0.1:65535/ui/enter?code=".len() + 32 <= 80);
        assert!(entry.takes(&code));
        assert!(!entry.takes(&code));
        let (late, code) = PageEntry::new(OwnerId::new("ann"), &[7; 32]);
        if let Some(kept) = late.code.lock().as_mut() {
            kept.until = Instant::now();
        }
        assert!(!late.takes(&code));
    }
}
