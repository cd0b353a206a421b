//! The token bucket of the `ratelimit` scenario. Pure: the time is an argument.

use std::time::Duration;

use crate::faults::Rate;

/// The number of remaining requests, and the time at which it was correct.
#[derive(Debug)]
pub(crate) struct Bucket {
    tokens: f64,
    at: Duration,
}

/// The values of the rate limit headers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Allowance {
    pub(crate) limit: u64,
    pub(crate) remaining: u64,
    /// The time until one more request is allowed, as measured by a client.
    pub(crate) wait: Duration,
    pub(crate) retry_after: bool,
}

impl Bucket {
    pub(crate) fn full(rate: &Rate, now: Duration) -> Self {
        Self { tokens: rate.burst.unwrap_or(rate.rpm).get() as f64, at: now }
    }

    /// Takes a token; fails if there is none. A higher `speed` makes the minutes pass faster.
    pub(crate) fn take(
        &mut self,
        rate: &Rate,
        now: Duration,
        speed: f64,
    ) -> Result<Allowance, Allowance> {
        let per_second = rate.rpm.get() as f64 / 60.0 * speed;
        let passed = now.saturating_sub(self.at).as_secs_f64();
        self.at = now;
        self.tokens =
            (self.tokens + passed * per_second).min(rate.burst.unwrap_or(rate.rpm).get() as f64);
        // A wait measured in whole nanoseconds may end slightly before the token is complete.
        let taken = self.tokens >= 1.0 - 1e-6;
        if taken {
            self.tokens -= 1.0;
        }
        let missing = (1.0 - self.tokens).max(0.0);
        let allowance = Allowance {
            limit: rate.rpm.get(),
            remaining: self.tokens.max(0.0) as u64,
            wait: Duration::from_secs_f64(missing / per_second),
            retry_after: rate.retry_after,
        };
        if taken { Ok(allowance) } else { Err(allowance) }
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU64;

    use super::*;
    use crate::faults::RateScope;

    const RATE: Rate = Rate {
        rpm: NonZeroU64::new(60).unwrap(),
        burst: NonZeroU64::new(2),
        on: RateScope::Submit,
        retry_after: false,
    };

    #[test]
    fn a_burst_is_allowed_and_then_one_request_per_second() {
        let mut bucket = Bucket::full(&RATE, Duration::ZERO);
        let mut take = |ms| bucket.take(&RATE, Duration::from_millis(ms), 1.0);
        assert_eq!(take(0).unwrap().remaining, 1);
        assert_eq!(take(0).unwrap().remaining, 0);
        let refused = take(0).unwrap_err();
        assert_eq!((refused.limit, refused.remaining, refused.wait.as_secs()), (60, 0, 1));
        assert!(take(999).is_err());
        assert!(take(1_000).is_ok());
        assert!(take(1_001).is_err());
    }

    #[test]
    fn speed_makes_the_minutes_pass_faster() {
        let mut bucket = Bucket::full(&RATE, Duration::ZERO);
        for _ in 0..2 {
            bucket.take(&RATE, Duration::ZERO, 100.0).unwrap();
        }
        assert!(bucket.take(&RATE, Duration::from_millis(9), 100.0).is_err());
        assert!(bucket.take(&RATE, Duration::from_millis(10), 100.0).is_ok());
    }
}
