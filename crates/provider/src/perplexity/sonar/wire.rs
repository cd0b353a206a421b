//! The JSON that the Sonar dialect answers, known to no other module. A field of an unknown type is taken to be
//! absent.

use outlast_core::ContextSize;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::responses::wire::{OpenedPage, UsageCost, is_name};
use crate::vendor::billed::BilledUsage;
use crate::vendor::lenient::{Items, Lenient, deserialize_known_places, object};

/// Deep research as the provider shows it.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Job {
    id: Lenient<String>,
    status: Lenient<String>,
    pub(super) error_message: Lenient<String>,
    pub(super) response: Lenient<Completion>,
}

/// The state of research. An unknown state counts as running, and is checked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    Waiting,
    InProgress,
    Completed,
    Failed,
}

impl Job {
    pub(super) fn id(&self) -> Option<&str> {
        self.id.as_deref().filter(|id| is_name(id))
    }

    pub(super) fn into_id(self) -> Option<String> {
        self.id.0.filter(|id| is_name(id))
    }

    pub(super) fn status(&self) -> Status {
        match self.status.as_deref().unwrap_or_default() {
            "IN_PROGRESS" => Status::InProgress,
            "COMPLETED" => Status::Completed,
            "FAILED" => Status::Failed,
            _ => Status::Waiting,
        }
    }
}

/// A chat completion, or a chunk of one.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Completion {
    pub(super) id: Lenient<String>,
    pub(super) model: Lenient<String>,
    pub(super) choices: Items<Choice>,
    /// The place of each is its number.
    #[serde(default, deserialize_with = "deserialize_known_places")]
    pub(super) citations: Option<Vec<Citation>>,
    #[serde(default, deserialize_with = "deserialize_known_places")]
    pub(super) search_results: Option<Vec<OpenedPage>>,
    pub(super) usage: Lenient<BilledUsage<Usage>>,
    pub(super) related_questions: Items<String>,
    pub(super) error: Option<Box<RawValue>>,
}

/// The page that a number in the text cites.
#[derive(Clone, Debug, Default)]
pub(super) struct Citation {
    pub(super) url: Option<String>,
}

/// An address, or something that has one.
impl<'de> Deserialize<'de> for Citation {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = <&RawValue>::deserialize(deserializer)?.get();
        let url = serde_json::from_str(text).ok();
        let url = url.or_else(|| object::<OpenedPage>(text.as_bytes())?.url.0);
        Ok(Self { url })
    }
}

#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Choice {
    finish_reason: Lenient<String>,
    message: Lenient<Text>,
    delta: Lenient<Text>,
}

#[derive(Clone, Debug, Default, Deserialize)]
struct Text {
    content: Lenient<String>,
}

impl Completion {
    /// Returns true if it is a completion, and not some other object.
    pub(super) fn is_one(&self) -> bool {
        self.choices.is_some()
    }

    /// The whole text so far.
    pub(super) fn message(&self) -> Option<&str> {
        self.first()?.message.as_ref()?.content.as_deref()
    }

    /// The text added since the last chunk.
    pub(super) fn delta(&self) -> Option<&str> {
        self.first()?.delta.as_ref()?.content.as_deref()
    }

    /// The reason why the text has ended.
    pub(super) fn finish_reason(&self) -> Option<&str> {
        self.first()?.finish_reason.as_deref().filter(|reason| !reason.is_empty())
    }

    fn first(&self) -> Option<&Choice> {
        self.choices.as_ref()?.first()
    }
}

/// The usage of a completion.
#[derive(Clone, Debug, Default, Deserialize)]
pub(super) struct Usage {
    pub(super) prompt_tokens: Lenient<u64>,
    pub(super) completion_tokens: Lenient<u64>,
    pub(super) total_tokens: Lenient<u64>,
    pub(super) citation_tokens: Lenient<u64>,
    pub(super) reasoning_tokens: Lenient<u64>,
    pub(super) num_search_queries: Lenient<u64>,
    /// The share of the search results that the model read; a request is billed by it.
    pub(super) search_context_size: Lenient<ContextSize>,
    pub(super) cost: Lenient<UsageCost>,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// A10: an id that was there must not be lost to an odd field next to it; statuses are an open set.
    #[test]
    fn a_field_of_another_type_hides_no_other_field() {
        let job = object::<Job>(br#"{"id":"u","status":7,"response":"soon","error_message":{}}"#);
        let job = job.unwrap();
        assert_eq!(job.status(), Status::Waiting);
        assert_eq!(job.into_id().as_deref(), Some("u"));
        for (name, status) in [
            ("CREATED", Status::Waiting),
            ("MEDITATING", Status::Waiting),
            ("IN_PROGRESS", Status::InProgress),
            ("COMPLETED", Status::Completed),
            ("FAILED", Status::Failed),
        ] {
            let job = object::<Job>(json!({"status": name}).to_string().as_bytes()).unwrap();
            assert_eq!(job.status(), status, "{name}");
            assert_eq!(job.into_id(), None);
        }
    }
}
