//! Splits text into sentences.

/// Returns the sentences of a paragraph, without the spaces between them.
pub(super) fn split(text: &str) -> Vec<&str> {
    let mut sentences = Vec::new();
    let mut start = 0;
    let mut in_code = false;
    let mut signs = text.char_indices().peekable();
    while let Some((at, sign)) = signs.next() {
        match sign {
            '`' => in_code = !in_code,
            '.' | '!' | '?' | '…' if !in_code => {
                // Closing quotes and brackets belong to the sentence.
                let mut end = at + sign.len_utf8();
                while let Some((next, closing)) =
                    signs.next_if(|(_, c)| matches!(c, '"' | '\'' | ')' | '”' | '’' | '.'))
                {
                    end = next + closing.len_utf8();
                }
                if ends(&text[start..at], sign, &text[end..]) {
                    sentences.push(text[start..end].trim());
                    start = end;
                }
            }
            _ => {}
        }
    }
    sentences.push(text[start..].trim());
    sentences.retain(|sentence| !sentence.is_empty());
    sentences
}

fn ends(before: &str, sign: char, after: &str) -> bool {
    let rest = after.trim_start();
    if after.len() == rest.len() && !rest.is_empty() {
        return false;
    }
    let word = before.rsplit([' ', '(']).next().unwrap_or("");
    let opens = |c: char| {
        c.is_uppercase() || c.is_numeric() || matches!(c, '`' | '"' | '“' | '(' | '*' | '[')
    };
    if !rest.is_empty() && !rest.starts_with(opens) {
        // Some names start with a lower-case letter; after a short word an abbreviation is more likely.
        let is_word = word.len() > 4 && word.chars().all(char::is_lowercase);
        if !(is_word && rest.starts_with(char::is_lowercase)) {
            return false;
        }
    }
    if sign != '.' {
        return true;
    }
    let is_initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase);
    !is_initial && !ABBREVIATIONS.contains(&word.to_lowercase().as_str())
}

const ABBREVIATIONS: &[&str] = &[
    "e.g", "i.e", "etc", "cf", "vs", "approx", "dr", "mr", "mrs", "ms", "prof", "no", "nr", "fig",
    "sec", "st", "inc", "ltd", "resp", "incl", "excl", "max", "min", "dept",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sentences_end_as_readers_expect() {
        let cases: &[(&str, &[&str])] = &[
            ("One. Two! Three?", &["One.", "Two!", "Three?"]),
            ("See e.g. Figure 1. Next.", &["See e.g. Figure 1.", "Next."]),
            ("Run `a. B` now. Then go.", &["Run `a. B` now.", "Then go."]),
            ("It costs 1.5 s. (See below.) Yes.", &["It costs 1.5 s.", "(See below.)", "Yes."]),
            (
                "Written by J. Smith in main.rs and so on.",
                &["Written by J. Smith in main.rs and so on."],
            ),
            ("Wait 60 seconds. outlast goes on.", &["Wait 60 seconds.", "outlast goes on."]),
            ("no end", &["no end"]),
            ("", &[]),
        ];
        for (text, expected) in cases {
            assert_eq!(split(text), *expected, "{text}");
        }
    }
}
