//! Markers of citations in running text: `[3]`, `[1-3]`, `【3†source】`.

/// Parses the numbers in brackets; returns them with the length.
pub(super) fn bracket(text: &str) -> Option<(Vec<u32>, usize)> {
    let end = text.find(']').filter(|end| *end <= 60)?;
    let numbers = numbers(text[1..end].trim_start_matches('^'))?;
    // A link of Markdown was parsed before; what is left in this form is text.
    (!text[end + 1..].starts_with('(')).then_some((numbers, end + 1))
}

pub(super) fn full_width_bracket(text: &str) -> Option<(Vec<u32>, usize)> {
    let open = '【'.len_utf8();
    let end = text.find('】').filter(|end| *end <= 60)?;
    let inner = text[open..end].split(['†', ':']).next()?;
    Some((numbers(inner)?, end + '】'.len_utf8()))
}

fn numbers(inner: &str) -> Option<Vec<u32>> {
    let mut numbers = Vec::new();
    for part in inner.split([',', ';']) {
        let part = part.trim().trim_start_matches('^');
        let (first, last) = part.split_once(['-', '–']).unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
        if last < first || last - first > 50 || last > 9_999 {
            return None;
        }
        numbers.extend(first..=last);
    }
    Some(numbers)
}
