//! The ledger: one row for each paid run, kept apart from jobs so that it outlives them (G6). `rules/charge.rs`
//! decides what is reserved and refused.

use serde::{Deserialize, Serialize};

use crate::{Cost, Day, JobId, NanoUsd, OwnerId, Timestamp};

/// The spending limits of one owner; an unset one does not limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct SpendLimits {
    /// The limit for one job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_job: Option<NanoUsd>,
    /// The limit for the jobs of one UTC day.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_day: Option<NanoUsd>,
}

/// The expected cost of a job before it is created, and the amount that may be spent on it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reservation {
    /// The provider that is paid.
    pub provider: String,
    /// The model that will answer, as far as it is known.
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
    /// The maximum cost that the caller allows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub budget: Option<NanoUsd>,
    /// The cap that the provider is given if nothing else is lower; `None` if the provider cannot stop a run at a
    /// sum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default_cap: Option<NanoUsd>,
    pub limits: SpendLimits,
}

/// The terms of a job's paid runs and the cap of its present run. They are stored with the job: every attempt, and
/// every worker that takes the job over, sends this cap, whatever its own settings are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunAllowance {
    /// The maximum cost of the present run; `None` if the provider cannot stop a run at a sum.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cap: Option<NanoUsd>,
    /// The terms that decided the cap. They also decide another run of the same job.
    #[serde(flatten)]
    pub terms: SpendTerms,
}

/// The sums that count toward limits when a paid run is decided on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CountedSpend {
    /// The sum of the owner's runs of this UTC day.
    pub day: NanoUsd,
    /// The sum of the earlier runs of the same job.
    pub job: NanoUsd,
}

/// The known cost of one run.
#[derive(Clone, Debug, PartialEq)]
pub struct LedgerRow {
    /// The job that the run was begun for, or the last job that resumed it.
    pub job: JobId,
    /// Its number among the paid runs of that job, from 1.
    pub run: u32,
    /// The owner, who pays.
    pub owner: OwnerId,
    /// The provider that is paid.
    pub provider: String,
    /// The model, as far as it is known.
    pub model: Option<String>,
    /// The time when it was reserved. It counts on that UTC day.
    pub at: Timestamp,
    /// The amount that was reserved for it, if its typical cost is known.
    pub reserved: Option<NanoUsd>,
    /// Its cost, once that is known.
    pub cost: Cost,
    /// The payment state of the run.
    pub state: ChargeState,
    /// The provider's id of a run that another job may resume.
    pub remote: Option<String>,
    /// The provider's id of the run, once the run has ended or its job has.
    pub run_id: Option<String>,
}

impl LedgerRow {
    /// Returns the amount that it counts for: its cost if that is known, otherwise the reserved amount.
    pub fn counts(&self) -> NanoUsd {
        let counted = match self.state {
            ChargeState::Reserved | ChargeState::Maybe => self.reserved,
            ChargeState::Spent => self.cost.amount(),
            ChargeState::Released => None,
        };
        counted.unwrap_or_default()
    }
}

/// The payment state of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChargeState {
    /// Its job is unfinished.
    Reserved,
    /// It was paid for, and its cost is known.
    Spent,
    /// It may have been paid for; the reserved amount counts.
    Maybe,
    /// It was certainly not paid for.
    Released,
}

impl ChargeState {
    /// Returns the word for it in stores.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Spent => "spent",
            Self::Maybe => "maybe",
            Self::Released => "released",
        }
    }

    /// Parses the word for it in stores.
    pub fn parse(word: &str) -> Option<Self> {
        let all = [Self::Reserved, Self::Spent, Self::Maybe, Self::Released];
        all.into_iter().find(|state| state.as_str() == word)
    }
}

/// A query of the ledger.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SpendQuery {
    /// The key that rows are grouped by.
    pub by: SpendBy,
    /// The first day that counts.
    pub since: Day,
}

/// The key that rows are grouped by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpendBy {
    Day,
    /// The provider that was paid.
    Provider,
    /// The model; [`SpendSum::UNKNOWN_MODEL`] if it is not known.
    Model,
    /// The owner who paid.
    Owner,
}

/// The amounts under one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpendSum {
    /// A day, a provider, a model or an owner.
    pub key: String,
    /// The amount that was certainly spent.
    pub spent: NanoUsd,
    /// The amount that is reserved for unfinished jobs.
    pub reserved: NanoUsd,
    /// The amount that may have been spent.
    pub maybe: NanoUsd,
    /// The number of these runs, without those that were certainly not paid for.
    pub runs: u64,
}

impl SpendSum {
    /// The key of runs whose model is not known.
    pub const UNKNOWN_MODEL: &str = "unknown";
}
