//! A session that works for a job. The order of its first steps is what makes "never paid twice" true: a question is
//! recorded as about to be sent before it is sent, and a process that finds such a record looks, waits and never sends (G4).

use async_trait::async_trait;
use outlast_core::{
    BeginError, ProviderError, ProviderErrorKind, RemoteRun, ResearchRequest, RunStatus, Step,
    Timestamp,
};
use tokio::time::Instant;

use super::progress::{Draft, Meter};
use super::report::{self, End};
use super::wire::{self, AgentSession, Event};
use crate::vendor::{
    FollowedRun, HttpAnswer, Milestones, PollIntervals, RunLink, Service, VendorRun, object,
};

/// A session and the question that is sent into it.
pub(super) struct SessionRun {
    /// The question as it is sent.
    question: Vec<String>,
    cursor: Cursor,
    /// True if this process recorded that it is about to send, and has not begun to.
    may_send: bool,
    /// The refusal of the question, from when it was recorded until it is returned.
    refused: Option<ProviderError>,
    meter: Meter,
    draft: Draft,
}

impl SessionRun {
    /// Follows a session from its recorded state; the first look is taken at once.
    pub(super) fn follow(
        service: Service,
        remote: RemoteRun,
        request: &ResearchRequest,
    ) -> FollowedRun<Self> {
        let vendor = Self {
            question: wire::question(request),
            cursor: Cursor::from_cursor(remote.cursor.as_deref()),
            may_send: false,
            refused: None,
            meter: Meter::default(),
            draft: Draft::default(),
        };
        FollowedRun { link: RunLink::new(service, remote), vendor }
    }

    /// Changes the cursor; the engine records it before it calls again.
    fn move_to(&mut self, link: &mut RunLink, cursor: Cursor) -> Step {
        self.cursor = cursor;
        link.remote.cursor = cursor.to_record();
        Step::Moved
    }

    /// Looks for the question in a session it was not sent into yet, and records that it is about to be sent.
    async fn prepare(&mut self, link: &mut RunLink) -> Result<Option<Step>, ProviderError> {
        let Some(events) = look(link).await? else { return Ok(None) };
        link.check_at_once();
        if report::has_begun(&events) {
            return Ok(Some(self.move_to(link, Cursor::Sent)));
        }
        self.may_send = true;
        let at = link.service.now();
        Ok(Some(self.move_to(link, Cursor::Sending { at })))
    }

    /// Sends the question, once. A call that is dropped on the way may have sent it: then looks decide.
    async fn send(&mut self, link: &mut RunLink, recorded_at: Timestamp) -> Option<Step> {
        self.may_send = false;
        let PollIntervals { grace, step_limit, .. } = link.service.waits();
        // A process that slept since it recorded this would send when others have stopped looking.
        if link.service.now() > recorded_at.after(grace.saturating_sub(*step_limit)) {
            return Some(self.move_to(link, Cursor::Ready));
        }
        let event = wire::question_event(&self.question);
        match link.service.ask(&link.remote.id, &event).await {
            Ok(()) => Some(self.move_to(link, Cursor::Sent)),
            Err(BeginError::NotSent(error) | BeginError::Refused(error)) => {
                // Certainly not accepted: recorded first, so that another try may send it.
                self.refused = Some(error);
                Some(self.move_to(link, Cursor::Ready))
            }
            Err(BeginError::Unknown(error)) => {
                tracing::warn!(
                    remote.id = link.remote.short_id(), %error,
                    "sent the question without an answer; looking for it in its session"
                );
                link.check_at(link.checks.soon());
                None
            }
        }
    }

    /// Looks for a question that may have been sent, until the grace has ended, and once more. It is never sent from here: the
    /// vendor does not document that the list shows at once what was accepted.
    async fn search(
        &mut self,
        link: &mut RunLink,
        sent_by: Timestamp,
    ) -> Result<Option<Step>, ProviderError> {
        let grace = link.service.waits().grace;
        let is_last = link.service.now() >= sent_by.after(grace);
        let Some(events) = look(link).await? else { return Ok(None) };
        if report::has_begun(&events) {
            link.check_at_once();
            return Ok(Some(self.move_to(link, Cursor::Sent)));
        }
        if is_last {
            let sentence = "the question was sent to Anthropic without an answer, and its session does not show it";
            return Err(ProviderError::new(ProviderErrorKind::StepUnknown, sentence));
        }
        let left = sent_by.after(grace).since(link.service.now());
        let at = link.checks.next().min(Instant::now() + left);
        link.check_at(at);
        Ok(None)
    }

    /// Looks at the session once, and follows its stream if it goes on. The stream has no beginning, so it is opened before
    /// the events so far are read: none falls between.
    async fn look_and_follow(&mut self, link: &mut RunLink) -> Result<Option<Step>, ProviderError> {
        link.close_stream();
        let (service, id) = (link.service.clone(), link.remote.id.clone());
        let stream = link.attach(service.stream(&id)).await;
        let Some(events) = look(link).await? else { return Ok(None) };
        if let Some(end) = End::of(&events) {
            return self.finish(link, end, &events).await;
        }
        match stream {
            Some(stream) => link.follow(stream, Some(Instant::now() + service.waits().silence)),
            None => link.check_later(),
        }
        self.draft.replace(&report::text(&events).unwrap_or_default());
        // After the last wait: a call dropped above must not have counted what it did not report.
        Ok(events.iter().filter_map(|event| self.meter.event(event)).last().map(Step::Progress))
    }

