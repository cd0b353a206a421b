//! Reads the JSON in a model's answer: around it there may be thinking, prose and code fences, and its end may be
//! missing.

use serde::de::DeserializeOwned;
use serde_json::Value;

/// Returns the value in an answer; otherwise the reason, for the model.
pub(crate) fn parse_answer<T: DeserializeOwned>(answer: &str) -> Result<T, String> {
    let text = without_thinking(answer);
    let Some(start) = text.find('{') else {
        let is_empty = text.trim().is_empty();
        return Err(if is_empty { "it is empty" } else { "it contains no JSON object" }.to_owned());
    };
    let text = &text[start..];
    // Reads the first value, and ignores what follows it.
    let mut values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let value = match values.next() {
        Some(Ok(value)) => value,
        Some(Err(error)) => match salvage(text) {
            Some(value) => value,
            None => return Err(format!("it is not valid JSON: {error}")),
        },
        None => return Err("it is empty".to_owned()),
    };
    T::deserialize(value).map_err(|error| format!("it does not have the requested form: {error}"))
}

/// Removes the thinking of a reasoning model; thinking that does not end is the whole answer.
fn without_thinking(answer: &str) -> &str {
    match answer.rfind("</think>") {
        Some(end) => &answer[end + "</think>".len()..],
        None if answer.trim_start().starts_with("<think>") => "",
        None => answer,
    }
}

/// Closes a text that ends in the middle of a value, after the last complete element of an array in it.
fn salvage(text: &str) -> Option<Value> {
    let (mut open, mut in_string, mut is_escaped) = (Vec::new(), false, false);
    let mut best: Option<(usize, Vec<char>)> = None;
    for (at, sign) in text.char_indices() {
        if in_string {
            match sign {
                _ if is_escaped => is_escaped = false,
                '\\' => is_escaped = true,
                '"' => in_string = false,
                _ => {}
            }
            continue;
        }
        match sign {
            '"' => in_string = true,
            '{' => open.push('}'),
            '[' => open.push(']'),
            '}' | ']' => {
                if open.pop() != Some(sign) {
                    break;
                }
                if open.last() == Some(&']') {
                    best = Some((at + 1, open.clone()));
                }
            }
            _ => {}
        }
    }
    let (end, mut open) = best?;
    let mut closed = text[..end].to_owned();
    while let Some(sign) = open.pop() {
        closed.push(sign);
    }
    serde_json::from_str(&closed).ok()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// K6: an answer is read if any part of it can be.
    #[test]
    fn k6_json_is_found_in_an_untidy_answer() {
        let whole = json!({ "a": [{ "b": "}" }, { "b": "x" }] });
        let part = json!({ "a": [{ "b": "}" }] });
        let cases = [
            (r#"{"a":[{"b":"}"},{"b":"x"}]}"#, &whole),
            ("Sure!\n```json\n{\"a\":[{\"b\":\"}\"},{\"b\":\"x\"}]}\n```\nDone.", &whole),
            ("<think>{\"a\":1}</think>{\"a\":[{\"b\":\"}\"},{\"b\":\"x\"}]}", &whole),
            (r#"{"a":[{"b":"}"},{"b":"x"#, &part),
            (r#"{"a":[{"b":"}"},{"b":"x","#, &part),
            (r#"{"a":[{"b":"}"}] oops"#, &part),
        ];
        for (answer, expected) in cases {
            assert_eq!(parse_answer::<Value>(answer).as_ref(), Ok(expected), "{answer}");
        }
        for broken in ["", "I cannot help with that.", "<think>hm", r#"{"a":"#, r#"{"a" 1}"#] {
            assert!(parse_answer::<Value>(broken).is_err(), "{broken}");
        }
    }
}
