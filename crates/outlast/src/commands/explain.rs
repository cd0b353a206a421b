//! `outlast explain CODE`: the meaning of an error code, its consequence for the user's money, and the next step.

mod explanations;

use explanations::{Explanation, GROUPS};

use crate::error::{CommandResult, DONE, refuse};
use crate::ui;

pub(super) fn run(code: Option<String>) -> CommandResult {
    let Some(code) = code else {
        let row = |explanation: &Explanation| {
            vec![ui::Cell::plain(explanation.code), ui::Cell::plain(&explanation.summary())]
        };
        ui::table(&["CODE", "MEANING"], explanations().map(row).collect());
        return DONE;
    };
    let wanted = code.trim().to_ascii_uppercase().replace('-', "_");
    let Some(explanation) = explanations().find(|explanation| explanation.code == wanted) else {
        let why = format!("unknown code `{}`", ui::short(&code, 64));
        return refuse(why, "`outlast explain` lists every code");
    };
    ui::report(&format!("# {}\n\n{}", explanation.code, remove_links(&explanation.markdown())));
    DONE
}

/// Returns every explanation, in the order of the documentation.
fn explanations() -> impl Iterator<Item = &'static Explanation> {
    GROUPS.iter().flat_map(|group| group.codes)
}

impl Explanation {
    /// Returns the first sentence of its meaning.
    fn summary(&self) -> String {
        let meaning = remove_links(self.meaning).replace('\n', " ");
        let end = meaning.find(". ").map_or(meaning.len(), |at| at + 1);
        meaning[..end].trim_end_matches('.').to_owned()
    }

    fn markdown(&self) -> String {
        let Self { meaning, money, next, .. } = self;
        format!("{meaning}\n\n**Money:** {money}\n\n**Next:** {next}")
    }
}

/// Replaces links to other pages by their names, because the reader of a terminal cannot follow them.
fn remove_links(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("](") {
        let Some((target, left)) = after.split_once(')') else { break };
        let (start, name) = before.rsplit_once('[').unwrap_or((before, ""));
        out.push_str(start);
        out.push_str(if target.starts_with("http") { target } else { name });
        rest = left;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_a_job_can_fail_with_is_explained() {
        for code in outlast_core::Code::ALL {
            assert!(explanations().any(|explanation| explanation.code == code.as_str()), "{code}");
        }
        for explanation in explanations() {
            assert!(!remove_links(&explanation.markdown()).contains("]("), "{}", explanation.code);
        }
    }

    #[test]
    fn every_code_has_a_line_that_fits() {
        for explanation in explanations() {
            let summary = explanation.summary();
            assert!(!summary.contains('\n') && (1..=80).contains(&summary.len()), "{summary}");
        }
    }

    #[test]
    fn links_become_their_names() {
        assert_eq!(remove_links("a [b](c.md) d [e](https://f) g"), "a b d https://f g");
        assert_eq!(remove_links("a [b] c"), "a [b] c");
    }

    /// docs/errors.md has every explanation; set UPDATE_DOCS=1 to write them.
    #[test]
    #[expect(clippy::disallowed_methods, reason = "a switch for people who correct the docs")]
    fn the_documented_codes_are_those_of_the_table() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/errors.md");
        let page = std::fs::read_to_string(path).unwrap();
        let (before, _) = page.split_once("<!-- codes -->\n").unwrap();
        let mut expected = format!("{before}<!-- codes -->\n");
        for group in GROUPS {
            expected.push_str(&format!("\n## {}\n", group.title));
            if !group.about.is_empty() {
                expected.push_str(&format!("\n{}\n", group.about));
            }
            for explanation in group.codes {
                let (code, text) = (explanation.code, explanation.markdown());
                expected.push_str(&format!("\n### {code}\n\n{text}\n"));
            }
        }
        if std::env::var_os("UPDATE_DOCS").is_some() {
            std::fs::write(path, &expected).unwrap();
        }
        let written = std::fs::read_to_string(path).unwrap();
        assert!(written == expected, "docs/errors.md is stale: run this test with UPDATE_DOCS=1");
    }
}
