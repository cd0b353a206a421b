//! Parses the arguments of a tool, or reports which field is wrong and how to correct it.

use outlast_core::{Cursor, Key, Message, Role};
use rmcp::model::JsonObject;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::reply::Refusal;
use crate::text::printable;

/// Parses the arguments into their type.
pub(crate) fn read<T: DeserializeOwned>(arguments: JsonObject) -> Result<T, Refusal> {
    read_in(None, arguments)
}

/// Parses an object that is itself an argument, if `field` names it.
pub(crate) fn read_in<T: DeserializeOwned>(
    field: Option<&str>,
    arguments: JsonObject,
) -> Result<T, Refusal> {
    serde_path_to_error::deserialize(Value::Object(arguments)).map_err(|error| {
        let path = match (field, error.path().to_string()) {
            (None, path) => path,
            (Some(field), path) if path == "." => field.to_owned(),
            (Some(field), path) => format!("{field}.{path}"),
        };
        Refusal::validation(explain(&path, &error.inner().to_string()))
    })
}

/// Returns the digest of the input that identifies a call.
pub(crate) fn digest(input: &impl Serialize) -> Result<[u8; 32], Refusal> {
    let json = serde_json::to_vec(input).map_err(|_| Refusal::internal())?;
    Ok(Sha256::digest(json).into())
}

/// Converts a request to the JSON that its job stores.
pub(crate) fn as_json(ask: &impl Serialize) -> Result<Value, Refusal> {
    serde_json::to_value(ask).map_err(|_| Refusal::internal())
}

/// Refuses with this sentence unless the condition holds.
pub(crate) fn check(is_well: bool, sentence: impl FnOnce() -> String) -> Result<(), Refusal> {
    if is_well { Ok(()) } else { Err(Refusal::validation(sentence())) }
}

/// The arguments of a list; `S` is the type of a status word.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListArguments<S> {
    pub(crate) status: Option<S>,
    #[serde(default = "default_limit")]
    limit: i64,
    cursor: Option<String>,
}

fn default_limit() -> i64 {
    20
}

impl<S> ListArguments<S> {
    /// Returns the number of entries to show and the position to continue from; `field` is the name of that position in
    /// answers.
    pub(crate) fn page(&self, field: &str) -> Result<(u32, Option<Cursor>), Refusal> {
        self.page_after(field, |text| text.parse().ok().map(Cursor))
    }

    /// Returns the same as [`Self::page`], for a list with a different type of cursor.
    pub(crate) fn page_after<C>(
        &self,
        field: &str,
        parse: impl Fn(&str) -> Option<C>,
    ) -> Result<(u32, Option<C>), Refusal> {
        let limit = self.limit;
        let fits = u32::try_from(limit).ok().filter(|limit| (1..=100).contains(limit));
        let fits = fits
            .ok_or_else(|| Refusal::validation(format!("limit must be 1 to 100, not {limit}")))?;
        let Some(cursor) = self.cursor.as_deref() else { return Ok((fits, None)) };
        let why = || format!("cursor must be the {field} of an earlier answer, or left out");
        let after = parse(cursor).ok_or_else(|| Refusal::validation(why()))?;
        Ok((fits, Some(after)))
    }
}

/// Checks the range of a priority.
pub(crate) fn check_priority(priority: i64) -> Result<i16, Refusal> {
    let fits = i16::try_from(priority).ok().filter(|priority| (-100..=100).contains(priority));
    fits.ok_or_else(|| Refusal::validation(format!("priority must be -100 to 100, not {priority}")))
}

/// Returns the idempotency key that the caller passed, if any, bound to the digest of the input.
pub(crate) fn key(given: Option<&str>, input_hash: [u8; 32]) -> Result<Option<Key>, Refusal> {
    let Some(text) = given else { return Ok(None) };
    let length = text.chars().count();
    check((1..=200).contains(&length), || {
        format!("idempotency_key must have 1 to 200 characters, not {length}")
    })?;
    Ok(Some(Key::from_caller(text, input_hash)))
}

/// The maximum number of characters in one request, over all its messages.
pub(crate) const MAX_REQUEST_CHARS: usize = 1_000_000;

