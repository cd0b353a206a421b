//! The vendor's JSON, known to no other module. Everything is optional and every set is open; what has another type
//! than we know is taken to be absent: one odd field must not hide the id, or the report, next to it.

mod submit;
mod step;
mod citation;
mod usage;
mod event;
mod errors;
mod agents;

use serde::Deserialize;

use crate::responses::wire::is_name;
use crate::vendor::lenient::{Items, Known};
use crate::vendor::{RunError, Status};
pub(super) use agents::listed_agents;
pub(super) use citation::Citation;
pub(super) use errors::Envelope;
pub(super) use event::{Event, EventKind};
pub(super) use step::TextPart;
use step::{Step, steps};
pub(super) use submit::submit;
pub(super) use usage::Usage;

/// A run's state.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Interaction {
    id: Known<String>,
    status: Known<String>,
    agent: Known<String>,
    model: Known<String>,
    #[serde(default, deserialize_with = "steps")]
    steps: Option<Vec<Step>>,
    /// The predecessor of `steps`, from before the API was finished.
    outputs: Items<TextPart>,
    pub(super) usage: Known<Usage>,
    errors: Items<RunError>,
    error: Known<RunError>,
}

impl Interaction {
    /// The run's name, if it has one.
    pub(super) fn into_id(self) -> Option<String> {
        self.id.0.filter(|id| is_name(id))
    }

    /// The same, of a run that goes on being looked at.
    pub(super) fn id(&self) -> Option<&str> {
        self.id.as_deref().filter(|id| is_name(id))
    }

    pub(super) fn status(&self) -> Status {
        status(self.status.as_deref().unwrap_or_default())
    }

    /// The vendor's word for the limit that it reached.
    pub(super) fn limit(&self) -> Option<&'static str> {
        LIMITS.into_iter().find(|limit| self.status.as_deref() == Some(*limit))
    }

    /// The agent that did the work, or the model.
    pub(super) fn agent(&self) -> Option<&str> {
        let named = [self.agent.as_deref(), self.model.as_deref()];
        named.into_iter().flatten().find(|name| !name.is_empty())
    }

    /// The error that the provider reports, if it does.
    pub(super) fn error(&self) -> Option<&RunError> {
        self.errors.iter().flatten().next().or(self.error.as_ref())
    }

    /// Takes out the report: the texts of the last outputs, with nothing but thoughts between them, in their order.
    /// They may be megabytes: they are moved, not copied.
    pub(super) fn take_report(&mut self) -> Vec<TextPart> {
        let from = self.report_from();
        let steps = self.steps.iter_mut().flatten().skip(from).filter(|step| step.is_output());
        let parts = steps.flat_map(|step| step.content.take().unwrap_or_default());
        let parts: Vec<TextPart> = parts.filter(|part| part.written().is_some()).collect();
        if !parts.is_empty() {
            return parts;
        }
        let outputs = self.outputs.take().unwrap_or_default();
        outputs.into_iter().filter(|part| part.written().is_some()).collect()
    }

    /// The number of words written so far.
    pub(super) fn words(&self) -> usize {
        let steps = self.steps.iter().flatten().skip(self.report_from());
        let parts =
            steps.filter(|step| step.is_output()).flat_map(|step| step.content.iter()).flatten();
        let texts = parts.chain(self.outputs.iter().flatten()).filter_map(TextPart::written);
        texts.map(|text| text.split_whitespace().count()).sum()
    }

    /// The number of queries that were asked.
    pub(super) fn queries(&self) -> usize {
        self.steps.iter().flatten().map(Step::queries).sum()
    }

    /// The number of pages that were read.
    pub(super) fn pages(&self) -> usize {
        self.steps.iter().flatten().map(Step::pages).sum()
    }

    /// The number of the first step of the report.
    fn report_from(&self) -> usize {
        let steps = self.steps.as_deref().unwrap_or_default();
        let Some(last) = steps.iter().rposition(|step| step.is_output() && step.has_text()) else {
            return steps.len();
        };
        let between = |step: &Step| !step.is_output() && !step.is_thought();
        steps[..last].iter().rposition(between).map_or(0, |other| other + 1)
    }
}

