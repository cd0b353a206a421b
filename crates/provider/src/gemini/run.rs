//! A run that is under way. Checks decide what became of it; beside them its stream, while that can be had, tells how
//! far it is.

use async_trait::async_trait;
use outlast_core::{BoxError, Partial, ProviderError, RemoteRun, Run, Step};
use tokio::time::{Instant, sleep_until};

use super::meter::Meter;
use super::report;
use super::wire::{Event, EventKind, Interaction, TextPart};
use crate::vendor::{Checks, EventStream, HttpAnswer, Service, Status};

/// A run of an agent.
pub(super) struct GeminiRun {
    api: Service,
    remote: RemoteRun,
    meter: Meter,
    /// What it has written so far.
    partial: Partial,
    /// The stream, while it is open.
    stream: Option<EventStream>,
    /// Whether the provider gives a stream; one that was refused once is not asked for again.
    streams: bool,
    /// The last event heard.
    last_event: Option<String>,
    checks: Checks,
    /// When the next check is due. Kept here, not in a future, so that a dropped `next` loses no time.
    check_at: Instant,
}

/// What there is to do next.
enum Next {
    Hear(Result<Box<Event>, Option<BoxError>>),
    Check,
}

impl GeminiRun {
    /// A run that was begun; the first check is made at once.
    pub(super) fn new(api: Service, remote: RemoteRun) -> Self {
        Self {
            checks: Checks::after(api.waits(), 0),
            api,
            remote,
            meter: Meter::default(),
            partial: Partial::default(),
            stream: None,
            streams: true,
            last_event: None,
            check_at: Instant::now(),
        }
    }

    /// Waits for an event or for the time of the next check.
    async fn wait(&mut self) -> Next {
        tokio::select! {
            event = next_event(&mut self.stream) => Next::Hear(event.map(Box::new)),
            () = sleep_until(self.check_at) => Next::Check,
        }
    }

    /// What an event means: progress, or a reason to check.
    fn heard(&mut self, event: Event) -> Option<Step> {
        let id = event.event_id.as_ref().filter(|id| !id.is_empty());
        if id.is_some() && id == self.last_event.as_ref() {
            // A repeated event must not count twice.
            return None;
        }
        self.last_event = id.cloned().or(self.last_event.take());
        match event.kind() {
            EventKind::Ended => {
                self.stream = None;
                self.checks.restart();
                self.check_at = Instant::now();
                None
            }
            EventKind::StreamError => {
                self.stream = None;
                None
            }
            kind => {
                self.read(&event, &kind);
                self.meter.event(&event, kind).map(Step::Progress)
            }
        }
    }

    /// What an event adds to the text so far. What was written before a search is no part of the report.
    fn read(&mut self, event: &Event, kind: &EventKind) {
        match kind {
            EventKind::Searched { .. } => self.partial = Partial::default(),
            EventKind::OutputBegins if !self.partial.is_empty() => self.partial.push("\n\n"),
            EventKind::Wrote { .. } => self.partial.push(event.written().unwrap_or_default()),
            _ => {}
        }
    }

    fn stream_ended(&mut self, error: Option<BoxError>) {
        let error = error.map(|error| error.to_string());
        tracing::debug!(remote.id = self.remote.short_id(), error, "the stream ended early");
        self.stream = None;
    }

    /// Looks at the run once, and takes up its stream if it goes on.
    async fn check(&mut self) -> Result<Option<Step>, ProviderError> {
        let answer = self.api.look(&self.remote.id, self.api.timeout()).await;
        let trouble = |answer: &HttpAnswer| self.api.refused_look(answer);
        let shown = self.checks.shown::<Interaction>(&self.remote, answer, trouble)?;
        let Some((mut interaction, body)) = shown else {
            self.check_at = self.checks.next();
            return Ok(None);
        };
        self.checks.named(&self.remote, interaction.id());
        match interaction.status() {
            Status::Completed | Status::Incomplete => {
                let step = report::finished(&mut interaction, body);
                step.map(Some).ok_or_else(|| self.api.without_report(&interaction))
            }
            Status::Failed | Status::Cancelled | Status::RequiresAction => {
                Err(self.api.without_report(&interaction))
            }
            Status::Running => {
                self.take_up_stream().await;
                // After the last wait: a call dropped above must not have counted what it did not tell.
                self.check_at = self.checks.next();
                let progress = self.meter.snapshot(&interaction).map(Step::Progress);
                if self.stream.is_none() {
                    let parts = interaction.take_report();
                    let texts: Vec<&str> = parts.iter().filter_map(TextPart::written).collect();
                    self.partial.replace(&texts.join("\n\n"));
                }
                Ok(progress)
            }
        }
    }

    async fn take_up_stream(&mut self) {
        if self.stream.is_some() {
            return;
        }
        let attaching = self.api.attach_after(&self.remote.id, self.last_event.as_deref());
        self.stream = EventStream::taken_up(&mut self.streams, &self.remote, attaching).await;
        if self.stream.is_some() && self.last_event.is_none() {
            self.meter.stream_from_the_beginning();
            self.partial = Partial::default();
        }
    }
}

/// The next event of the stream; waits for ever where there is none.
async fn next_event(stream: &mut Option<EventStream>) -> Result<Event, Option<BoxError>> {
    match stream {
        Some(stream) => stream.next(Event::parse).await,
        None => std::future::pending().await,
    }
}

#[async_trait]
impl Run for GeminiRun {
    fn remote(&self) -> RemoteRun {
        self.remote.clone()
    }

    fn text(&self) -> Option<String> {
        self.partial.shown()
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        if let Some(step) = self.meter.milestones.next(self.api.vendor()) {
            return Ok(step);
        }
        loop {
            let step = match self.wait().await {
                Next::Check => self.check().await?,
                Next::Hear(Ok(event)) => self.heard(*event),
                Next::Hear(Err(error)) => {
                    self.stream_ended(error);
                    None
                }
            };
            if let Some(step) = step {
                return Ok(self.meter.milestones.before(step));
            }
        }
    }
}
