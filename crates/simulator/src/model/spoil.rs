//! Answers as small models give them: broken, refused, endless, or wrapped in thoughts.

use super::tokens;
use crate::switches::{Switches, spread};

/// The content of a message and the reason for its end.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Content {
    pub(super) text: String,
    pub(super) finish_reason: &'static str,
}

/// Applies the faults of the switches to an answer of at most `room` tokens.
pub(super) fn deliver(answer: String, switches: &Switches, digest: u64, room: u64) -> Content {
    let strikes = |name| switches.strikes(name, digest);
    let mut text = if strikes("refuse") {
        "I'm sorry, but I can't help with that request.".to_owned()
    } else if strikes("empty") {
        String::new()
    } else if strikes("loop") {
        "The values are the values of the values. ".repeat(1_000)
    } else if strikes("broken") {
        break_json(&answer, digest)
    } else {
        answer
    };
    if strikes("fence") {
        text = format!("Here is the answer:\n```json\n{text}\n```");
    }
    if strikes("think") {
        text = format!(
            "<think>\nThe user wants {{\"json\": true}}. Let me think.\n</think>\n\n{text}"
        );
    }
    let room = if strikes("length") { room.min(tokens::count(&text) / 2) } else { room };
    let kept = tokens::truncate(&text, room);
    let finish_reason = if kept.len() < text.len() { "length" } else { "stop" };
    Content { text: kept.to_owned(), finish_reason }
}

fn break_json(answer: &str, digest: u64) -> String {
    let end = |share: usize| {
        let mut end = answer.len() * share / 100;
        while !answer.is_char_boundary(end) {
            end -= 1;
        }
        end
    };
    match spread(digest, "kind") % 5 {
        0 => answer[..end(60)].to_owned(),
        1 => answer.replace('"', "'"),
        2 => answer.replacen(':', "", 1),
        3 => "I would be happy to help! The pages say many things.".to_owned(),
        _ => format!("{answer}{answer}]"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn broken_answers_are_not_json() {
        let switches = Switches::parse("broken=100");
        for digest in 0..50 {
            let answer = r#"{"sentences":[{"text":"One.","claims":["1"]}]}"#.to_owned();
            let content = deliver(answer, &switches, digest, 1_000);
            assert!(serde_json::from_str::<Value>(&content.text).is_err(), "{content:?}");
        }
    }

    #[test]
    fn a_long_answer_ends_for_its_length() {
        let content = deliver("a b c d e f".to_owned(), &Switches::parse("-"), 1, 3);
        assert_eq!(content, Content { text: "a b c ".to_owned(), finish_reason: "length" });
        let looping = deliver("{}".to_owned(), &Switches::parse("loop=100"), 1, 100);
        assert_eq!(looping.finish_reason, "length");
    }
}
