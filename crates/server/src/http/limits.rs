//! How many requests a minute are let through: of each owner, of each address that shows no token of ours, and of each address
//! that signs in on the page.

use std::net::IpAddr;
use std::num::NonZeroU32;
use std::time::Duration;

use governor::clock::{Clock, DefaultClock};
use governor::state::keyed::HashMapStateStore;
use governor::{NotUntil, Quota, RateLimiter};
use outlast_core::OwnerId;

/// How often buckets that are full again are removed, so that clients without a token cannot fill the memory.
const FORGET_EVERY: Duration = Duration::from_secs(60);

/// Attempts to sign in on the page a minute, from one address.
const SIGN_INS: NonZeroU32 = NonZeroU32::new(10).unwrap();

/// Requests a minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// By one owner.
    pub per_owner: NonZeroU32,
    /// Without a token, or with a wrong one, from one address.
    pub strangers: NonZeroU32,
}

type Limiter<K> = RateLimiter<K, HashMapStateStore<K>, DefaultClock>;

/// Counts requests.
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

    /// One more request of an owner's; else how long to wait.
    pub(super) fn owner(&self, owner: &OwnerId) -> Result<(), Duration> {
        self.owners.check_key(owner).map_err(|not_until| self.wait(&not_until))
    }

    /// One more request that showed no token of ours; else how long to wait.
    pub(super) fn stranger(&self, address: IpAddr) -> Result<(), Duration> {
        self.strangers.check_key(&network_of(address)).map_err(|not_until| self.wait(&not_until))
    }

    /// Counts an attempt to sign in on the page; else how long to wait.
    pub(super) fn sign_in(&self, address: IpAddr) -> Result<(), Duration> {
        self.sign_ins.check_key(&network_of(address)).map_err(|not_until| self.wait(&not_until))
    }

    fn wait(&self, not_until: &NotUntil<<DefaultClock as Clock>::Instant>) -> Duration {
        not_until.wait_time_from(self.clock.now())
    }

    /// Removes what is not needed any more, for ever.
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

/// An IPv6 subscriber has a whole /64, and is one stranger.
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

    /// E8: each owner has a budget of its own, and is told how long to wait.
    #[test]
    fn each_owner_has_a_budget_of_its_own() {
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
