//! A run of the protocol: its events tell how far it is and how it ends; checks stand in for a stream that is not available.

use async_trait::async_trait;
use outlast_core::{Partial, ProviderError, RemoteRun, Step};

use super::Responses;
use super::meter::Meter;
use super::wire::{Event, Response, TEXT_DELTA};
use crate::vendor::{EventStream, FollowedRun, Milestones, RunLink, Service, Status, VendorRun};

/// A run at any vendor that speaks the protocol.
pub(crate) struct ResponseRun {
    api: Responses,
    /// The number of the last event.
    cursor: u64,
    /// True if the stream brought a new event.
    news: bool,
    meter: Meter,
    /// True if an event reported a failure and nothing else.
    heard_failure: bool,
    /// The text written so far.
    partial: Partial,
}

impl ResponseRun {
    /// Follows a run whose stream is open and was read up to the event with this number.
    pub(crate) fn follow_stream(
        api: Responses,
        remote: RemoteRun,
        stream: EventStream,
        last: Option<u64>,
    ) -> FollowedRun<Self> {
        let mut run = Self::resume(api, remote);
        run.link.follow(stream, None);
        run.vendor.news = true;
        run.vendor.cursor = last.unwrap_or(0);
        run
    }

    /// Follows a run begun earlier; the first check is made at once.
    pub(crate) fn resume(api: Responses, remote: RemoteRun) -> FollowedRun<Self> {
        let link = RunLink::new(api.service.clone(), remote);
        let vendor = Self {
            api,
            cursor: 0,
            news: false,
            meter: Meter::default(),
            heard_failure: false,
            partial: Partial::default(),
        };
        FollowedRun { link, vendor }
    }

    /// Adds an event's piece of the report. Every try reads its stream from the first event on, so nothing is missing.
    fn add_text(&mut self, event: &Event) {
        match event.kind.as_str() {
            TEXT_DELTA => self.partial.push(event.delta.as_deref().unwrap_or_default()),
            _ if event.opens_the_report() && !self.partial.is_empty() => self.partial.push("\n\n"),
            _ => {}
        }
    }
}

#[async_trait]
impl VendorRun for ResponseRun {
    type Event = Event;

    fn parse(data: &mut String) -> Option<Event> {
        Event::parse(data)
    }

    fn text(&self) -> Option<String> {
        self.partial.visible_text()
    }

    fn milestones(&mut self) -> &mut Milestones {
        &mut self.meter.milestones
    }

    fn hear(&mut self, link: &mut RunLink, event: Event) -> Result<Option<Step>, ProviderError> {
        let known = event.sequence_number.is_some_and(|number| number <= self.cursor);
        if let Some(number) = *event.sequence_number
            && !known
        {
            self.cursor = number;
            self.news = true;
            link.checks.restart();
        }
        if event.is_stream_error() {
            // The stream failed; only a check can tell if the run did. A run wrongly taken for failed would be bought again.
            link.close_stream();
            link.check_later();
            return Ok(None);
        }
        match event.status() {
            // A repeated event must not count twice.
            Some(Status::Running) | None if known => Ok(None),
            Some(Status::Running) | None => {
                self.add_text(&event);
                Ok(self.meter.event(&event).map(Step::Progress))
            }
            Some(status @ (Status::Completed | Status::Incomplete)) => {
                let mut response = event.response.0.unwrap_or_default();
                let step = (self.api.dialect.finished)(status, &mut response, event.raw);
                if step.is_none() {
                    // The event came without the report; the check that follows has the last word.
                    link.check_at_once();
                }
                Ok(step)
            }
            // The event does not state what the run cost; a check may.
            Some(Status::Failed) if event.response.is_none() && !self.heard_failure => {
                self.heard_failure = true;
                link.check_at_once();
                Ok(None)
            }
            Some(status @ (Status::Failed | Status::Cancelled | Status::RequiresAction)) => {
                let response = event.response.0.unwrap_or_default();
                let cost = self.api.cost(&response);
                let error = event.error.0.or(response.error.0);
                Err(self.api.run_ended(status, error.as_ref(), cost))
            }
        }
    }

    /// Reopens at once a stream that brought something.
    fn stream_ended(&mut self, link: &mut RunLink) {
        match self.news {
            true => link.check_at_once(),
            false => link.check_later(),
        }
    }

    async fn check(&mut self, link: &mut RunLink) -> Result<Option<Step>, ProviderError> {
        let id = link.remote.id.clone();
        let answer = link.service.get(&self.api.names(&id)).await;
        let read = link.read(answer, Service::provider_error, Response::id)?;
        let Some((mut response, body)) = read else { return Ok(None) };
        match response.status() {
            status @ (Status::Completed | Status::Incomplete) => {
                match (self.api.dialect.finished)(status, &mut response, body) {
                    Some(step) => Ok(Some(step)),
                    None => {
                        let cost = self.api.cost(&response);
                        Err(self.api.run_ended(status, response.take_error().as_ref(), cost))
                    }
                }
            }
            status @ (Status::Failed | Status::Cancelled | Status::RequiresAction) => {
                let cost = self.api.cost(&response);
                Err(self.api.run_ended(status, response.error.as_ref(), cost))
            }
            Status::Running => {
                match link.attach(self.api.attach(&id, self.cursor)).await {
                    Some(stream) => {
                        self.news = false;
                        link.follow(stream, None);
                    }
                    None => link.check_later(),
                }
                // After the last wait: a call dropped above must not have counted what it did not report.
                let progress = self.meter.snapshot(&response).map(Step::Progress);
                if !link.may_stream() {
                    self.partial.replace(&response.take_report().0);
                }
                Ok(progress)
            }
        }
    }
}

#[cfg(test)]
mod tests;