/// The words for a limit that a run reached. Going on after the last of them would be another paid request.
const LIMITS: [&str; 3] = ["incomplete", "budget_exceeded", "requires_continuation"];

fn status(name: &str) -> Status {
    if LIMITS.contains(&name) { Status::Incomplete } else { Status::named(name) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::object;

    fn report(body: &str) -> String {
        let parts = object::<Interaction>(body.as_bytes()).unwrap().take_report();
        parts.iter().filter_map(TextPart::written).collect()
    }

    #[test]
    fn unknown_things_nulls_and_other_types_hide_nothing_beside_them() {
        let body = br#"{"id":"v1_a","status":"meditating","agent":7,"model":"m","usage":[],"errors":"none","new":{},
            "steps":[5,{"type":"dream","x":1},{"type":"model_output","content":[{"type":"image","data":"x"},
            {"type":"text","text":"hi","annotations":null},7]}]}"#;
        let mut interaction = object::<Interaction>(body).unwrap();
        assert_eq!(interaction.status(), Status::Running);
        assert_eq!(interaction.agent(), Some("m"));
        assert!(interaction.error().is_none());
        assert_eq!(interaction.take_report()[0].written(), Some("hi"));
        assert_eq!(interaction.into_id().as_deref(), Some("v1_a"));
        for none in ["{}", r#"{"id":""}"#, r#"{"id":7}"#] {
            assert_eq!(object::<Interaction>(none.as_bytes()).unwrap().into_id(), None);
        }
        let long = format!(r#"{{"id":"{}"}}"#, "r".repeat(1_001));
        assert_eq!(object::<Interaction>(long.as_bytes()).unwrap().into_id(), None);
    }

    /// The vendor's own SDK takes the same part of the steps for the text.
    #[test]
    fn the_report_is_the_last_output_and_no_thought() {
        let out = |text: &str| {
            format!(r#"{{"type":"model_output","content":[{{"type":"text","text":"{text}"}}]}}"#)
        };
        let thought = r#"{"type":"thought","summary":[{"type":"text","text":"hm"}]}"#;
        let search = r#"{"type":"google_search_call","id":"c","arguments":{"queries":["a","b"]}}"#;
        let of = |steps: &[&str]| report(&format!(r#"{{"steps":[{}]}}"#, steps.join(",")));
        let (one, two) = (out("one"), out(" two"));
        assert_eq!(of(&[]), "");
        assert_eq!(of(&[thought, search]), "");
        assert_eq!(of(&[&one]), "one");
        assert_eq!(of(&[&one, thought, &two]), "one two");
        assert_eq!(of(&[&one, search, thought, &two, thought]), " two");
        assert_eq!(of(&[&one, &out(""), search]), "one");
        assert_eq!(
            report(r#"{"outputs":[{"type":"thought","text":"hm"},{"type":"text","text":"old"}]}"#),
            "old"
        );
    }

    #[test]
    fn every_status_of_the_vendor_is_known_and_every_other_goes_on() {
        let ends = [
            "completed",
            "incomplete",
            "budget_exceeded",
            "requires_continuation",
            "failed",
            "cancelled",
            "requires_action",
        ];
        assert!(ends.iter().all(|name| status(name).is_terminal()));
        for name in ["", "in_progress", "queued", "COMPLETED", "meditating"] {
            assert_eq!(status(name), Status::Running, "{name}");
        }
    }

    /// However many steps there are, the report is what was paid for.
    #[test]
    fn the_report_is_found_behind_ten_thousand_steps() {
        let thoughts = r#"{"type":"thought"},"#.repeat(12_000);
        let body = format!(
            r#"{{"steps":[{thoughts}{{"type":"model_output","content":[{{"text":"a"}}]}},
            {{"type":"thought"}},{{"type":"model_output","content":[{{"text":"b"}}]}}]}}"#
        );
        assert_eq!(report(&body), "ab");
    }
}
