//! A session that works for a job. The order of its first steps is what makes "never paid twice" true: what is about to
//! be sent is recorded before it is sent, and where a process finds that on record it looks, waits and never sends (G4).

use async_trait::async_trait;
use outlast_core::{
    BeginError, ProviderError, RemoteRun, ResearchAsk, Run, RunStatus, Step, Timestamp, Trouble,
};
use tokio::time::{Instant, timeout_at};

use super::cursor::Cursor;
use super::draft::Draft;
use super::ends::{self, End};
use super::meter::Meter;
use super::report;
use super::wire::{self, Event, Session};
use crate::provider_error::provider_error;
use crate::vendor::{Checks, EventStream, HttpAnswer, Service, Waits, object};

/// A session and the question that is sent into it.
pub(super) struct SessionRun {
    service: Service,
    remote: RemoteRun,
    /// The question as it is sent.
    question: Vec<String>,
    cursor: Cursor,
    /// Whether this process recorded that it is about to send, and has not begun to.
    may_send: bool,
    /// Why the question was refused, once that is on record.
    refused: Option<ProviderError>,
    meter: Meter,
    draft: Draft,
    source: Source,
    /// Whether the provider gives a stream that is worth having: one was not refused, and has not told the end.
    streams: bool,
    checks: Checks,
}

/// Where news of the session come from.
enum Source {
    /// Events arrive; without one until then, a check is made.
    Stream { events: Box<EventStream>, until: Instant },
    /// Checks; the next is due at `at`. Kept here, not in a future, so that a dropped `next` loses no time.
    Check { at: Instant },
}

impl SessionRun {
    /// A session as far as it is on record; the first look is taken at once.
    pub(super) fn new(service: Service, remote: RemoteRun, request: &ResearchAsk) -> Self {
        Self {
            checks: Checks::after(service.waits(), 0),
            cursor: Cursor::recorded(remote.cursor.as_deref()),
            question: wire::question(request),
            service,
            remote,
            may_send: false,
            refused: None,
            meter: Meter::default(),
            draft: Draft::default(),
            source: Source::Check { at: Instant::now() },
            streams: true,
        }
    }

    /// Changes what is on record; the engine records it before it calls again.
    fn moved(&mut self, cursor: Cursor) -> Step {
        self.cursor = cursor;
        self.remote.cursor = cursor.to_record();
        Step::Moved
    }

    /// Not sent yet: looks whether the question is there already, and records that it is about to be sent.
    async fn prepare(&mut self) -> Result<Option<Step>, ProviderError> {
        let Some(events) = self.look().await? else { return Ok(None) };
        self.check_at_once();
        if ends::has_begun(&events) {
            return Ok(Some(self.moved(Cursor::Sent)));
        }
        self.may_send = true;
        Ok(Some(self.moved(Cursor::Sending { at: self.service.now() })))
    }

    /// Sends the question, once. A call that is dropped on the way may have sent it: then looks decide.
    async fn send(&mut self, recorded_at: Timestamp) -> Option<Step> {
        self.may_send = false;
        let Waits { grace, step_limit, .. } = self.service.waits();
        // A process that slept since it recorded this would send when others have stopped looking.
        if self.service.now() > recorded_at.after(grace.saturating_sub(*step_limit)) {
            return Some(self.moved(Cursor::Ready));
        }
        let event = wire::question_event(&self.question);
        match self.service.ask(&self.remote.id, &event).await {
            Ok(()) => Some(self.moved(Cursor::Sent)),
            Err(BeginError::NotSent(error) | BeginError::Refused(error)) => {
                Some(self.refuse(error))
            }
            Err(BeginError::Unknown(error)) => {
                tracing::warn!(
                    remote.id = self.remote.short_id(), %error,
                    "whether the question was accepted is not known, will look for it"
                );
                self.source = Source::Check { at: self.checks.soon() };
                None
            }
        }
    }

    /// The question was certainly not accepted: on record first, so that another try may send it.
    fn refuse(&mut self, error: ProviderError) -> Step {
        self.refused = Some(error);
        self.moved(Cursor::Ready)
    }

    /// Perhaps sent: looks for the question until the grace has ended, and once more. It is never sent from here: that the
    /// list shows at once what was accepted is not documented.
    async fn search(&mut self, sent_by: Timestamp) -> Result<Option<Step>, ProviderError> {
        let grace = self.service.waits().grace;
        let is_last = self.service.now() >= sent_by.after(grace);
        let Some(events) = self.look().await? else { return Ok(None) };
        if ends::has_begun(&events) {
            self.check_at_once();
            return Ok(Some(self.moved(Cursor::Sent)));
        }
        if is_last {
            let sentence = "the question was sent to Anthropic without an answer, and its session does not show it";
            return Err(provider_error(Trouble::StepUnknown, sentence));
        }
        let left = sent_by.after(grace).since(self.service.now());
        self.source = Source::Check { at: self.checks.next().min(Instant::now() + left) };
        Ok(None)
    }

