//! Deep research: submitted under a key, then checked in growing intervals until it is done (A5).

use async_trait::async_trait;
use outlast_core::{BeginError, Cost, ProviderError, RemoteRun, ResearchAsk, Run, Step};
use tokio::time::Instant;

use super::request::research;
use super::wire::{Job, Status};
use super::{errors, remote, report};
use crate::vendor::{Checks, HttpAnswer, Milestones, Service, Submit, object};

const PATH: [&str; 3] = ["v1", "async", "sonar"];

/// How often a completed run may still show no report.
const LATE_REPORT: u32 = 3;

/// Submits the research; returns once it has an id.
pub(super) async fn begin(
    api: &Service,
    ask: &ResearchAsk,
    key: &str,
) -> Result<Box<dyn Run>, BeginError> {
    let request = api.post(&PATH, &research(ask, key))?;
    let submit = Submit::new(api);
    let response = submit.send(request, |answer| errors::refusal(api, answer)).await?;
    let body = submit.read(response).await?;
    let id = object::<Job>(&body).and_then(Job::into_id);
    let id = id.ok_or_else(|| BeginError::Unknown(errors::never_again(api.no_id(&body))))?;
    Ok(Box::new(ResearchRun::begun(api.clone(), remote(api, id))))
}

/// Deep research under way.
pub(super) struct ResearchRun {
    api: Service,
    remote: RemoteRun,
    milestones: Milestones,
    /// When the next check is due. Kept here, not in a future, so that a dropped `next` loses no time.
    check_at: Instant,
    checks: Checks,
    without_report: u32,
}

impl ResearchRun {
    fn begun(api: Service, remote: RemoteRun) -> Self {
        let mut run = Self::resumed(api, remote);
        run.checks.restart();
        run.wait();
        run
    }

    /// A run begun earlier; the first check is made at once, in place of the one soon after the submit.
    pub(super) fn resumed(api: Service, remote: RemoteRun) -> Self {
        Self {
            checks: Checks::after(api.waits(), 1),
            api,
            remote,
            milestones: Milestones::default(),
            check_at: Instant::now(),
            without_report: 0,
        }
    }

    async fn check(&mut self) -> Result<Option<Step>, ProviderError> {
        let [version, mode, name] = PATH;
        let answer = self.api.get(&[version, mode, name, &self.remote.id]).await;
        let trouble = |answer: &HttpAnswer| errors::trouble(&self.api, answer);
        let shown = self.checks.shown::<Job>(&self.remote, answer, trouble)?;
        let Some((job, body)) = shown else {
            self.wait();
            return Ok(None);
        };
        self.checks.named(&self.remote, job.id());
        match job.status() {
            Status::Completed => match job.response.0.and_then(report::output) {
                Some(output) => {
                    let done = Step::Done { output, raw: Some(body) };
                    Ok(Some(self.milestones.before(done)))
                }
                None => self.report_is_late(&body),
            },
            Status::Failed => {
                let cost = job.response.as_ref().map_or(Cost::Unknown, report::stated_cost);
                Err(errors::failed(&self.api, job.error_message.as_deref(), cost))
            }
            Status::InProgress => {
                self.wait();
                Ok(self.milestones.processing().map(Step::Progress))
            }
            Status::Waiting => {
                self.wait();
                Ok(None)
            }
        }
    }

    /// The run was paid for, so it is checked again before it fails; soon, for its report is said to be there.
    fn report_is_late(&mut self, body: &[u8]) -> Result<Option<Step>, ProviderError> {
        self.without_report += 1;
        if self.without_report > LATE_REPORT {
            return Err(errors::no_report(&self.api, body));
        }
        self.check_at = self.checks.soon();
        Ok(self.milestones.finalizing().map(Step::Progress))
    }

    fn wait(&mut self) {
        self.check_at = self.checks.next();
    }
}

#[async_trait]
impl Run for ResearchRun {
    fn remote(&self) -> RemoteRun {
        self.remote.clone()
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        if let Some(step) = self.milestones.next(self.api.vendor()) {
            return Ok(step);
        }
        loop {
            tokio::time::sleep_until(self.check_at).await;
            if let Some(step) = self.check().await? {
                return Ok(step);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::Waits;
    use crate::vendor::unreadable;

    fn waits(mut run: ResearchRun) -> Vec<u64> {
        let mut waits = Vec::new();
        for round in 0..10 {
            waits.push((run.check_at - Instant::now()).as_secs());
            if round % 2 == 0 {
                run.checks.failed(&run.remote, unreadable()).unwrap();
            } else {
                run.checks.not_found().unwrap();
            }
            run.wait();
        }
        waits
    }

    /// A5: the series of waits, kept through every kind of passing trouble.
    #[tokio::test(start_paused = true)]
    async fn a5_checks_come_1_s_after_the_submit_and_then_in_growing_intervals() {
        let api = Service::nowhere_after(Waits::sonar());
        let remote = remote(&api, "u".to_owned());
        let run = ResearchRun::begun(api.clone(), remote.clone());
        assert_eq!(waits(run), [1, 8, 8, 12, 18, 27, 40, 40, 40, 40]);
        let run = ResearchRun::resumed(api, remote);
        assert_eq!(waits(run), [0, 8, 8, 12, 18, 27, 40, 40, 40, 40]);
    }

    /// A5: five minutes of nothing but 404; anything else begins them anew.
    #[tokio::test(start_paused = true)]
    async fn a5_a_run_is_lost_after_five_minutes_of_nothing_but_404() {
        let api = Service::nowhere();
        let mut run = ResearchRun::resumed(api.clone(), remote(&api, "u".to_owned()));
        for _ in 0..2 {
            for _ in 0..300 {
                run.checks.not_found().unwrap();
                tokio::time::advance(std::time::Duration::from_secs(1)).await;
            }
            run.checks.failed(&run.remote, unreadable()).unwrap();
        }
        run.checks.not_found().unwrap();
        tokio::time::advance(std::time::Duration::from_secs(300)).await;
        assert_eq!(run.checks.not_found().unwrap_err().trouble, outlast_core::Trouble::RunLost);
    }
}
