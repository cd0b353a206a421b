//! The findings of a check, and its time limit.

use std::time::Duration;

use serde_json::{Value, json};

pub(super) use crate::ui::Verdict;

/// The time limit of a check.
pub(super) const CHECK_LIMIT: Duration = Duration::from_secs(2);

/// One finding: a line, and its remedy.
#[derive(Debug)]
pub(super) struct Check {
    pub(super) verdict: Verdict,
    pub(super) line: String,
    pub(super) fix: Option<String>,
}

impl Check {
    pub(super) fn pass(line: impl Into<String>) -> Self {
        Self { verdict: Verdict::Pass, line: line.into(), fix: None }
    }

    pub(super) fn warn(line: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { verdict: Verdict::Warn, line: line.into(), fix: Some(fix.into()) }
    }

    pub(super) fn fail(line: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { verdict: Verdict::Fail, line: line.into(), fix: Some(fix.into()) }
    }

    pub(super) fn skip(line: impl Into<String>) -> Self {
        Self { verdict: Verdict::Skipped, line: line.into(), fix: None }
    }

    /// Returns the finding of a check that needs a configuration, if there is no usable one.
    pub(super) fn skip_unconfigured() -> Self {
        Self::skip("not looked at: the configuration cannot be used")
    }

    pub(super) fn json(&self, name: &str) -> Value {
        json!({ "name": name, "status": self.verdict, "message": self.line, "fix": self.fix })
    }
}

/// Runs a check on a separate thread, within the time limit of a check.
pub(super) async fn run_bounded<const N: usize>(
    look: impl FnOnce() -> [Check; N] + Send + 'static,
) -> [Check; N] {
    run_bounded_by(CHECK_LIMIT, look).await
}

async fn run_bounded_by<const N: usize>(
    limit: Duration,
    look: impl FnOnce() -> [Check; N] + Send + 'static,
) -> [Check; N] {
    let (line, fix) = match tokio::time::timeout(limit, tokio::task::spawn_blocking(look)).await {
        Ok(Ok(checks)) => return checks,
        Ok(Err(_)) => ("this check broke off".to_owned(), "please report this"),
        Err(_) => (
            format!("no answer within {} s", limit.as_secs_f32()),
            "look for a disk that hangs or another program that holds a lock",
        ),
    };
    std::array::from_fn(|_| Check::fail(line.clone(), fix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_check_that_hangs_or_breaks_is_its_own_failure() {
        let (release, held) = std::sync::mpsc::channel::<()>();
        let hanging = move || {
            let _ = held.recv();
            [Check::pass("")]
        };
        let [slow] = run_bounded_by(Duration::from_millis(20), hanging).await;
        assert_eq!(slow.verdict, Verdict::Fail);
        assert!(slow.line.contains("0.02 s"), "{slow:?}");
        drop(release);
        let [broken] = run_bounded::<1>(|| panic!("on purpose")).await;
        assert_eq!(broken.verdict, Verdict::Fail);
    }
}