    /// All events there are, or `None` where they must be looked for again.
    async fn look(&mut self) -> Result<Option<Vec<Event>>, ProviderError> {
        let answered = match self.service.events(&self.remote.id).await {
            Ok(Ok(events)) => {
                self.checks.found();
                return Ok(Some(events));
            }
            Ok(Err(answer)) => Ok(answer),
            Err(error) => Err(error),
        };
        let trouble = |answer: &HttpAnswer| self.service.trouble(answer);
        // A success never comes here, so there is no body to use.
        self.checks.body(&self.remote, answered, trouble)?;
        self.wait_for_next_check();
        Ok(None)
    }

    /// Looks at the session once, and takes up its stream if it goes on. The stream has no beginning, so it is opened before
    /// the events so far are read: none falls between.
    async fn check(&mut self) -> Result<Option<Step>, ProviderError> {
        let attaching = self.service.stream(&self.remote.id);
        let stream = EventStream::taken_up(&mut self.streams, &self.remote, attaching).await;
        let Some(events) = self.look().await? else { return Ok(None) };
        if let Some(end) = End::of(&events) {
            return self.ended(end, &events).await;
        }
        match stream {
            Some(events) => {
                let until = Instant::now() + self.service.waits().silence;
                self.source = Source::Stream { events: Box::new(events), until };
            }
            None => self.wait_for_next_check(),
        }
        self.draft.replace(&report::text(&events).unwrap_or_default());
        // After the last wait: a call dropped above must not have counted what it did not tell.
        Ok(events.iter().filter_map(|event| self.meter.event(event)).last().map(Step::Progress))
    }

    /// The session has ended: its usage is read, and its report is made.
    async fn ended(&mut self, end: End, events: &[Event]) -> Result<Option<Step>, ProviderError> {
        let answer = self.service.get(&["v1", "sessions", &self.remote.id]).await;
        let trouble = |answer: &HttpAnswer| self.service.trouble(answer);
        let shown = self.checks.shown::<Session>(&self.remote, answer, trouble)?;
        let Some((session, body)) = shown else {
            self.wait_for_next_check();
            return Ok(None);
        };
        self.checks.named(&self.remote, session.id());
        let error = events.iter().rev().find_map(Event::session_error);
        let output = match end.keeps_its_text(error) {
            true => report::output(events, &session, end),
            false => None,
        };
        match output {
            Some(output) => Ok(Some(Step::Done { output: Box::new(output), raw: Some(body) })),
            None => {
                let said = error.map(|error| error.said()).or_else(|| wire::explanation(events));
                let said = said.map(|said| self.service.redacted(&said));
                let error = ends::without_report(self.service.vendor(), end, error, said);
                Err(ProviderError { run: RunStatus::Ended(report::stated_cost(&session)), ..error })
            }
        }
    }

    /// What an event of the stream means: progress, or nothing to speak of. Ends are told by checks alone.
    fn heard(&mut self, event: &Event) -> Option<Step> {
        self.checks.restart();
        if event.may_end_the_session() {
            self.streams = false;
            self.check_at_once();
        } else if let Source::Stream { until, .. } = &mut self.source {
            *until = Instant::now() + self.service.waits().silence;
        }
        self.draft.event(event);
        self.meter.event(event).map(Step::Progress)
    }

    fn check_at_once(&mut self) {
        self.source = Source::Check { at: Instant::now() };
    }

    fn wait_for_next_check(&mut self) {
        self.source = Source::Check { at: self.checks.next() };
    }

    /// Follows the session for one event or one check.
    async fn follow(&mut self) -> Result<Option<Step>, ProviderError> {
        match &mut self.source {
            Source::Check { at } => {
                tokio::time::sleep_until(*at).await;
                self.check().await
            }
            Source::Stream { events, until } => match timeout_at(*until, events.data()).await {
                Ok(Ok(data)) => {
                    Ok(object::<Event>(data.as_bytes()).and_then(|event| self.heard(&event)))
                }
                // The stream broke, ended, or is silent: a check says how the session is.
                Ok(Err(_)) => {
                    self.source = Source::Check { at: self.checks.next() };
                    Ok(None)
                }
                Err(_) => {
                    self.check_at_once();
                    Ok(None)
                }
            },
        }
    }

    async fn due(&self) {
        if let Source::Check { at } = &self.source {
            tokio::time::sleep_until(*at).await;
        }
    }
}

#[async_trait]
impl Run for SessionRun {
    fn remote(&self) -> RemoteRun {
        self.remote.clone()
    }

    fn text(&self) -> Option<String> {
        self.draft.shown()
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        if let Some(step) = self.meter.milestones.next(self.service.vendor()) {
            return Ok(step);
        }
        if let Some(error) = self.refused.take() {
            return Err(not_charged(error));
        }
        loop {
            let step = match self.cursor {
                Cursor::Ready => {
                    self.due().await;
                    self.prepare().await.map_err(not_charged)?
                }
                Cursor::Sending { at } if self.may_send => self.send(at).await,
                Cursor::Sending { at } => {
                    self.due().await;
                    self.search(at).await?
                }
                Cursor::Sent => self.follow().await?,
            };
            if let Some(step) = step {
                return Ok(self.meter.milestones.before(step));
            }
        }
    }
}

/// The same error, of a session that no question was accepted in: it has cost nothing.
fn not_charged(error: ProviderError) -> ProviderError {
    ProviderError { run: RunStatus::NotCharged, ..error }
}
