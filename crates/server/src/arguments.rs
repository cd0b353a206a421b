//! Reads a tool's arguments, or says which field to mend and how.

use outlast_core::Key;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::reply::Refusal;
use crate::text::printable;

/// The arguments as their type.
pub(crate) fn read<T: DeserializeOwned>(
    arguments: Option<serde_json::Map<String, Value>>,
) -> Result<T, Refusal> {
    let arguments = Value::Object(arguments.unwrap_or_default());
    serde_path_to_error::deserialize(arguments).map_err(|error| {
        let path = error.path().to_string();
        Refusal::validation(explained(&path, &error.inner().to_string()))
    })
}

/// An idempotency key of the caller's own, together with what it stands for.
pub(crate) fn key(text: &str, input_hash: [u8; 32]) -> Result<Key, Refusal> {
    let length = text.chars().count();
    if !(1..=200).contains(&length) {
        return Err(Refusal::validation(format!(
            "idempotency_key must have 1 to 200 characters, not {length}"
        )));
    }
    Ok(Key::given(text, input_hash))
}

/// "`field` is wrong so and so", from where the parser stood and what it said.
fn explained(path: &str, said: &str) -> String {
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
            let refusal = read::<Arguments>(Some(given)).unwrap_err();
            assert_eq!(refusal.sentence(), expected);
        }
    }
}
