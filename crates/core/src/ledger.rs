//! The ledger: a row for each paid run, kept apart from jobs so that it outlives them (G6). What is reserved and refused is
//! decided by `rules/spending.rs`.

use serde::{Deserialize, Serialize};

use crate::{Cost, Day, JobId, NanoUsd, OwnerId, Timestamp};

/// What one owner may spend; nothing set means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpendLimits {
    /// On one job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_job: Option<NanoUsd>,
    /// On the jobs of one UTC day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_day: Option<NanoUsd>,
}

/// What is known of the cost of a job before it is made, and what may be spent on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// Who is paid.
    pub provider: String,
    /// The model that will answer, as far as is known.
    pub model: Option<String>,
    /// The amounts that the decision depends on.
    pub terms: SpendTerms,
}

/// The amounts that decide whether a paid run may begin and how much it may cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpendTerms {
    /// The typical cost of a request like this, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub typical: Option<NanoUsd>,
    /// The most that the caller allows it to cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<NanoUsd>,
    /// The cap that the provider is given if nothing else is lower; `None` if the provider cannot stop a run at a sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_cap: Option<NanoUsd>,
    /// The owner's limits.
    pub limits: SpendLimits,
}

/// The terms of a job's paid runs and the cap of its present run. Stored with the job: every try and every worker that takes
/// the job over sends this cap, whatever its own settings are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAllowance {
    /// The most that the present run may cost; `None` if the provider cannot stop a run at a sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<NanoUsd>,
    /// The terms that the cap was decided by. Another run of the same job is decided by them too.
    #[serde(flatten)]
    pub terms: SpendTerms,
}

/// The sums that count toward limits when a paid run is decided on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedSpend {
    /// Of the owner's runs of this UTC day.
    pub day: NanoUsd,
    /// Of the earlier runs of the same job.
    pub job: NanoUsd,
}

/// What is known of the money for one run.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerRow {
    /// The job it was begun for; the one that took it up last.
    pub job: JobId,
    /// Its number among the paid runs of that job, from 1.
    pub run: u32,
    /// Who pays.
    pub owner: OwnerId,
    /// Who is paid.
    pub provider: String,
    /// Which model, as far as is known.
    pub model: Option<String>,
    /// When it was reserved; it counts on that UTC day.
    pub at: Timestamp,
    /// What was set aside for it, if its typical cost is known.
    pub reserved: Option<NanoUsd>,
    /// What it cost, once that is known.
    pub cost: Cost,
    /// Whether it was paid for.
    pub state: ChargeState,
    /// The provider's name of a run that another job may take up.
    pub remote: Option<String>,
    /// The provider's name of the run, once the run has ended or its job has.
    pub run_id: Option<String>,
}

impl LedgerRow {
    /// What it counts for: its cost where that is known, else what was set aside.
    pub fn counts(&self) -> NanoUsd {
        let counted = match self.state {
            ChargeState::Reserved | ChargeState::Maybe => self.reserved,
            ChargeState::Spent => self.cost.amount(),
            ChargeState::Released => None,
        };
        counted.unwrap_or_default()
    }
}

/// Whether a run was paid for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChargeState {
    /// Its job is unfinished.
    Reserved,
    /// It was, and its cost is known.
    Spent,
    /// It may have been; what was set aside counts.
    Maybe,
    /// It was certainly not.
    Released,
}

impl ChargeState {
    /// The word for it in stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Spent => "spent",
            Self::Maybe => "maybe",
            Self::Released => "released",
        }
    }

    /// Reads such a word.
    pub fn parse(word: &str) -> Option<Self> {
        let all = [Self::Reserved, Self::Spent, Self::Maybe, Self::Released];
        all.into_iter().find(|state| state.as_str() == word)
    }
}

/// What is asked of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpendQuery {
    /// What the sums are made by.
    pub by: SpendBy,
    /// The first day that counts.
    pub since: Day,
}

/// What sums are made by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpendBy {
    /// The UTC day.
    Day,
    /// Who was paid.
    Provider,
    /// The model; [`SpendSum::UNKNOWN_MODEL`] where none is known.
    Model,
    /// Who paid.
    Owner,
}

/// What was spent under one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpendSum {
    /// A day, a provider, a model or an owner.
    pub key: String,
    /// What was certainly spent.
    pub spent: NanoUsd,
    /// What is set aside for unfinished jobs.
    pub reserved: NanoUsd,
    /// What may have been spent.
    pub maybe: NanoUsd,
    /// How many runs that is; those that were certainly not paid for do not count.
    pub runs: u64,
}

impl SpendSum {
    /// The key of runs whose model is not known.
    pub const UNKNOWN_MODEL: &str = "unknown";
}
