//! The reasons for refusing a start that costs money (G6), in words for people and models.

use std::fmt;
use std::time::Duration;

use crate::NanoUsd;

/// The refusal of a start because of its possible cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BudgetRefusal {
    /// The limit that the start would exceed.
    pub limit: BudgetLimit,
    /// The amount that the limit allows.
    pub allowed: NanoUsd,
    /// The typical cost of such a run, if it is known. Never the caller's own budget.
    pub typical: Option<NanoUsd>,
    /// The amount that the owner's runs of this day count for already.
    pub counted: NanoUsd,
    /// The time until the next UTC day, if the run would fit into that day.
    pub next_day: Option<Duration>,
}

/// A limit on the cost of a start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BudgetLimit {
    /// The budget that the caller gave with the request.
    Ask,
    /// The limit for one job.
    Job,
    /// The limit for one owner on one UTC day.
    Day,
}

impl BudgetLimit {
    /// Returns the setting that raises the limit, if there is one.
    pub fn setting_name(self) -> Option<&'static str> {
        match self {
            Self::Ask => None,
            Self::Job => Some("OUTLAST_MAX_USD_PER_JOB"),
            Self::Day => Some("OUTLAST_MAX_USD_PER_DAY"),
        }
    }
}

impl BudgetRefusal {
    /// Returns the next step for the caller.
    pub fn next_step(&self) -> String {
        let less = "ask with a lower effort";
        match (self.limit, self.limit.setting_name()) {
            (BudgetLimit::Ask, _) | (_, None) => format!("{less}, or allow more"),
            (BudgetLimit::Day, Some(setting)) if self.next_day.is_some() => {
                format!("wait for the next day (UTC), or have {setting} raised")
            }
            (BudgetLimit::Day | BudgetLimit::Job, Some(setting)) if self.allowed.0 == 0 => {
                format!("use the library, or have {setting} raised")
            }
            (BudgetLimit::Day | BudgetLimit::Job, Some(setting)) => {
                format!("{less}, or have {setting} raised")
            }
        }
    }
}

impl BudgetRefusal {
    /// Returns the reason why a job whose run failed does not begin another run.
    pub fn another_run_reason(&self) -> String {
        let Self { limit, allowed, counted, .. } = self;
        match limit {
            BudgetLimit::Ask => format!("{counted} of its budget of {allowed} may have been spent"),
            BudgetLimit::Job => {
                format!("{counted} of the {allowed} that one job may cost may have been spent")
            }
            BudgetLimit::Day => {
                format!("{counted} of the {allowed} for this day (UTC) are spent or reserved")
            }
        }
    }
}

/// One sentence, without the next step.
impl fmt::Display for BudgetRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { limit, allowed, typical, counted, .. } = self;
        if let (Some(setting), NanoUsd(0)) = (limit.setting_name(), *allowed) {
            return write!(f, "nothing that costs money may be started here: {setting} is 0");
        }
        match typical {
            Some(typical) => write!(f, "such a run usually costs {typical}")?,
            None => f.write_str("what such a run costs is not known beforehand")?,
        }
        match limit {
            BudgetLimit::Ask => {
                write!(
                    f,
                    ", its budget is {allowed}, and this provider does not stop a run at its budget"
                )
            }
            BudgetLimit::Job => write!(f, ", and one job may cost {allowed}"),
            BudgetLimit::Day => {
                write!(
                    f,
                    ", and {counted} of the {allowed} for this day (UTC) are spent or reserved"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_has_its_figures_and_a_next_step() {
        let base = BudgetRefusal {
            limit: BudgetLimit::Day,
            allowed: NanoUsd(2_000_000_000),
            typical: Some(NanoUsd(410_000_000)),
            counted: NanoUsd(1_700_000_000),
            next_day: Some(Duration::from_secs(60)),
        };
        let cases = [
            (
                base,
                "such a run usually costs $0.4100, and $1.70 of the $2.00 for this day (UTC) are spent or reserved; wait for the next day (UTC), or have OUTLAST_MAX_USD_PER_DAY raised",
            ),
            (
                BudgetRefusal { allowed: NanoUsd(0), next_day: None, ..base },
                "nothing that costs money may be started here: OUTLAST_MAX_USD_PER_DAY is 0; use the library, or have OUTLAST_MAX_USD_PER_DAY raised",
            ),
            (
                BudgetRefusal { limit: BudgetLimit::Job, typical: None, next_day: None, ..base },
                "what such a run costs is not known beforehand, and one job may cost $2.00; ask with a lower effort, or have OUTLAST_MAX_USD_PER_JOB raised",
            ),
            (
                BudgetRefusal {
                    limit: BudgetLimit::Ask,
                    allowed: NanoUsd(100_000_000),
                    next_day: None,
                    ..base
                },
                "such a run usually costs $0.4100, its budget is $0.1000, and this provider does not stop a run at its budget; ask with a lower effort, or allow more",
            ),
        ];
        for (refusal, expected) in cases {
            assert_eq!(format!("{refusal}; {}", refusal.next_step()), expected);
        }
    }
}
