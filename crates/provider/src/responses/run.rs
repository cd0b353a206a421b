//! A run that is under way: its event stream while that can be had, else checks at growing intervals (A5).

use async_trait::async_trait;
use outlast_core::{BoxError, Partial, ProviderError, RemoteRun, Run, Step};
use tokio::time::Instant;

use super::api::Responses;
use super::meter::Meter;
use super::wire::{Event, Response, TEXT_DELTA};
use crate::vendor::{Checks, EventStream, HttpAnswer, Status};

/// A run, whoever begins it.
pub(crate) struct ResponseRun {
    api: Responses,
    remote: RemoteRun,
    /// The number of the last event heard.
    cursor: u64,
    meter: Meter,
    source: Source,
    /// Whether the provider gives a stream; one that was refused once is not asked for again.
    streams: bool,
    checks: Checks,
    /// True if an event said that it failed, and no more.
    heard_failure: bool,
    /// What it has written so far.
    partial: Partial,
}

/// Where news of the run come from.
enum Source {
    /// Events arrive.
    Stream {
        events: Box<EventStream>,
        /// Whether the stream brought a new event.
        news: bool,
    },
    /// Checks; the next is due at `at`. Kept here, not in a future, so that a dropped `next` loses no time.
    Check { at: Instant },
}

impl ResponseRun {
    /// A run whose stream is open, and was read up to the event of this number.
    pub(crate) fn streaming(
        api: Responses,
        remote: RemoteRun,
        events: EventStream,
        heard: Option<u64>,
    ) -> Self {
        Self {
            source: Source::Stream { events: Box::new(events), news: true },
            cursor: heard.unwrap_or(0),
            ..Self::resumed(api, remote)
        }
    }

    /// A run begun earlier; the first check is made at once.
    pub(crate) fn resumed(api: Responses, remote: RemoteRun) -> Self {
        Self {
            checks: Checks::after(api.service.waits(), 0),
            api,
            remote,
            cursor: 0,
            meter: Meter::default(),
            source: Source::Check { at: Instant::now() },
            streams: true,
            heard_failure: false,
            partial: Partial::default(),
        }
    }

    /// What an event means: a step, or nothing to speak of.
    fn heard(&mut self, event: Event) -> Result<Option<Step>, ProviderError> {
        let known = event.sequence_number.is_some_and(|number| number <= self.cursor);
        if let Some(number) = *event.sequence_number
            && !known
        {
            self.cursor = number;
            self.checks.restart();
            if let Source::Stream { news, .. } = &mut self.source {
                *news = true;
            }
        }
        if event.is_stream_error() {
            // An error of the stream. Whether the run has ended too is for a check to say: a run taken for failed
            // would be bought again.
            self.wait_for_next_check();
            return Ok(None);
        }
        match event.status() {
            // A repeated event must not count twice.
            Some(Status::Running) | None if known => Ok(None),
            Some(Status::Running) | None => {
                self.writes(&event);
                Ok(self.meter.event(&event).map(Step::Progress))
            }
            Some(status @ (Status::Completed | Status::Incomplete)) => {
                let mut response = event.response.0.unwrap_or_default();
                let step = (self.api.dialect.finished)(status, &mut response, event.raw);
                if step.is_none() {
                    // The event came without the report; the check that follows has the last word.
                    self.check_at_once();
                }
                Ok(step)
            }
            // The event does not state what the run cost; a check may.
            Some(Status::Failed) if event.response.is_none() && !self.heard_failure => {
                self.heard_failure = true;
                self.check_at_once();
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

    /// Adds what an event has of the report. Every try hears its stream from the first event on, so nothing is missing.
    fn writes(&mut self, event: &Event) {
        match event.kind.as_str() {
            TEXT_DELTA => {
                self.partial.push(event.delta.as_deref().unwrap_or_default());
            }
            _ if event.opens_the_report() && !self.partial.is_empty() => self.partial.push("\n\n"),
            _ => {}
        }
    }

    /// A stream that brought something is worth taking up again at once.
    fn stream_ended(&mut self, error: Option<BoxError>) {
        let error = error.map(|error| error.to_string());
        tracing::debug!(remote.id = self.remote.short_id(), error, "the stream ended early");
        match self.source {
            Source::Stream { news: true, .. } => self.check_at_once(),
            Source::Stream { news: false, .. } | Source::Check { .. } => self.wait_for_next_check(),
        }
    }

    /// Looks at the run once, and takes up its stream if it goes on.
    async fn check(&mut self) -> Result<Option<Step>, ProviderError> {
        let answer = self.api.service.get(&self.api.names(&self.remote.id)).await;
        let trouble = |answer: &HttpAnswer| self.api.service.trouble(answer);
        let shown = self.checks.shown::<Response>(&self.remote, answer, trouble)?;
        let Some((mut response, body)) = shown else {
            self.wait_for_next_check();
            return Ok(None);
        };
        self.checks.named(&self.remote, response.id().as_deref());
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
                self.take_up_stream().await;
                if !self.streams {
                    self.partial.replace(&response.clone().take_report().0);
                }
                // After the last wait: a call dropped above must not have counted what it did not tell.
                Ok(self.meter.snapshot(&response).map(Step::Progress))
            }
        }
    }

    async fn take_up_stream(&mut self) {
        let attaching = self.api.attach(&self.remote.id, self.cursor);
        match EventStream::taken_up(&mut self.streams, &self.remote, attaching).await {
            Some(events) => {
                self.source = Source::Stream { events: Box::new(events), news: false };
            }
            None => self.wait_for_next_check(),
        }
    }

    fn check_at_once(&mut self) {
        self.source = Source::Check { at: Instant::now() };
    }

    fn wait_for_next_check(&mut self) {
        self.source = Source::Check { at: self.checks.next() };
    }
}

#[async_trait]
impl Run for ResponseRun {
    fn remote(&self) -> RemoteRun {
        self.remote.clone()
    }

    fn text(&self) -> Option<String> {
        self.partial.shown()
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        if let Some(step) = self.meter.milestones.next(self.api.service.vendor()) {
            return Ok(step);
        }
        loop {
            let step = match &mut self.source {
                Source::Check { at } => {
                    tokio::time::sleep_until(*at).await;
                    self.check().await?
                }
                Source::Stream { events, .. } => match events.next(Event::parse).await {
                    Ok(event) => self.heard(event)?,
                    Err(error) => {
                        self.stream_ended(error);
                        None
                    }
                },
            };
            if let Some(step) = step {
                return Ok(self.meter.milestones.before(step));
            }
        }
    }
}

#[cfg(test)]
mod tests;