    /// Reads the usage of a session that has ended, and makes its report.
    async fn finish(
        &mut self,
        link: &mut RunLink,
        end: End,
        events: &[Event],
    ) -> Result<Option<Step>, ProviderError> {
        let answer = link.service.get(&["v1", "sessions", &link.remote.id]).await;
        let read = link.read(answer, Service::provider_error, AgentSession::id)?;
        let Some((session, body)) = read else { return Ok(None) };
        let error = events.iter().rev().find_map(Event::session_error);
        if let Some(output) = report::final_report(events, &session, end) {
            return Ok(Some(Step::Done { output: Box::new(output), raw: Some(body) }));
        }
        let said = error.map(|error| error.text()).or_else(|| wire::explanation(events));
        let said = said.map(|said| link.service.redact(&said));
        let error = report::without_report(link.service.vendor(), end, error, said);
        Err(ProviderError { run: RunStatus::Ended(report::stated_cost(&session)), ..error })
    }
}

/// Reads all events of the session; `None` when it must be looked at again.
async fn look(link: &mut RunLink) -> Result<Option<Vec<Event>>, ProviderError> {
    let answered = match link.service.events(&link.remote.id).await {
        Ok(Ok(events)) => {
            link.checks.handle_found();
            return Ok(Some(events));
        }
        Ok(Err(answer)) => Ok(answer),
        Err(error) => Err(error),
    };
    let to_error = |answer: &HttpAnswer| link.service.provider_error(answer);
    // A success never comes here, so there is no body to use.
    link.checks.body(&link.remote, answered, to_error)?;
    link.check_later();
    Ok(None)
}

#[async_trait]
impl VendorRun for SessionRun {
    type Event = Event;

    fn parse(data: &mut String) -> Option<Event> {
        object(data.as_bytes())
    }

    fn text(&self) -> Option<String> {
        self.draft.visible_text()
    }

    fn milestones(&mut self) -> &mut Milestones {
        &mut self.meter.milestones
    }

    /// Counts and shows an event. Only a check reports an end; a silent stream may have lost its session, so it has a check
    /// too.
    fn hear(&mut self, link: &mut RunLink, event: Event) -> Result<Option<Step>, ProviderError> {
        link.checks.restart();
        if event.may_end_the_session() {
            link.stop_streaming();
            link.check_at_once();
        } else {
            link.check_at(Instant::now() + link.service.waits().silence);
        }
        self.draft.event(&event);
        Ok(self.meter.event(&event).map(Step::Progress))
    }

    fn stream_ended(&mut self, link: &mut RunLink) {
        link.check_later();
    }

    async fn check(&mut self, link: &mut RunLink) -> Result<Option<Step>, ProviderError> {
        if let Some(error) = self.refused.take() {
            return Err(not_charged(error));
        }
        match self.cursor {
            Cursor::Ready => self.prepare(link).await.map_err(not_charged),
            Cursor::Sending { at } if self.may_send => Ok(self.send(link, at).await),
            Cursor::Sending { at } => self.search(link, at).await,
            Cursor::Sent => self.look_and_follow(link).await,
        }
    }
}

/// The same error, of a session that accepted no question: it has cost nothing.
fn not_charged(error: ProviderError) -> ProviderError {
    ProviderError { run: RunStatus::NotCharged, ..error }
}

const SENDING: &str = "sending@";
const SENT: &str = "sent";

/// The progress of the question into the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cursor {
    /// It was not, or certainly not accepted.
    Ready,
    /// It is about to be sent, or was sent, at this time by the store's clock. After a crash that cannot be known.
    Sending { at: Timestamp },
    /// It was accepted.
    Sent,
}

impl Cursor {
    /// Reads what was recorded. A cursor of another version may mean anything, so it counts as sent: nothing is paid
    /// for on a guess.
    fn from_cursor(cursor: Option<&str>) -> Self {
        let Some(cursor) = cursor else { return Self::Ready };
        let at = cursor.strip_prefix(SENDING).and_then(|at| at.parse().ok());
        at.map_or(Self::Sent, |at| Self::Sending { at: Timestamp::from_millis(at) })
    }

    /// The text to record.
    fn to_record(self) -> Option<String> {
        match self {
            Self::Ready => None,
            Self::Sending { at } => Some(format!("{SENDING}{}", at.as_millis())),
            Self::Sent => Some(SENT.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G4: what was recorded is read back, and what cannot be read sends nothing.
    #[test]
    fn g4_a_cursor_is_read_as_it_was_recorded() {
        let at = Timestamp::from_millis(1_700_000_000_123);
        for cursor in [Cursor::Ready, Cursor::Sending { at }, Cursor::Sent] {
            assert_eq!(Cursor::from_cursor(cursor.to_record().as_deref()), cursor);
        }
        for odd in ["", "sending@", "sending@soon", "ready"] {
            assert_eq!(Cursor::from_cursor(Some(odd)), Cursor::Sent, "{odd}");
        }
    }
}
