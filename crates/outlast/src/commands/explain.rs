//! `outlast explain CODE`: what an error code means for one's money, and what to do. The text is that of docs/errors.md.

use crate::error::{CommandResult, DONE, refuse};
use crate::ui;

const ERRORS_PAGE: &str = include_str!("../../../../docs/errors.md");

pub(super) fn run(code: Option<String>) -> CommandResult {
    let Some(code) = code else {
        sections().for_each(|(code, _)| ui::line(code));
        return DONE;
    };
    let wanted = code.trim().to_ascii_uppercase().replace('-', "_");
    let Some((code, text)) = sections().find(|(code, _)| *code == wanted) else {
        let why = format!("there is no code `{}`", ui::short(&code, 64));
        return refuse(why, "`outlast explain` lists every code");
    };
    ui::report(&format!("# {code}\n\n{}", unlinked(text)));
    DONE
}

/// Every code with its section, in the order of the page.
fn sections() -> impl Iterator<Item = (&'static str, &'static str)> {
    ERRORS_PAGE.split("\n### ").skip(1).filter_map(|section| {
        let (code, text) = section.split_once('\n')?;
        Some((code, text.split("\n## ").next().unwrap_or_default().trim()))
    })
}

/// Links to other pages become their names: the reader is not where they lead.
fn unlinked(text: &str) -> String {
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
            let (_, text) = sections().find(|(known, _)| *known == code.as_str()).unwrap();
            assert!(text.contains("**Money:**") && text.contains("**Next:**"), "{code}: {text}");
            assert!(!unlinked(text).contains("]("), "{code}");
        }
    }

    #[test]
    fn links_become_their_names() {
        assert_eq!(unlinked("a [b](c.md) d [e](https://f) g"), "a b d https://f g");
        assert_eq!(unlinked("a [b] c"), "a [b] c");
    }
}
