//! The JSON of the Managed Agents API, as far as it is used. Everything may be missing or of another type; words we do
//! not know mean nothing.

mod event;
mod request;
mod session;

use reqwest::StatusCode;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::vendor::lenient::{Items, Lenient, object};
pub(super) use event::{Event, SessionError, explanation};
pub(super) use request::{
    agent_definition, default_cap, environment_definition, question, question_event,
    session_definition,
};
pub(super) use session::{AgentSession, SessionUsage};

/// One page of a list.
#[derive(Debug, Deserialize)]
#[serde(bound(deserialize = "T: DeserializeOwned"))]
pub(super) struct ListPage<T> {
    #[serde(deserialize_with = "deserialize_list")]
    pub(super) data: Vec<T>,
    #[serde(default)]
    pub(super) next_page: Lenient<String>,
}

/// A list must be one: taken for an empty one, it would mean that nothing is there.
fn deserialize_list<'de, D, T>(deserializer: D) -> Result<Vec<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: DeserializeOwned,
{
    Items::deserialize(deserializer)?.0.ok_or_else(|| serde::de::Error::custom("no list"))
}

/// An agent, an environment or a model, as far as it has a name.
#[derive(Debug, Default, Deserialize)]
pub(super) struct NamedResource {
    pub(super) id: Lenient<String>,
    name: Lenient<String>,
    archived_at: Lenient<String>,
    lifecycle: Lenient<String>,
    retires_at: Lenient<String>,
}

impl NamedResource {
    /// Returns true if it has this name and can be used.
    pub(super) fn is_live(&self, name: &str) -> bool {
        self.name.as_deref() == Some(name) && self.archived_at.is_none()
    }
}

/// Returns a warning for the operator about a model that is unknown or going to end.
pub(super) fn model_warning(model: &str, status: StatusCode, body: &[u8]) -> Option<String> {
    if status == StatusCode::NOT_FOUND {
        return Some(format!(
            "Anthropic does not list the model {model}; set the model of [anthropic]"
        ));
    }
    let named = object::<NamedResource>(body).filter(|_| status.is_success())?;
    // Only a valid date is shown: it comes from elsewhere.
    let ends = named.retires_at.0.filter(|at| chrono::DateTime::parse_from_rfc3339(at).is_ok());
    match (ends, named.lifecycle.as_deref()) {
        (Some(at), _) => Some(format!("the model {model} will be shut down on {}", &at[..10])),
        (None, Some("deprecated")) => Some(format!("the model {model} is deprecated")),
        (None, Some("retired")) => Some(format!("the model {model} is retired")),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G9: doctor warns of a model's end before it comes.
    #[test]
    fn a_model_that_will_end_gets_a_warning() {
        let warning = |status, body: &str| model_warning("m", status, body.as_bytes());
        let cases = [
            (StatusCode::OK, r#"{"id":"m","lifecycle":"active","retires_at":null}"#, None),
            (
                StatusCode::OK,
                r#"{"lifecycle":"deprecated","retires_at":"2027-02-01T00:00:00Z"}"#,
                Some("the model m will be shut down on 2027-02-01"),
            ),
            (
                StatusCode::OK,
                r#"{"lifecycle":"deprecated","retires_at":"soon"}"#,
                Some("the model m is deprecated"),
            ),
            (StatusCode::OK, r#"{"lifecycle":"retired"}"#, Some("the model m is retired")),
            (StatusCode::INTERNAL_SERVER_ERROR, r#"{"lifecycle":"retired"}"#, None),
            (StatusCode::OK, "[]", None),
        ];
        for (status, body, expected) in cases {
            assert_eq!(warning(status, body).as_deref(), expected, "{body}");
        }
        assert!(warning(StatusCode::NOT_FOUND, "").unwrap().contains("does not list"));
    }

    #[test]
    fn anything_but_a_list_is_not_an_empty_list() {
        assert!(object::<ListPage<NamedResource>>(br#"{"data":[]}"#).unwrap().data.is_empty());
        assert_eq!(
            object::<ListPage<NamedResource>>(br#"{"data":[{"id":"a"},7]}"#).unwrap().data.len(),
            1
        );
        for odd in [&br#"{"data":null}"#[..], b"{}", b"[]", br#"{"data":{}}"#, b"<html>"] {
            assert!(object::<ListPage<NamedResource>>(odd).is_none());
        }
    }
}
