//! The vendor's JSON, known to no other module. Everything is optional and every set is open; what has another type
//! than we know is taken to be absent: one odd field must not hide the id, or the report, next to it.

mod submit;
mod event;

use std::time::Duration;

use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::responses::wire::is_name;
use crate::vendor::lenient::{Items, Lenient, items, long_text, object};
use crate::vendor::{RunError, Status};
pub(super) use event::{Event, EventKind};
pub(super) use submit::submit;

/// A run's state.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Interaction {
    id: Lenient<String>,
    status: Lenient<String>,
    agent: Lenient<String>,
    model: Lenient<String>,
    #[serde(default, deserialize_with = "steps")]
    steps: Option<Vec<Step>>,
    /// The predecessor of `steps`, from before the API was finished.
    outputs: Items<TextPart>,
    pub(super) usage: Lenient<Usage>,
    errors: Items<RunError>,
    error: Lenient<RunError>,
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
        let parts: Vec<TextPart> = parts.filter(|part| part.report_text().is_some()).collect();
        if !parts.is_empty() {
            return parts;
        }
        let outputs = self.outputs.take().unwrap_or_default();
        outputs.into_iter().filter(|part| part.report_text().is_some()).collect()
    }

    /// The number of words written so far.
    pub(super) fn words(&self) -> usize {
        let steps = self.steps.iter().flatten().skip(self.report_from());
        let parts =
            steps.filter(|step| step.is_output()).flat_map(|step| step.content.iter()).flatten();
        let texts = parts.chain(self.outputs.iter().flatten()).filter_map(TextPart::report_text);
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
    if LIMITS.contains(&name) { Status::Incomplete } else { Status::from_name(name) }
}

/// However many steps there are, the last output: it is what was paid for.
fn steps<'de, D: Deserializer<'de>>(list: D) -> Result<Option<Vec<Step>>, D::Error> {
    items(list, || None, Some(Step::on_overflow))
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Step {
    r#type: Lenient<String>,
    content: Items<TextPart>,
    arguments: Lenient<Arguments>,
    result: Items<ToolResult>,
}

impl Step {
    fn is_output(&self) -> bool {
        self.r#type.as_deref() == Some("model_output")
    }

    fn is_thought(&self) -> bool {
        self.r#type.as_deref() == Some("thought")
    }

    fn has_text(&self) -> bool {
        let mut texts = self.content.iter().flatten().filter_map(TextPart::report_text);
        texts.any(|text| !text.is_empty())
    }

    /// The number of queries it asks.
    fn queries(&self) -> usize {
        self.arguments.as_ref().map_or(0, Arguments::queries)
    }

    /// The number of pages it read.
    fn pages(&self) -> usize {
        self.result.iter().flatten().filter(|result| result.is_page()).count()
    }

    /// Keeps the output of a step that a full list has no room for: it is added to the output before it.
    fn on_overflow(list: &mut Vec<Self>, step: &RawValue) {
        let step: Option<Self> = serde_json::from_str(step.get()).ok();
        let Some(step) = step.filter(|step| step.is_output() && step.has_text()) else { return };
        match list.last_mut().filter(|last| last.is_output()) {
            Some(last) => {
                last.content.get_or_insert_default().extend(step.content.0.into_iter().flatten())
            }
            None => list.push(step),
        }
    }
}

/// The arguments of a tool call.
#[derive(Clone, Debug, Default, Deserialize)]
struct Arguments {
    queries: Items<String>,
}

impl Arguments {
    fn queries(&self) -> usize {
        self.queries.as_ref().map_or(0, Vec::len)
    }
}

/// A result of a tool.
#[derive(Clone, Debug, Default, Deserialize)]
struct ToolResult {
    url: Lenient<String>,
}

impl ToolResult {
    fn is_page(&self) -> bool {
        self.url.is_some()
    }
}

/// A piece of text and what it cites.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct TextPart {
    r#type: Lenient<String>,
    #[serde(default, deserialize_with = "long_text")]
    text: Option<String>,
    pub(super) annotations: Items<Citation>,
}

impl TextPart {
    /// The text if it is part of the report; thoughts and pictures are not.
    pub(super) fn report_text(&self) -> Option<&str> {
        let is_text = self.r#type.as_deref().is_none_or(|kind| kind == "text");
        self.text.as_deref().filter(|_| is_text)
    }

    /// The text, moved out of it.
    pub(super) fn take_text(&mut self) -> String {
        self.text.take().unwrap_or_default()
    }
}

/// No run consumes more of anything; a larger number is a mistake.
const MAX_COUNT: u64 = 1_000_000_000_000;

/// The usage of a run; any of it may be missing.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Usage {
    /// Those that were read from a cache are among them.
    pub(super) total_input_tokens: Count,
    pub(super) total_cached_tokens: Count,
    pub(super) total_tool_use_tokens: Count,
    /// Without the thoughts.
    pub(super) total_output_tokens: Count,
    pub(super) total_thought_tokens: Count,
    pub(super) total_tokens: Count,
    grounding_tool_count: Items<ToolCount>,
}

