//! The configuration of an engine, set when it is created.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::rules::Sharing;
use outlast_core::{Notifier, Profile, Provider, SpendLimits};

use crate::dispatch::Dispatch;
use crate::observers::Observers;
use crate::wakeups::PollLimits;

/// The providers that do the work, by the profile that a job asks for.
pub type Providers = HashMap<Profile, Arc<dyn Provider>>;

/// Limits and intervals, with their defaults.
#[derive(Clone, Debug)]
pub struct Options {
    /// The maximum number of jobs that one worker runs at a time.
    pub concurrency: usize,
    /// The time after which others may claim the jobs of a silent worker.
    pub lease: Duration,
    /// The wait after a first failure.
    pub retry_base: Duration,
    /// The maximum number of unfinished jobs of an owner.
    pub max_unfinished: u32,
    /// The maximum number of bytes of requests and results that an owner may have stored.
    pub max_bytes: u64,
    /// The spending limits of an owner.
    pub spend_limits: SpendLimits,
    /// The maximum delay in the removal of expired jobs.
    pub sweep_interval: Duration,
    /// The time for which the journals of ended runs of a provider are kept; `None` keeps them with their jobs.
    pub keep_runs: Option<RunRetention>,
    /// The maximum number of polls that wait at a time.
    pub polls: PollLimits,
    /// True if each report of research is checked when it is written (`citations.check = always`).
    pub check_reports: bool,
    /// The notifier of ends; `None` if there are no notices.
    pub notifier: Option<Arc<dyn Notifier>>,
    /// The process that runs the jobs.
    pub dispatch: Dispatch,
    /// The observers of this engine's writes, in the order in which they are notified.
    pub observers: Observers,
}

/// The retention of the journals of runs: their steps, notes and pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunRetention {
    pub provider: &'static str,
    /// Counted from the end of the job.
    pub keep: Duration,
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
            keep_runs: None,
            polls: PollLimits { in_all: 10_000, per_job: 100, sharing: Sharing::OneOwner },
            check_reports: false,
            notifier: None,
            dispatch: Dispatch::Here,
            observers: Observers::default(),
        }
    }
}