/// Checks that there is a question, that there are not too many messages, and that the last one is not empty.
pub(crate) fn check_messages(messages: &[Message]) -> Result<(), Refusal> {
    let count = messages.len();
    check((1..=100).contains(&count), || {
        format!("messages must have 1 to 100 entries, not {count}")
    })?;
    let length: usize = messages.iter().map(|message| message.content.chars().count()).sum();
    check(length <= MAX_REQUEST_CHARS, || {
        format!("messages must have {MAX_REQUEST_CHARS} characters at most in all, not {length}")
    })?;
    let Some(last) = messages.iter().rposition(|message| message.role != Role::System) else {
        let why = "messages must have an entry with role `user`: the question";
        return Err(Refusal::validation(why));
    };
    check(!messages[last].content.trim().is_empty(), || {
        format!("messages[{last}].content must not be empty")
    })
}

/// Checks that a question is neither empty nor too long.
pub(crate) fn check_query(field: &str, query: &str) -> Result<(), Refusal> {
    let length = query.chars().count();
    check(!query.trim().is_empty(), || format!("{field} must not be empty"))?;
    check(length <= 10_000, || format!("{field} must have 1 to 10000 characters, not {length}"))
}

/// Checks that the domains are either all allowed or all excluded.
pub(crate) fn check_domains(domains: &[String]) -> Result<(), Refusal> {
    let check = |is_well: bool, why: &str| check(is_well, || format!("search_domain_filter {why}"));
    let count = domains.len();
    check(count <= 20, &format!("must have 20 entries at most, not {count}"))?;
    let is_empty = |domain: &String| domain.trim_start_matches('-').trim().is_empty();
    check(!domains.iter().any(is_empty), "must not have empty entries")?;
    let denied = domains.iter().filter(|domain| domain.starts_with('-')).count();
    check(
        denied == 0 || denied == count,
        "must either allow domains or deny them with a leading `-`, not both",
    )
}

/// Builds a sentence that names the wrong field, from the path of the parser and its message.
fn explain(path: &str, said: &str) -> String {
    let quoted = said.split('`').nth(1).unwrap_or_default();
    let field = |name: &str| if path == "." { name.to_owned() } else { format!("{path}.{name}") };
    let sentence = if said.starts_with("missing field") {
        format!("{} is missing", field(quoted))
    } else if let Some((_, expected)) =
        said.split_once("expected ").filter(|_| said.starts_with("unknown field"))
    {
        format!(
            "{} is not known; expected {expected}",
            if path.ends_with(quoted) { path.to_owned() } else { field(quoted) }
        )
    } else {
        format!("{path}: {said}")
    };
    printable(&sentence).chars().take(300).collect()
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Arguments {
        #[expect(dead_code, reason = "only its reading is tested")]
        messages: Vec<outlast_core::Message>,
    }

    #[test]
    fn a_question_is_needed() {
        let message = |role, content: &str| Message { role, content: content.to_owned() };
        let cases: [(Vec<Message>, &str); 4] = [
            (vec![], "messages must have 1 to 100 entries, not 0"),
            (vec![message(Role::User, "x"); 101], "messages must have 1 to 100 entries, not 101"),
            (
                vec![message(Role::System, "x")],
                "messages must have an entry with role `user`: the question",
            ),
            (
                vec![message(Role::System, "x"), message(Role::User, " \n")],
                "messages[1].content must not be empty",
            ),
        ];
        for (messages, expected) in cases {
            assert_eq!(check_messages(&messages).unwrap_err().sentence(), expected);
        }
        assert!(check_messages(&[message(Role::User, "why?")]).is_ok());
        // F10: the limit is on the total, and counts characters.
        let half = "ä".repeat(MAX_REQUEST_CHARS / 2);
        let mut long = vec![message(Role::System, &half), message(Role::User, &half)];
        assert!(check_messages(&long).is_ok());
        long.push(message(Role::User, "x"));
        let expected = "messages must have 1000000 characters at most in all, not 1000001";
        assert_eq!(check_messages(&long).unwrap_err().sentence(), expected);
    }

    #[test]
    fn every_mistake_names_its_field() {
        let cases = [
            (json!({}), "messages is missing"),
            (
                json!({"messages": "hi"}),
                "messages: invalid type: string \"hi\", expected a sequence",
            ),
            (json!({"messages": [{"role": "user"}]}), "messages[0].content is missing"),
            (
                json!({"messages": [{"role": "robot", "content": "x"}]}),
                "messages[0].role: unknown variant `robot`, expected one of `system`, `user`, `assistant`",
            ),
            (json!({"messages": [], "mode": 1}), "mode is not known; expected `messages`"),
        ];
        for (given, expected) in cases {
            let Value::Object(given) = given else { panic!("not an object") };
            let refusal = read::<Arguments>(given).unwrap_err();
            assert_eq!(refusal.sentence(), expected);
        }
    }
}
