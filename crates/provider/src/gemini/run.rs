//! A run of an agent. Checks decide its outcome; the stream, while there is one, only shows progress.

use async_trait::async_trait;
use outlast_core::{Partial, ProviderError, RemoteRun, Step};

use super::meter::Meter;
use super::report;
use super::wire::{Event, EventKind, Interaction, TextPart};
use crate::vendor::{FollowedRun, Milestones, RunLink, Service, Status, VendorRun};

/// A run of an agent.
#[derive(Default)]
pub(super) struct GeminiRun {
    meter: Meter,
    /// The text written so far.
    partial: Partial,
    /// The id of the last event.
    last_event: Option<String>,
}

impl GeminiRun {
    /// Follows a run that was begun; the first check is made at once.
    pub(super) fn follow(api: Service, remote: RemoteRun) -> FollowedRun<Self> {
        FollowedRun { link: RunLink::new(api, remote), vendor: Self::default() }
    }

    /// Adds an event's piece of the text. Text written before a search is not part of the report.
    fn add_text(&mut self, event: &Event, kind: &EventKind) {
        match kind {
            EventKind::Searched { .. } => self.partial = Partial::default(),
            EventKind::OutputBegins if !self.partial.is_empty() => self.partial.push("\n\n"),
            EventKind::Wrote { .. } => self.partial.push(event.text_delta().unwrap_or_default()),
            _ => {}
        }
    }
}

#[async_trait]
impl VendorRun for GeminiRun {
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
        let id = event.event_id.as_ref().filter(|id| !id.is_empty());
        if id.is_some() && id == self.last_event.as_ref() {
            // A repeated event must not count twice.
            return Ok(None);
        }
        self.last_event = id.cloned().or(self.last_event.take());
        match event.kind() {
            EventKind::Ended => {
                link.checks.restart();
                link.check_at_once();
                Ok(None)
            }
            EventKind::StreamError => {
                link.close_stream();
                Ok(None)
            }
            kind => {
                self.add_text(&event, &kind);
                Ok(self.meter.event(&event, kind).map(Step::Progress))
            }
        }
    }

    async fn check(&mut self, link: &mut RunLink) -> Result<Option<Step>, ProviderError> {
        let id = link.remote.id.clone();
        let answer = link.service.get_run(&id, link.service.timeout()).await;
        let read = link.read(answer, Service::call_error, Interaction::id)?;
        let Some((mut interaction, body)) = read else { return Ok(None) };
        match interaction.status() {
            Status::Completed | Status::Incomplete => {
                let step = report::final_step(&mut interaction, body);
                step.map(Some).ok_or_else(|| link.service.without_report(&interaction))
            }
            Status::Failed | Status::Cancelled | Status::RequiresAction => {
                Err(link.service.without_report(&interaction))
            }
            Status::Running => {
                if !link.has_stream() {
                    let service = link.service.clone();
                    let attaching = service.attach_after(&id, self.last_event.as_deref());
                    if let Some(stream) = link.attach(attaching).await {
                        link.follow(stream, None);
                        if self.last_event.is_none() {
                            self.meter.stream_from_the_beginning();
                            self.partial = Partial::default();
                        }
                    }
                }
                // After the last wait: a call dropped above must not have counted what it did not report.
                link.check_later();
                let progress = self.meter.snapshot(&interaction).map(Step::Progress);
                if !link.has_stream() {
                    let parts = interaction.take_report();
                    let texts: Vec<&str> = parts.iter().filter_map(TextPart::report_text).collect();
                    self.partial.replace(&texts.join("\n\n"));
                }
                Ok(progress)
            }
        }
    }
}
