//! What the engine is told once, when it is made.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::rules::Sharing;
use outlast_core::{Notifier, Profile, Provider, SpendLimits};

use crate::wakeups::PollLimits;

/// Who does the work, by the profile a job asks for.
pub type Providers = HashMap<Profile, Arc<dyn Provider>>;

/// Limits and intervals, with their defaults.
#[derive(Clone, Debug)]
pub struct Options {
    /// How many jobs one worker runs at a time.
    pub concurrency: usize,
    /// How long a worker may be silent before others may take its jobs.
    pub lease: Duration,
    /// The wait after a first failure.
    pub retry_base: Duration,
    /// How many unfinished jobs an owner may have.
    pub max_unfinished: u32,
    /// How many bytes of requests and results an owner may have stored.
    pub max_bytes: u64,
    /// What an owner may spend.
    pub spend_limits: SpendLimits,
    /// How late expired jobs may be removed.
    pub sweep_interval: Duration,
    /// How many polls may wait at a time.
    pub polls: PollLimits,
    /// Who is told of ends; `None` where ends are not told.
    pub notifier: Option<Arc<dyn Notifier>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            concurrency: 5,
            lease: Duration::from_secs(30),
            retry_base: Duration::from_secs(2),
            max_unfinished: 1000,
            max_bytes: 1 << 30,
            spend_limits: SpendLimits::default(),
            sweep_interval: Duration::from_secs(300),
            polls: PollLimits { in_all: 10_000, per_job: 100, sharing: Sharing::OneOwner },
            notifier: None,
        }
    }
}
