//! Shows the changes as a unified diff. One hunk is enough: an entry is in one place.

/// Lines shown around a change.
const CONTEXT: usize = 3;

/// Returns the diff between two texts; empty if they are equal.
pub(crate) fn unified_diff(name: &str, before: Option<&str>, after: Option<&str>) -> String {
    if before == after {
        return String::new();
    }
    let [old_name, new_name] =
        [before, after].map(|text| if text.is_some() { name } else { "/dev/null" });
    let [old, new] = [before, after]
        .map(|text| text.unwrap_or_default().split_inclusive('\n').collect::<Vec<_>>());
    let same = old.iter().zip(&new).take_while(|(old, new)| old == new).count();
    let shorter = old.len().min(new.len()) - same;
    let ends = old
        .iter()
        .rev()
        .zip(new.iter().rev())
        .take(shorter)
        .take_while(|(old, new)| old == new)
        .count();
    let from = same.saturating_sub(CONTEXT);
    let tail = ends.min(CONTEXT);
    let (old_end, new_end) = (old.len() - ends, new.len() - ends);
    let mut diff = format!(
        "--- {old_name}\n+++ {new_name}\n@@ -{} +{} @@\n",
        range(from, old_end + tail),
        range(from, new_end + tail)
    );
    let mut push = |sign: char, line: &str| {
        diff.push(sign);
        diff.push_str(line);
        if !line.ends_with('\n') {
            diff.push_str("\n\\ No newline at end of file\n");
        }
    };
    old[from..same].iter().for_each(|line| push(' ', line));
    old[same..old_end].iter().for_each(|line| push('-', line));
    new[same..new_end].iter().for_each(|line| push('+', line));
    old[old_end..old_end + tail].iter().for_each(|line| push(' ', line));
    diff
}

fn range(from: usize, to: usize) -> String {
    let count = to - from;
    // The format counts from one, and from zero if there is nothing.
    format!("{},{count}", if count == 0 { from } else { from + 1 })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_shows_the_change_with_three_lines_around_it() {
        let before = "1\n2\n3\n4\n5\n6\n7\n8\n9\n";
        let after = "1\n2\n3\n4\nnew\n6\n7\n8\n9\n";
        let expected = "--- f\n+++ f\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+new\n 6\n 7\n 8\n";
        assert_eq!(unified_diff("f", Some(before), Some(after)), expected);
        assert_eq!(unified_diff("f", Some(before), Some(before)), "");
    }

    #[test]
    fn a_new_file_and_a_missing_last_newline_are_said() {
        assert_eq!(
            unified_diff("f", None, Some("a\n")),
            "--- /dev/null\n+++ f\n@@ -0,0 +1,1 @@\n+a\n"
        );
        let diff = unified_diff("f", Some("{}"), Some("{\n}\n"));
        assert!(diff.contains("-{}\n\\ No newline at end of file\n+{\n"), "{diff}");
        assert_eq!(
            unified_diff("f", Some("a\na\n"), Some("a\n")),
            "--- f\n+++ f\n@@ -1,2 +1,1 @@\n a\n-a\n"
        );
    }
}
