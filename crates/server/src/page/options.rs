//! The configuration of the page.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use outlast_core::{Job, OwnerId, Profile, SpendLimits};
use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

/// The lifetime of a one-time link.
const LINK_LIFE: Duration = Duration::from_secs(60);

/// A callback that ensures that a worker runs a job that the page has started.
pub type Carry = Arc<dyn Fn(Job) -> BoxFuture<'static, ()> + Send + Sync>;

/// The content and the actions that the page offers.
pub struct PageOptions {
    /// The configuration of research; `None` if no provider is configured.
    pub research: Option<PageResearch>,
    /// The callback that ensures that a worker runs each check of citations; `None` if checks are switched off.
    pub checks: Option<Carry>,
    /// The spending limits of an owner.
    pub limits: SpendLimits,
    /// The owners whose jobs are shown.
    pub view: PageView,
    /// The one-time link that signs its bearer in, if there is one.
    pub entry: Option<PageEntry>,
}

impl PageOptions {
    /// Returns the options of a server that does not show the page.
    pub fn none() -> Self {
        let limits = SpendLimits::default();
        Self { research: None, checks: None, limits, view: PageView::Own, entry: None }
    }
}

/// The owners whose jobs are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageView {
    /// The owner who is signed in.
    Own,
    /// All owners, for the person who runs this machine. Visitors can change only their own jobs.
    AllOwners,
}

/// The configuration of research on the page.
#[derive(Clone)]
pub struct PageResearch {
    /// The available providers; the first is the default.
    pub profiles: Vec<Profile>,
    /// The number of failed attempts that are retried.
    pub max_failures: u32,
    /// The time limit of one attempt.
    pub attempt_timeout: Duration,
    /// The time for which a retried job with a limited life may stay unfinished.
    pub life: Duration,
    /// The callback that ensures that a worker runs each new job.
    pub carry: Carry,
}

/// A link that signs one browser in, once and within a minute.
pub struct PageEntry {
    pub(super) owner: OwnerId,
    /// The key that signs the cookies of this process.
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
    /// Creates an entry for this owner, and the code of its link: 128 bits, so that the link fits a terminal of 80 columns.
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

    /// Completes when the link is no longer valid: it was used, or it has expired.
    pub fn sum_spend(&self) -> impl Future<Output = ()> + Send + use<> {
        let used = self.used.clone();
        async move { drop(tokio::time::timeout(LINK_LIFE, used.cancelled()).await) }
    }

    /// Returns true if this is the code, for the first time and in time. A wrong code leaves the right one valid.
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
