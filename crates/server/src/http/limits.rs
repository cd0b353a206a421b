//! The limits on requests per minute: for each owner, for each address that shows no valid token, and for each address that
//! signs in on the page.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::state::keyed::HashMapStateStore;
use governor::{NotUntil, Quota, RateLimiter};
use outlast_core::OwnerId;

/// The interval at which full buckets are removed, so that clients without a token cannot fill the memory.
const FORGET_EVERY: Duration = Duration::from_secs(60);

/// The maximum number of attempts per minute to sign in on the page from one address.
const SIGN_INS: NonZeroU32 = NonZeroU32::new(10).unwrap();

/// Requests per minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// The limit for one owner.
    pub per_owner: NonZeroU32,
    /// The limit for one address without a token, or with a wrong one.
    pub strangers: NonZeroU32,
}

type Limiter<K> = RateLimiter<K, HashMapStateStore<K>, DefaultClock>;

pub(super) struct Limits {
    owners: Limiter<OwnerId>,
    strangers: Limiter<IpAddr>,
    sign_ins: Limiter<IpAddr>,
    clock: DefaultClock,
}

impl Limits {
    pub(super) fn new(rates: Rates) -> Self {
        Self {
            owners: RateLimiter::hashmap(Quota::per_minute(rates.per_owner)),
            strangers: RateLimiter::hashmap(Quota::per_minute(rates.strangers)),
            sign_ins: RateLimiter::hashmap(Quota::per_minute(SIGN_INS)),
            clock: DefaultClock::default(),
        }
    }

    /// Counts a request of an owner; returns the time to wait if there were too many.
    pub(super) fn owner(&self, owner: &OwnerId) -> Result<(), Duration> {
        self.owners.check_key(owner).map_err(|not_until| self.wait(&not_until))
    }

    /// Counts a request without a valid token; returns the time to wait if there were too many.
    pub(super) fn stranger(&self, address: IpAddr) -> Result<(), Duration> {
        self.strangers.check_key(&network_of(address)).map_err(|not_until| self.wait(&not_until))
    }

    /// Counts an attempt to sign in on the page; returns the time to wait if there were too many.
    pub(super) fn sign_in(&self, address: IpAddr) -> Result<(), Duration> {
        self.sign_ins.check_key(&network_of(address)).map_err(|not_until| self.wait(&not_until))
    }

    fn wait(&self, not_until: &NotUntil<<DefaultClock as Clock>::Instant>) -> Duration {
        not_until.wait_time_from(self.clock.now())
    }

    /// Removes unused buckets, forever.
    pub(super) async fn forget(&self) {
        loop {
            tokio::time::sleep(FORGET_EVERY).await;
            self.owners.retain_recent();
            self.strangers.retain_recent();
            self.strangers.shrink_to_fit();
            self.sign_ins.retain_recent();
            self.sign_ins.shrink_to_fit();
        }
    }
}

/// Maps an address to its network: an IPv6 subscriber has a whole /64 and counts as one stranger.
pub(super) fn network_of(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            IpAddr::V6((u128::from(address) & (u128::from(u64::MAX) << 64)).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// E8: each owner has a separate budget, and a refusal states the time to wait.
    #[test]
    fn each_owner_has_its_own_budget() {
        let three = NonZeroU32::new(3).unwrap();
        let limits = Limits::new(Rates { per_owner: three, strangers: three });
        let (ann, bob) = (OwnerId::new("ann"), OwnerId::new("bob"));
        for _ in 0..3 {
            assert_eq!(limits.owner(&ann), Ok(()));
        }
        let wait = limits.owner(&ann).unwrap_err();
        assert!(wait > Duration::from_secs(10) && wait <= Duration::from_secs(20), "{wait:?}");
        assert_eq!(limits.owner(&bob), Ok(()));
    }

    #[test]
    fn one_subscriber_is_one_stranger() {
        let cases = [
            ("10.1.2.3", "10.1.2.3"),
            ("::ffff:10.1.2.3", "10.1.2.3"),
            ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::"),
        ];
        for (address, expected) in cases {
            assert_eq!(network_of(address.parse().unwrap()).to_string(), expected);
        }
    }
}