impl Usage {
    /// Each grounding tool that was called, and how often.
    pub(super) fn calls(&self) -> impl Iterator<Item = (&str, u64)> {
        let tools = self.grounding_tool_count.iter().flatten();
        tools.filter_map(|tool| Some((tool.r#type.as_deref()?, tool.count.count()?)))
    }

    /// Returns true if a number in it is impossible, so that no bill can be computed from it.
    pub(super) fn has_invalid_counts(&self) -> bool {
        let tokens = [
            &self.total_input_tokens,
            &self.total_cached_tokens,
            &self.total_tool_use_tokens,
            &self.total_output_tokens,
            &self.total_thought_tokens,
            &self.total_tokens,
        ];
        let calls = self.grounding_tool_count.iter().flatten().map(|tool| &tool.count);
        tokens.into_iter().chain(calls).any(|count| matches!(count, Count::Absurd))
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
struct ToolCount {
    r#type: Lenient<String>,
    count: Count,
}

/// A count, which may be missing, or no count at all.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Count {
    #[default]
    Missing,
    Counted(u64),
    /// Negative, a fraction, not a number, or beyond all measure.
    Absurd,
}

impl Count {
    pub(super) fn count(self) -> Option<u64> {
        match self {
            Self::Counted(count) => Some(count),
            Self::Missing | Self::Absurd => None,
        }
    }

    pub(super) fn or_zero(self) -> u64 {
        self.count().unwrap_or(0)
    }
}

impl<'de> Deserialize<'de> for Count {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let Some(field) = Option::<&RawValue>::deserialize(deserializer)? else {
            return Ok(Self::Missing);
        };
        Ok(match field.get().parse() {
            Ok(count) if count <= MAX_COUNT => Self::Counted(count),
            _ => Self::Absurd,
        })
    }
}

/// A citation of a page, a place or a file; each has its own names for the same things.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Citation {
    url: Lenient<String>,
    document_uri: Lenient<String>,
    source: Lenient<String>,
    title: Lenient<String>,
    name: Lenient<String>,
    file_name: Lenient<String>,
    /// Bytes of the text; the end is exclusive.
    pub(super) start_index: Lenient<usize>,
    pub(super) end_index: Lenient<usize>,
}

impl Citation {
    /// The address of the cited page. The addresses of the vendor's search are redirects; they are kept as they are.
    pub(super) fn address(&self) -> Option<&str> {
        first(&[&self.url, &self.document_uri, &self.source])
    }

    /// Its title.
    pub(super) fn title(&self) -> Option<&str> {
        first(&[&self.title, &self.name, &self.file_name])
    }
}

fn first<'a>(fields: &[&'a Lenient<String>]) -> Option<&'a str> {
    fields.iter().filter_map(|field| field.as_deref()).find(|text| !text.is_empty())
}

#[derive(Debug, Default, Deserialize)]
struct Models {
    models: Items<ListedModel>,
}

#[derive(Debug, Default, Deserialize)]
struct ListedModel {
    name: Lenient<String>,
}

/// The names of the deep-research agents in a list of models.
pub(super) fn list_agents(body: &[u8]) -> Vec<String> {
    let models: Models = object(body).unwrap_or_default();
    let names = models.models.0.into_iter().flatten().filter_map(|model| model.name.0);
    let names = names.map(|name| name.rsplit('/').next().unwrap_or_default().to_owned());
    names.filter(|name| name.starts_with("deep-research")).collect()
}

/// The error envelope of a refused request.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Envelope {
    error: Lenient<EnvelopeError>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct EnvelopeError {
    message: Lenient<String>,
    details: Items<Detail>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Detail {
    reason: Lenient<String>,
    #[serde(rename = "retryDelay")]
    retry_delay: Lenient<String>,
}

impl Envelope {
    /// The envelope in a body; empty if the body has none.
    pub(super) fn parse(body: &[u8]) -> Self {
        object(body).unwrap_or_default()
    }

    /// Its message, in lower case.
    pub(super) fn message(&self) -> String {
        let message = self.error.as_ref().and_then(|error| error.message.as_deref());
        message.unwrap_or_default().to_lowercase()
    }

    /// Returns true if the key is refused: the API does that with a 400.
    pub(super) fn refuses_the_key(&self) -> bool {
        let reasons = self.details().filter_map(|detail| detail.reason.as_deref());
        let mut reasons = reasons.filter(|reason| reason.starts_with("API_KEY_"));
        reasons.next().is_some() || self.message().contains("api key not valid")
    }

    /// The wait it asks for, which may be given in the body alone.
    pub(super) fn retry_delay(&self) -> Option<Duration> {
        let mut delays = self.details().filter_map(|detail| detail.retry_delay.as_deref());
        let seconds = delays.next()?.strip_suffix('s')?.parse().ok()?;
        Duration::try_from_secs_f64(seconds).ok()
    }

    fn details(&self) -> impl Iterator<Item = &Detail> {
        self.error.iter().flat_map(|error| error.details.iter().flatten())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vendor::object;

    fn report(body: &str) -> String {
        let parts = object::<Interaction>(body.as_bytes()).unwrap().take_report();
        parts.iter().filter_map(TextPart::report_text).collect()
    }

    #[test]
    fn unknown_things_nulls_and_other_types_hide_no_other_field() {
        let body = br#"{"id":"v1_a","status":"meditating","agent":7,"model":"m","usage":[],"errors":"none","new":{},
            "steps":[5,{"type":"dream","x":1},{"type":"model_output","content":[{"type":"image","data":"x"},
            {"type":"text","text":"hi","annotations":null},7]}]}"#;
        let mut interaction = object::<Interaction>(body).unwrap();
        assert_eq!(interaction.status(), Status::Running);
        assert_eq!(interaction.agent(), Some("m"));
        assert!(interaction.error().is_none());
        assert_eq!(interaction.take_report()[0].report_text(), Some("hi"));
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
