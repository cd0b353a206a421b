//! A model's thinking, told apart from what it says. Whole texts only: a tag cut in two by a stream is whole again
//! once the pieces are joined.

const OPEN: &str = "<think>";
const CLOSE: &str = "</think>";

/// The text without its closed think blocks, and what stood in them. A tag that is never closed is text; a text
/// without blocks is left as it is.
pub(super) fn told_apart(text: String) -> (String, Option<String>) {
    let mut said = String::new();
    let mut thoughts = Vec::new();
    let mut rest = text.as_str();
    while let Some((before, block)) = rest.split_once(OPEN) {
        let Some((thought, after)) = block.split_once(CLOSE) else { break };
        said.push_str(before);
        thoughts.push(thought.trim());
        rest = after;
    }
    if thoughts.is_empty() {
        return (text, None);
    }
    said.push_str(rest);
    thoughts.retain(|thought| !thought.is_empty());
    let thinking = (!thoughts.is_empty()).then(|| thoughts.join("\n\n"));
    (said.trim().to_owned(), thinking)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn closed_think_blocks_leave_the_text_and_unclosed_ones_stay() {
        let cases = [
            ("plain\n", "plain\n", None),
            ("<think>a</think>b", "b", Some("a")),
            ("<think>\n a \n</think>\n\n# B\n", "# B", Some("a")),
            ("a <think>1</think>b<think>2</think> c", "a b c", Some("1\n\n2")),
            ("<think></think>b", "b", None),
            ("a <think>b", "a <think>b", None),
            ("<think>1</think>a <think>b", "a <think>b", Some("1")),
            ("a</think> b", "a</think> b", None),
            ("<think>1<think>2</think>b", "b", Some("1<think>2")),
            ("<think>caf\u{e9} \u{1F600}</think>\u{e9}", "\u{e9}", Some("caf\u{e9} \u{1F600}")),
            ("<think>1</think>", "", Some("1")),
        ];
        for (given, text, thinking) in cases {
            let expected = (text.to_owned(), thinking.map(str::to_owned));
            assert_eq!(told_apart(given.to_owned()), expected, "{given:?}");
        }
    }
}
