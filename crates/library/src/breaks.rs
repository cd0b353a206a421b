//! Finds the lines of a paragraph that their writer ended on purpose (phone lists, settings, verse), as opposed
//! to lines that ended because they were full. One test identifies wrapped prose: the next word would not have
//! fitted.

use super::words;

/// Shorter lines are never full.
const SHORT: usize = 40;
/// Sentences this long, one per line, are prose.
const SENTENCE: usize = 60;

/// Returns the ends of the ranges of lines that belong together. The last end is always the number of lines.
pub(super) fn ends(lines: &[&str]) -> Vec<usize> {
    let all = lines.len();
    let length = |at: usize| lines[at].trim_end().chars().count();
    let longest = (0..all).map(length).max().unwrap_or(0);
    let is_marked = |at: usize| lines[at].ends_with("  ") || lines[at].trim_end().ends_with('\\');
    let closes = |sign: char| sign.is_ascii_digit() || ".,;:!?".contains(sign);
    let is_early = |at: usize| {
        let (this, next) = (lines[at].trim(), lines[at + 1].trim_start());
        let word = next.split_whitespace().next().unwrap_or("").chars().count();
        let fits = length(at) + 1 + word <= longest.max(SHORT);
        let goes_on = match next.starts_with(char::is_lowercase) {
            true => longest > SHORT || !this.ends_with(closes),
            false => longest > SHORT && wants_more(this),
        };
        (is_entry(this) && is_entry(next)) || (fits && !goes_on)
    };
    let last = all.saturating_sub(1);
    let early = (0..last).filter(|at| is_marked(*at) || is_early(*at)).count();
    let sentences = (0..all).filter(|at| is_sentence(lines[*at])).count();
    let is_prose = sentences * 2 > all && (0..all).map(length).sum::<usize>() > SENTENCE * all;
    let all_break = early * 5 >= last * 3 && !is_prose && !lines.iter().all(|line| is_markup(line));
    let mut ends: Vec<_> =
        (0..last).filter(|at| all_break || is_marked(*at)).map(|at| at + 1).collect();
    ends.push(all);
    ends
}

/// Returns true if the last word requires another one, as in "See the".
fn wants_more(line: &str) -> bool {
    let last = line.split_whitespace().next_back().unwrap_or("");
    last.chars().all(char::is_alphabetic) && words::is_stop(&last.to_lowercase())
}

/// Returns true if the line starts like a list entry: with a number, a date, or a name and a colon.
fn is_entry(line: &str) -> bool {
    let line = line.trim_start_matches(['[', '(']);
    let has_name =
        line.split_once(": ").is_some_and(|(name, _)| name.split_whitespace().count() <= 3);
    has_name || line.starts_with(|c: char| c.is_ascii_digit())
}

fn is_sentence(line: &str) -> bool {
    !is_entry(line) && line.trim_end().ends_with(['.', '!', '?'])
}

/// Returns true for a line that is only a tag or a link, such as a badge.
fn is_markup(line: &str) -> bool {
    let line = line.trim();
    line.starts_with(['<', '[', '!']) && line.ends_with(['>', ')', ']'])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_lines_that_end_on_purpose_stay_separate() {
        let cases: &[(&str, &[usize])] = &[
            ("Ada 030 1\nGrace 030 22\nMary 030 333", &[1, 2, 3]),
            ("Name: Laser\nAddress: 10.0.0.7\nPaper: A4", &[1, 2, 3]),
            (
                "The heather blooms,\nthe bees return,\nand in the glooms\nthe candles burn.",
                &[1, 2, 3, 4],
            ),
            (
                "A paragraph of prose that was wrapped at some width, so that every line of it\nis as long as it can be before the next word, and only the last one is\nshorter.",
                &[3],
            ),
            (
                "Each of these sentences is on its own line, as some writers like to have it.\nThe second one is shorter, and is prose all the same.\nAnd so on.",
                &[3],
            ),
            (
                "A line that ends with a mark,  \nand one that was only wrapped because it\nwas full.",
                &[1, 3],
            ),
            (
                "2026-01-02 10:00 started the pump after the alarm had been cleared by hand.\n2026-01-02 11:30 stopped it.\n2026-01-03 09:00 started it again after a look at the filter.",
                &[1, 2, 3],
            ),
            (
                "Yes. Have a look at the\n[section on settings](guide.md#settings), which says more.",
                &[2],
            ),
            ("one line", &[1]),
        ];
        for (text, expected) in cases {
            let lines: Vec<_> = text.split('\n').collect();
            assert_eq!(ends(&lines), *expected, "{text}");
        }
    }
}
