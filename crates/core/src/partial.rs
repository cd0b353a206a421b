//! The beginning of a text that is being written (G8).

use crate::thinking::strip_thinking_so_far;

/// The text of a report so far, up to a limit. It is shown while it grows; the report itself is delivered whole.
#[derive(Debug, Default)]
pub struct Partial {
    text: String,
    is_cut: bool,
}

impl Partial {
    /// The maximum size that is kept of it.
    pub const MAX_BYTES: usize = 64 * 1024;

    /// The text after the last word if the text was cut.
    pub const CUT: &str = "\n\n[... the rest comes with the report]";

    /// Appends the next piece of the text.
    pub fn push(&mut self, more: &str) {
        if self.is_cut {
            // Appending would leave a gap.
            return;
        }
        let room = Self::MAX_BYTES - self.text.len();
        let end = more.floor_char_boundary(room);
        self.text.push_str(&more[..end]);
        self.is_cut = end < more.len();
    }

    /// Replaces the text.
    pub fn replace(&mut self, text: &str) {
        *self = Self::default();
        self.push(text);
    }

    pub fn is_empty(&self) -> bool {
        self.text.is_empty()
    }

    /// Returns the text that may be shown: without the model's thinking, closed or not; `None` if nothing is left.
    pub fn visible_text(&self) -> Option<String> {
        let mut shown = strip_thinking_so_far(&self.text);
        if shown.trim().is_empty() {
            return None;
        }
        if self.is_cut {
            shown.push_str(Self::CUT);
        }
        Some(shown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(pieces: &[&str]) -> Option<String> {
        let mut partial = Partial::default();
        pieces.iter().for_each(|piece| partial.push(piece));
        partial.visible_text()
    }

    /// G8: a long text is cut once, between characters, and says so; later pieces leave no gap.
    #[test]
    fn g8_a_long_text_is_cut_and_says_so() {
        let long = "\u{e9}".repeat(Partial::MAX_BYTES);
        let text = shown(&["x", &long, "later", "still"]).unwrap();
        let rest = text.strip_suffix(Partial::CUT).unwrap();
        assert!(rest.len() <= Partial::MAX_BYTES && rest.len() > Partial::MAX_BYTES - 4);
        assert!(rest.ends_with('\u{e9}'), "nothing follows the cut");
    }

    /// G8: thinking is not shown, not even while it continues, nor is half of a tag.
    #[test]
    fn g8_the_text_so_far_is_without_thinking() {
        let cases: [(&[&str], Option<&str>); 7] = [
            (&["<th", "ink>secret"], None),
            (&["<think>secret</think>\n\n# One"], Some("# One")),
            (&["# One\n<think>sec", "ret"], Some("# One\n")),
            (&["# One <thi"], Some("# One ")),
            (&["# One <b>"], Some("# One <b>")),
            (&["`<think>` is a tag"], Some("`<think>` is a tag")),
            (&[""], None),
        ];
        for (pieces, expected) in cases {
            assert_eq!(shown(pieces).as_deref(), expected, "{pieces:?}");
        }
    }
}
