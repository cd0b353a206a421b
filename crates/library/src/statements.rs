//! Turns passages into sentences for the snippets of ranked results; table rows are written out.

use super::clean::shorten;
use super::document::PassageKind;
use super::select::CitedPassages;
use super::sentences;

/// Returns the sentences of a block.
pub(super) fn statements(block: &CitedPassages) -> Vec<String> {
    let mut statements = Vec::new();
    let mut head = Vec::new();
    for part in &block.parts {
        match part.kind {
            PassageKind::Line => statements.push(part.text.clone()),
            PassageKind::Paragraph => {
                statements.extend(sentences::split(&part.text).into_iter().map(str::to_owned));
            }
            PassageKind::Item => {
                let text = part.text.trim_start();
                let text = text.split_once(' ').map_or("", |(_, text)| text);
                statements.extend(sentences::split(text).into_iter().map(str::to_owned));
            }
            PassageKind::Head => head = cells(&part.text),
            PassageKind::Row => {
                statements.push(shorten(&row_in_words(&head, &cells(&part.text)), 300));
            }
            PassageKind::Code => {}
        }
    }
    statements
}

pub(super) fn cells(row: &str) -> Vec<String> {
    let row = row.trim().trim_start_matches("| ").trim_end_matches(" |").replace("\\|", "\u{1}");
    row.split(" | ").map(|cell| cell.replace('\u{1}', "|")).collect()
}

/// Writes a row as "`A` (default: 5; what it is: ...)". A row of two cells is a name and its meaning, or two
/// halves of a sentence that need the names of their columns.
fn row_in_words(head: &[String], cells: &[String]) -> String {
    let Some((first, rest)) = cells.split_first() else { return String::new() };
    if let [second] = rest {
        let second = second.trim_end_matches('.');
        let is_phrase =
            first.starts_with(char::is_lowercase) && first.split_whitespace().count() > 2;
        return match head {
            [one, other] if is_phrase && !one.is_empty() && !other.is_empty() => {
                format!("{one}: {first}; {other}: {second}.")
            }
            _ => format!("{first}: {second}."),
        };
    }
    let named = rest.iter().enumerate().filter(|(_, cell)| !cell.is_empty() && *cell != "-").map(
        |(at, cell)| match head.get(at + 1).filter(|name| !name.is_empty()) {
            Some(name) => format!("{name}: {cell}"),
            None => cell.clone(),
        },
    );
    format!("{first} ({}).", named.collect::<Vec<_>>().join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_written_out_with_the_column_names_it_needs() {
        let row = |head: &[&str], cells: &[&str]| {
            let owned =
                |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
            row_in_words(&owned(head), &owned(cells))
        };
        let cases = [
            (row(&["term", "meaning"], &["Fence", "a number."]), "Fence: a number."),
            (
                row(&["the server died", "the next one"], &["before anything was sent", "runs it"]),
                "the server died: before anything was sent; the next one: runs it.",
            ),
            (
                row(&["", ""], &["before anything was sent", "runs it"]),
                "before anything was sent: runs it.",
            ),
            (row(&["key", "default", "what"], &["`a`", "-", "b"]), "`a` (what: b)."),
        ];
        for (said, expected) in cases {
            assert_eq!(said, expected);
        }
    }
}
