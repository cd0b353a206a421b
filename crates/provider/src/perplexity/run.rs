//! A run that is under way: its event stream while that can be had, else checks at growing intervals (A5).

use async_trait::async_trait;
use outlast_core::{BoxError, ProviderError, RemoteRun, Run, Step};
use reqwest::StatusCode;
use tokio::time::Instant;

use super::api::{Api, Attached};
use super::errors;
use super::events::EventStream;
use super::meter::Meter;
use super::report;
use super::waits::NotFound;
use super::wire::{self, Event, Status};

/// A run of the Agent API.
pub(super) struct AgentRun {
    api: Api,
    remote: RemoteRun,
    /// The number of the last event heard.
    cursor: u64,
    meter: Meter,
    line: Line,
    /// Whether a stream was refused: then only checks are made.
    streams: bool,
    /// Waits for a check since the last event.
    waited: usize,
    not_found: NotFound,
    /// The end, once it is known and while it is not told.
    done: Option<Step>,
}

/// How we hear of the run.
enum Line {
    /// Events arrive.
    Stream {
        events: Box<EventStream>,
        /// Whether it brought an event we had not heard.
        news: bool,
    },
    /// Nothing arrives; look at `at`. Kept here, not in a future, so that a dropped `next` loses no time.
    Check { at: Instant },
}

impl AgentRun {
    /// A run whose stream we already hold, and have heard up to the event of this number.
    pub(super) fn streaming(
        api: Api,
        remote: RemoteRun,
        events: EventStream,
        heard: Option<u64>,
    ) -> Self {
        Self {
            line: Line::Stream { events: Box::new(events), news: true },
            cursor: heard.unwrap_or(0),
            ..Self::resumed(api, remote)
        }
    }

    /// A run begun earlier; the first check is made at once.
    pub(super) fn resumed(api: Api, remote: RemoteRun) -> Self {
        Self {
            api,
            remote,
            cursor: 0,
            meter: Meter::default(),
            line: Line::Check { at: Instant::now() },
            streams: true,
            waited: 0,
            not_found: NotFound::default(),
            done: None,
        }
    }

    /// What an event means: a step, or nothing to speak of.
    fn heard(&mut self, event: Event) -> Result<Option<Step>, ProviderError> {
        let known = event.sequence_number.is_some_and(|number| number <= self.cursor);
        if let Some(number) = event.sequence_number
            && !known
        {
            self.cursor = number;
            self.waited = 0;
            if let Line::Stream { news, .. } = &mut self.line {
                *news = true;
            }
        }
        if event.is_stream_error() {
            // It speaks of the stream. Whether the run has ended too is for a check to say: a run taken for
            // failed would be bought again.
            self.wait_for_next_check();
            return Ok(None);
        }
        match event.status() {
            // Told again: it must not count twice.
            Some(Status::Running) | None if known => Ok(None),
            Some(Status::Running) | None => Ok(self.meter.event(&event).map(Step::Progress)),
            Some(status @ (Status::Completed | Status::Incomplete)) => {
                let mut response = event.response.unwrap_or_default();
                let step = report::finished(status, &mut response, event.raw);
                if step.is_none() {
                    // The event came without the report; the check that follows has the last word.
                    self.check_at_once();
                }
                Ok(step)
            }
            Some(status @ (Status::Failed | Status::Cancelled | Status::RequiresAction)) => {
                let error = event.error.or(event.response.and_then(|response| response.error));
                Err(self.api.run_ended(status, error))
            }
        }
    }

    /// A stream that brought something is worth taking up again at once.
    fn stream_ended(&mut self, error: Option<BoxError>) {
        let error = error.map(|error| error.to_string());
        tracing::debug!(remote.id = self.remote.short_id(), error, "the stream ended early");
        match self.line {
            Line::Stream { news: true, .. } => self.check_at_once(),
            Line::Stream { news: false, .. } | Line::Check { .. } => self.wait_for_next_check(),
        }
    }

