//! A run that is under way: its event stream while that can be had, else checks at growing intervals (A5).

use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{ProviderError, RemoteRun, Run, Step};
use reqwest::{Response, StatusCode};
use tokio::time::Instant;

use super::agent::Agent;
use super::errors;
use super::meter::Meter;
use super::report;
use super::wire::{self, Event, Status};
use crate::sse::Decoder;

/// Waits between checks while the stream cannot be had; the last one repeats.
const CHECKS: [Duration; 6] = [
    Duration::from_secs(1),
    Duration::from_secs(2),
    Duration::from_secs(3),
    Duration::from_secs(5),
    Duration::from_secs(8),
    Duration::from_secs(10),
];

/// A run may be missing for a moment after it was accepted; it is gone only when missing later than this.
const SETTLED_AFTER: Duration = Duration::from_secs(30);

/// A run of the Agent API.
pub(super) struct AgentRun {
    agent: Agent,
    remote: RemoteRun,
    /// The number of the last event seen.
    cursor: u64,
    meter: Meter,
    line: Line,
    /// Whether a stream was refused: then only checks are made.
    streams: bool,
    not_found: u32,
}

/// How we hear of the run.
enum Line {
    /// Events arrive.
    Stream(Box<EventStream>),
    /// Nothing arrives; look at `at`. Kept here, not in a future, so that a dropped `next` loses no time.
    Check { at: Instant, made: usize },
}

impl AgentRun {
    /// A run whose stream we already hold.
    pub(super) fn streaming(
        agent: Agent,
        remote: RemoteRun,
        stream: EventStream,
        seen: Option<u64>,
    ) -> Self {
        Self {
            line: Line::Stream(Box::new(stream)),
            cursor: seen.unwrap_or(0),
            ..Self::resumed(agent, remote)
        }
    }

    /// A run begun earlier; the first check is made at once.
    pub(super) fn resumed(agent: Agent, remote: RemoteRun) -> Self {
        Self {
            agent,
            remote,
            cursor: 0,
            meter: Meter::default(),
            line: Line::Check { at: Instant::now(), made: 0 },
            streams: true,
            not_found: 0,
        }
    }

    /// What an event means: a step, or nothing to speak of.
    fn heard(&mut self, event: Event) -> Result<Option<Step>, ProviderError> {
        if let Some(number) = event.sequence_number {
            self.cursor = number;
        }
        match event.status() {
            Some(Status::Running) | None => Ok(self.meter.event(&event).map(Step::Progress)),
            // The terminal object comes with the event; when it does not, the next check brings it.
            Some(Status::Completed | Status::Incomplete) => match event.response {
                Some(response) => report::finished(response, event.raw).map(Some),
                None => {
                    self.check_at_once();
                    Ok(None)
                }
            },
            Some(status @ (Status::Failed | Status::Cancelled | Status::RequiresAction)) => {
                let error = event.error.or(event.response.and_then(|response| response.error));
                Err(errors::run_ended(status, error))
            }
        }
    }

    fn check_at_once(&mut self) {
        self.line = Line::Check { at: Instant::now(), made: 0 };
    }

    /// Looks at the run once, and takes up its stream if it goes on.
    async fn check(&mut self) -> Result<Option<Step>, ProviderError> {
        let answer = match self.agent.check(&self.remote.id).await {
            Ok(answer) => answer,
            Err(error) => return self.in_passing(error),
        };
        if answer.status == StatusCode::NOT_FOUND {
            return self.missing();
        }
        self.not_found = 0;
        if !answer.status.is_success() {
            let error = self.agent.trouble(&answer);
            return if error.trouble.is_permanent() { Err(error) } else { self.in_passing(error) };
        }
        let Some(response) = wire::Response::parse(&answer.body) else {
            return self.in_passing(errors::malformed("the provider's answer cannot be read"));
        };
        match response.status() {
            Status::Completed | Status::Incomplete => {
                report::finished(response, answer.body).map(Some)
            }
            status @ (Status::Failed | Status::Cancelled | Status::RequiresAction) => {
                Err(errors::run_ended(status, response.error))
            }
            Status::Running => {
                let progress = self.meter.snapshot(&response);
                self.take_up_stream().await;
                Ok(progress.map(Step::Progress))
            }
        }
    }

    async fn take_up_stream(&mut self) {
        if self.streams {
            match self.agent.attach(&self.remote.id, self.cursor).await {
                Ok(Some(stream)) => {
                    self.line = Line::Stream(Box::new(stream));
                    return;
                }
                Ok(None) => self.streams = false,
                Err(error) => {
                    tracing::debug!(remote.id = %self.remote.id, %error, "no stream this time")
                }
            }
        }
        self.wait_for_next_check();
    }

    /// A check that failed in passing keeps the series and is not a failed try.
    fn in_passing(&mut self, error: ProviderError) -> Result<Option<Step>, ProviderError> {
        tracing::warn!(remote.id = %self.remote.id, %error, detail = error.detail, "a check failed, will look again");
        self.wait_for_next_check();
        Ok(None)
    }

    fn missing(&mut self) -> Result<Option<Step>, ProviderError> {
        self.not_found += 1;
        let age = self.agent.now().since(self.remote.begun_at);
        if self.not_found >= 2 && age >= SETTLED_AFTER {
            return Err(errors::gone());
        }
        self.wait_for_next_check();
        Ok(None)
    }

    fn wait_for_next_check(&mut self) {
        let made = match &self.line {
            Line::Stream(_) => 0,
            Line::Check { made, .. } => *made,
        };
        let wait = CHECKS[made.min(CHECKS.len() - 1)];
        self.line = Line::Check { at: Instant::now() + wait, made: made + 1 };
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
            let step = match &mut self.line {
                Line::Check { at, .. } => {
                    tokio::time::sleep_until(*at).await;
                    self.check().await?
                }
                Line::Stream(stream) => match stream.next().await {
                    Ok(event) => self.heard(event)?,
                    Err(error) => {
                        let error = error.map(|error| error.to_string());
                        tracing::debug!(remote.id = %self.remote.id, error, "the stream ended early");
                        // A stream that brought something is worth taking up again at once.
                        if stream.brought_events() {
                            self.check_at_once()
                        } else {
                            self.wait_for_next_check()
                        }
                        None
                    }
                },
            };
            if let Some(step) = step {
                return Ok(step);
            }
        }
    }
}

/// Events as they arrive over one connection.
pub(super) struct EventStream {
    response: Response,
    decoder: Decoder,
    events: u64,
}

impl EventStream {
    pub(super) fn new(response: Response) -> Self {
        Self { response, decoder: Decoder::default(), events: 0 }
    }

    fn brought_events(&self) -> bool {
        self.events > 0
    }

    /// The next event that is one; keep-alives, `[DONE]` and what is no JSON are passed over. `Err(None)` is
    /// a clean end. Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Event, Option<outlast_core::BoxError>> {
        loop {
            while let Some(frame) = self.decoder.next() {
                if let Some(event) = Event::parse(frame.data) {
                    self.events += 1;
                    return Ok(event);
                }
            }
            let chunk =
                self.response.chunk().await.map_err(|error| Some(error.without_url().into()))?;
            let chunk = chunk.ok_or(None)?;
            self.decoder.push(&chunk).map_err(|error| Some(error.into()))?;
        }
    }
}
