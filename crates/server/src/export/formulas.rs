//! Formulas in reports. Models write them between dollars or as `\(...\)` and `\[...\]`; amounts of money have dollars too.

use std::borrow::Cow;
use std::ops::Range;

use pulldown_cmark::{Event, Options, Parser, Tag};

use super::report::OPTIONS;

/// The number of times that a text is parsed to find the dollars that are money.
const MAX_ROUNDS: usize = 4;
/// The maximum length of a formula, in bytes.
const MAX_FORMULA: usize = 2_000;

/// Returns Markdown in which exactly the formulas are between dollars, and the options to parse it with.
pub(super) fn mark(markdown: &str) -> (Cow<'_, str>, Options) {
    let mut text = with_dollars(markdown);
    for _ in 0..MAX_ROUNDS {
        // A dollar that is money must not pair with a later one.
        let money: Vec<usize> = formulas(&text)
            .filter(|(formula, at)| !is_formula(formula, &text[at.end..]))
            .map(|(_, at)| at.start)
            .collect();
        if money.is_empty() {
            return (text, OPTIONS);
        }
        text = Cow::Owned(escape_at(&text, &money));
    }
    // Formulas cannot be distinguished from money.
    (text, OPTIONS.difference(Options::ENABLE_MATH))
}

/// Returns the formulas that the parser finds, with their places.
fn formulas(text: &str) -> impl Iterator<Item = (String, Range<usize>)> {
    let found = text.contains('$').then(|| Parser::new_ext(text, OPTIONS).into_offset_iter());
    found.into_iter().flatten().filter_map(|(event, at)| match event {
        Event::InlineMath(formula) | Event::DisplayMath(formula) => Some((formula.to_string(), at)),
        _ => None,
    })
}

fn escape_at(text: &str, places: &[usize]) -> String {
    let mut escaped = String::with_capacity(text.len() + places.len());
    let mut rest = 0;
    for &place in places {
        escaped.push_str(&text[rest..place]);
        let dollars = text[place..].bytes().take_while(|byte| *byte == b'$').count();
        escaped.push_str(&"\\$".repeat(dollars));
        rest = place + dollars;
    }
    escaped.push_str(&text[rest..]);
    escaped
}

/// Returns true if the text between two dollars is a formula, and not the words between two amounts.
fn is_formula(text: &str, after: &str) -> bool {
    if after.starts_with(|sign: char| sign.is_ascii_digit()) {
        return false;
    }
    let has_sign = text.contains(['\\', '^', '_', '=', '{', '<', '>', '≤', '≥', '≈', '∑', '∫']);
    let has_word =
        text.split(|sign: char| !sign.is_alphabetic()).any(|word| word.chars().count() >= 3);
    has_sign || !has_word
}

/// Replaces `\(...\)` and `\[...\]` around formulas by dollars.
fn with_dollars(markdown: &str) -> Cow<'_, str> {
    if !markdown.contains("\\(") && !markdown.contains("\\[") {
        return Cow::Borrowed(markdown);
    }
    let code: Vec<Range<usize>> = Parser::new_ext(markdown, OPTIONS)
        .into_offset_iter()
        .filter(|(event, _)| matches!(event, Event::Code(_) | Event::Start(Tag::CodeBlock(_))))
        .map(|(_, at)| at)
        .collect();
    let mut text = String::with_capacity(markdown.len());
    let mut rest = 0;
    let mut next_code = code.iter().peekable();
    for (at, _) in markdown.match_indices('\\') {
        while next_code.next_if(|code| code.end <= at).is_some() {}
        let in_code = next_code.peek().is_some_and(|code| code.start <= at);
        let is_escaped = markdown[..at].ends_with('\\');
        let (close, dollars) = match markdown.as_bytes().get(at + 1) {
            _ if at < rest || in_code || is_escaped => continue,
            Some(b'(') => ("\\)", "$"),
            Some(b'[') => ("\\]", "$$"),
            _ => continue,
        };
        // A formula is short, and within its paragraph.
        let inside = &markdown[at + 2..];
        let inside = &inside[..inside.floor_char_boundary(MAX_FORMULA)];
        let paragraph = &inside[..inside.find("\n\n").unwrap_or(inside.len())];
        let Some(length) = paragraph.find(close) else { continue };
        let formula = paragraph[..length].trim();
        if formula.is_empty() || formula.contains('$') || !is_formula(formula, "") {
            continue;
        }
        // `\[1\]` is a citation in brackets.
        if dollars == "$$"
            && formula.bytes().all(|byte| byte.is_ascii_digit() || b", ".contains(&byte))
        {
            continue;
        }
        text.push_str(&markdown[rest..at]);
        text.push_str(&format!("{dollars}{formula}{dollars}"));
        rest = at + 2 + length + 2;
    }
    text.push_str(&markdown[rest..]);
    Cow::Owned(text)
}

#[cfg(test)]
mod tests {
    use super::super::report::report;

    fn formulas(markdown: &str) -> Vec<String> {
        let html = report(markdown, &[], 1).text.into_string();
        let parts = html.split("<code class=\"math").skip(1);
        parts.map(|part| part.split(['>', '<']).nth(1).unwrap_or_default().to_owned()).collect()
    }

    /// I3: a formula is shown as code, without dollars; an amount of money stays as it is.
    #[test]
    fn i3_formulas_are_distinguished_from_amounts_of_money() {
        let table: [(&str, &[&str]); 16] = [
            ("so $E = mc^2$ holds", &["E = mc^2"]),
            ("$$\n\\int_0^1 x\\,dx\n$$", &["\\int_0^1 x\\,dx"]),
            ("\\(a+b\\) and \\[x^2\\]", &["a+b", "x^2"]),
            ("for $x$ and $n + 1$", &["x", "n + 1"]),
            ("it costs $5 and $10", &[]),
            ("$5-$10, or $5/$10", &[]),
            ("between US$5 and AU$6", &[]),
            ("from $5M/unit to US$, or $x^2$", &["x^2"]),
            ("| a | b |\n|---|---|\n| $5 | $6 |", &[]),
            ("`$a^2$` and\n\n    $b^2$\n", &[]),
            ("`\\(a\\)` is not", &[]),
            ("\\[1\\] and \\[2, 3\\]", &[]),
            ("\\(a note in brackets\\)", &[]),
            ("\\$5 \\$x^2\\$", &[]),
            ("**$5**/**$10** more", &[]),
            ("$", &[]),
        ];
        for (markdown, expected) in table {
            assert_eq!(formulas(markdown), expected, "{markdown}");
        }
        let money = report("between **$5**/**$10** and US$5-$9", &[], 1).text.into_string();
        assert!(money.contains("<strong>$5</strong>/<strong>$10</strong> and US$5-$9"), "{money}");
    }

    /// A hostile report cannot make the work grow faster than its length: that would take minutes here.
    #[test]
    fn i5_a_report_of_dollars_is_rendered_in_time() {
        for part in ["$a $b", "$5-$5", "\\(a", "\\[ $", "$$", "\\(\\(\\)", "http", "["] {
            let markdown = part.repeat(40_000);
            let html = report(&markdown, &[], 1).text.into_string();
            assert!(html.len() >= 40_000, "{part}");
        }
    }
}