    /// Looks at the run once, and takes up its stream if it goes on.
    async fn check(&mut self) -> Result<Option<Step>, ProviderError> {
        let answer = match self.api.get(&["v1", "agent", &self.remote.id]).await {
            Ok(answer) => answer,
            Err(error) => return self.in_passing(error),
        };
        if answer.status == StatusCode::NOT_FOUND {
            return self.missing();
        }
        if !answer.status.is_success() {
            return self.in_passing(self.api.trouble(&answer));
        }
        self.not_found.broken();
        let Some(mut response) = wire::Response::parse(&answer.body) else {
            return self.in_passing(errors::malformed("the provider's answer cannot be read"));
        };
        match response.status() {
            status @ (Status::Completed | Status::Incomplete) => {
                match report::finished(status, &mut response, answer.body) {
                    Some(step) => Ok(Some(step)),
                    None => Err(self.api.run_ended(status, response.error)),
                }
            }
            status @ (Status::Failed | Status::Cancelled | Status::RequiresAction) => {
                Err(self.api.run_ended(status, response.error))
            }
            Status::Running => {
                self.take_up_stream().await;
                // After the last wait: a call dropped above must not have counted what it did not tell.
                Ok(self.meter.snapshot(&response).map(Step::Progress))
            }
        }
    }

    async fn take_up_stream(&mut self) {
        if self.streams {
            match self.api.attach(&self.remote.id, self.cursor).await {
                Ok(Attached::Stream(events)) => {
                    self.line = Line::Stream { events, news: false };
                    return;
                }
                Ok(Attached::Refused) => self.streams = false,
                Err(error) => {
                    tracing::debug!(remote.id = self.remote.short_id(), %error, "no stream this time")
                }
            }
        }
        self.wait_for_next_check();
    }

    /// A check that failed in passing keeps the series and is not a failed try; trouble that stays ends it.
    fn in_passing(&mut self, error: ProviderError) -> Result<Option<Step>, ProviderError> {
        self.not_found.broken();
        if error.trouble.is_permanent() {
            return Err(error);
        }
        // Without what upstream said: it may repeat what the run was asked, which is not known here.
        tracing::warn!(remote.id = self.remote.short_id(), %error, "a check failed, will look again");
        self.wait_for_next_check();
        Ok(None)
    }

    /// One answer of this kind proves nothing, nor do many in a short time.
    fn missing(&mut self) -> Result<Option<Step>, ProviderError> {
        if self.not_found.again(self.api.waits()) {
            return Err(errors::lost());
        }
        self.wait_for_next_check();
        Ok(None)
    }

    fn check_at_once(&mut self) {
        self.line = Line::Check { at: Instant::now() };
    }

    fn wait_for_next_check(&mut self) {
        self.line = Line::Check { at: Instant::now() + self.api.waits().after(self.waited) };
        self.waited += 1;
    }
}

#[async_trait]
impl Run for AgentRun {
    fn remote(&self) -> RemoteRun {
        self.remote.clone()
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        if let Some(progress) = self.meter.start() {
            return Ok(Step::Progress(progress));
        }
        loop {
            if let Some(done) = self.done.take() {
                return Ok(done);
            }
            let step = match &mut self.line {
                Line::Check { at } => {
                    tokio::time::sleep_until(*at).await;
                    self.check().await?
                }
                Line::Stream { events, .. } => match events.next().await {
                    Ok(event) => self.heard(event)?,
                    Err(error) => {
                        self.stream_ended(error);
                        None
                    }
                },
            };
            let Some(step) = step else { continue };
            if matches!(step, Step::Done { .. })
                && let Some(progress) = self.meter.finalizing()
            {
                self.done = Some(step);
                return Ok(Step::Progress(progress));
            }
            return Ok(step);
        }
    }
}

#[cfg(test)]
mod tests;
