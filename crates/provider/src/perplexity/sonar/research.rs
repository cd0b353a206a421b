//! Deep research: submitted under a key, then checked in growing intervals until it is done (A5).

use std::convert::Infallible;

use async_trait::async_trait;
use outlast_core::{BeginError, Cost, ProviderError, RemoteRun, ResearchRequest, Run, Step};

use super::request::research;
use super::wire::{Job, Status};
use super::{errors, remote, report};
use crate::vendor::{FollowedRun, Milestones, RunLink, Service, Submit, VendorRun, object};

const PATH: [&str; 3] = ["v1", "async", "sonar"];

/// The number of checks that may find a completed run without a report.
const LATE_REPORT: u32 = 3;

/// Submits the research; returns once it has an id.
pub(super) async fn begin(
    api: &Service,
    ask: &ResearchRequest,
    key: &str,
) -> Result<Box<dyn Run>, BeginError> {
    let request = api.post(&PATH, &research(ask, key))?;
    let submit = Submit::new(api);
    let response = submit.send(request, |answer| errors::refusal(api, answer)).await?;
    let body = submit.read(response).await?;
    let id = object::<Job>(&body).and_then(Job::into_id);
    let id = id.ok_or_else(|| BeginError::Unknown(errors::as_permanent(api.no_id(&body))))?;
    Ok(Box::new(ResearchRun::follow_begun(api.clone(), remote(api, id))))
}

/// Deep research under way.
#[derive(Default)]
pub(super) struct ResearchRun {
    milestones: Milestones,
    without_report: u32,
}

impl ResearchRun {
    fn follow_begun(api: Service, remote: RemoteRun) -> FollowedRun<Self> {
        let mut link = RunLink::new(api, remote);
        link.check_later();
        FollowedRun { link, vendor: Self::default() }
    }

    /// Follows a run begun earlier; the first check is made at once, in place of the one soon after the submit.
    pub(super) fn resume(api: Service, remote: RemoteRun) -> FollowedRun<Self> {
        let mut run = Self::follow_begun(api, remote);
        run.link.check_at_once();
        run
    }

    /// Checks again before it fails a run that was paid for; soon, because the provider calls its report complete.
    fn report_is_late(
        &mut self,
        link: &mut RunLink,
        body: &[u8],
    ) -> Result<Option<Step>, ProviderError> {
        self.without_report += 1;
        if self.without_report > LATE_REPORT {
            return Err(errors::no_report(&link.service, body));
        }
        link.check_at(link.checks.soon());
        Ok(self.milestones.report_finalizing().map(Step::Progress))
    }
}

#[async_trait]
impl VendorRun for ResearchRun {
    /// There is no stream.
    type Event = Infallible;

    fn parse(_: &mut String) -> Option<Infallible> {
        None
    }

    fn milestones(&mut self) -> &mut Milestones {
        &mut self.milestones
    }

    fn hear(&mut self, _: &mut RunLink, event: Infallible) -> Result<Option<Step>, ProviderError> {
        match event {}
    }

    async fn check(&mut self, link: &mut RunLink) -> Result<Option<Step>, ProviderError> {
        let [version, mode, name] = PATH;
        let answer = link.service.get(&[version, mode, name, &link.remote.id]).await;
        let read = link.read(answer, errors::provider_error, Job::id)?;
        let Some((job, body)) = read else { return Ok(None) };
        match job.status() {
            Status::Completed => match job.response.0.and_then(report::output) {
                Some(output) => Ok(Some(Step::Done { output, raw: Some(body) })),
                None => self.report_is_late(link, &body),
            },
            Status::Failed => {
                let cost = job.response.as_ref().map_or(Cost::Unknown, report::stated_cost);
                Err(errors::research_error(&link.service, job.error_message.as_deref(), cost))
            }
            Status::InProgress => {
                link.check_later();
                Ok(self.milestones.report_processing().map(Step::Progress))
            }
            Status::Waiting => {
                link.check_later();
                Ok(None)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;
    use crate::vendor::{PollIntervals, unreadable};

    fn waits(mut run: FollowedRun<ResearchRun>) -> Vec<u64> {
        let mut waits = Vec::new();
        for round in 0..10 {
            waits.push((run.link.check_at.unwrap() - Instant::now()).as_secs());
            if round % 2 == 0 {
                run.link.checks.handle_failure(&run.link.remote, unreadable()).unwrap();
            } else {
                run.link.checks.handle_not_found().unwrap();
            }
            run.link.check_later();
        }
        waits
    }

    /// A5: the series of waits, kept through every kind of passing error.
    #[tokio::test(start_paused = true)]
    async fn a5_checks_come_1_s_after_the_submit_and_then_in_growing_intervals() {
        let api = Service::nowhere_after(PollIntervals::sonar());
        let remote = remote(&api, "u".to_owned());
        let run = ResearchRun::follow_begun(api.clone(), remote.clone());
        assert_eq!(waits(run), [1, 8, 8, 12, 18, 27, 40, 40, 40, 40]);
        let run = ResearchRun::resume(api, remote);
        assert_eq!(waits(run), [0, 8, 8, 12, 18, 27, 40, 40, 40, 40]);
    }

    /// A5: five minutes of nothing but 404; anything else restarts them.
    #[tokio::test(start_paused = true)]
    async fn a5_a_run_is_lost_after_five_minutes_of_nothing_but_404() {
        let api = Service::nowhere();
        let mut run = ResearchRun::resume(api.clone(), remote(&api, "u".to_owned()));
        for _ in 0..2 {
            for _ in 0..300 {
                run.link.checks.handle_not_found().unwrap();
                tokio::time::advance(std::time::Duration::from_secs(1)).await;
            }
            run.link.checks.handle_failure(&run.link.remote, unreadable()).unwrap();
        }
        run.link.checks.handle_not_found().unwrap();
        tokio::time::advance(std::time::Duration::from_secs(300)).await;
        assert_eq!(
            run.link.checks.handle_not_found().unwrap_err().kind,
            outlast_core::ProviderErrorKind::RunLost
        );
    }
}
