use outlast_core::StateKind;

use super::super::report::report;
use super::*;

/// Everything that a report, a source or a question might try.
const HOSTILE: &str = "# Hi <script>alert(1)</script>\n\n<script>alert(2)</script>\n\n\
    <img src=x onerror=alert(3)>\n\n[a](javascript:alert(4)) [b](JaVaScRiPt:alert(5)) [c](  javascript:alert(6))\n\n\
    [d](data:text/html,<script>alert(7)</script>) <javascript:alert(8)> [e](vbscript:x) [f](//evil.example)\n\n\
    ![i](https://evil.example/pixel.png) ![j](javascript:alert(9))\n\n\
    [g](https://good.example/\"onmouseover=alert(10)) `</code><script>alert(11)</script>`\n\n\
    ```\"><script>\n</pre><script>alert(12)</script>\n```\n\n\
    | <script>alert(13)</script> |\n|---|\n| <style>*{display:none}</style> |\n\n\
    [h]: javascript:alert(14)\n\n[h] <iframe src=x></iframe> <svg onload=alert(15)> </article></body>\n";

fn hostile() -> Transcript {
    let source = Source {
        number: 1,
        url: "javascript:alert(16)".to_owned(),
        title: Some("\"><script>alert(17)</script>".to_owned()),
        ..Source::default()
    };
    let answer = TurnAnswer {
        text: HOSTILE.to_owned(),
        sources: vec![source],
        model: Some("<script>".to_owned()),
        usage: None,
        cost: None,
        price: "<b>".to_owned(),
        check: None,
    };
    let turn = Turn {
        job: None,
        question: "'\"></title><script>alert(18)</script>".to_owned(),
        state: StateKind::Succeeded,
        asked_at: None,
        ended_at: None,
        failures: Vec::new(),
        answer: Some(answer),
    };
    Transcript {
        id: "<script>".to_owned(),
        title: turn.question.clone(),
        state: StateKind::Succeeded,
        created_at: "<script>".to_owned(),
        updated_at: String::new(),
        turns: vec![turn],
    }
}

/// Returns the tags of a page with their attributes, as a browser would find them.
fn tags(page: &str) -> Vec<&str> {
    page.split('<').skip(1).map(|rest| rest.split('>').next().unwrap_or_default()).collect()
}

#[test]
fn a_hostile_report_can_run_load_and_break_nothing() {
    let page = html_page(&hostile());
    let known = [
        "html", "head", "meta", "title", "style", "body", "header", "h1", "h2", "p", "section",
        "article", "a", "ol", "li", "span", "br", "code", "pre", "table", "thead", "tbody", "tr",
        "th", "td", "ul", "b", "div", "details", "summary",
    ];
    for tag in tags(&page).into_iter().filter(|tag| *tag != "!DOCTYPE html") {
        let name = tag.trim_start_matches('/').split([' ', '\n']).next().unwrap_or_default();
        assert!(known.contains(&name), "<{tag}>");
        let attributes = tag.strip_prefix(name).unwrap_or_default();
        for attribute in attributes.split('"').step_by(2) {
            let name = attribute.trim().trim_end_matches('=');
            let known = [
                "",
                "lang",
                "charset",
                "http-equiv",
                "content",
                "name",
                "class",
                "href",
                "rel",
                "value",
                "id",
                "data-source",
                "dir",
                "scope",
                "role",
                "aria-label",
                "tabindex",
            ];
            assert!(known.contains(&name), "<{tag}>: {name}");
        }
        if name == "a" && tag != "/a" {
            let ours = tag.starts_with("a class=\"cite\" href=\"#s1-");
            assert!(ours || tag.starts_with("a href=\"https://good.example/"), "<{tag}>");
        }
    }
    assert_eq!(page.matches("<style>").count(), 1);
    assert_eq!(page.matches("</body>").count(), 1);
}

#[test]
fn a_page_says_what_was_asked_and_answered() {
    let mut told = hostile();
    told.turns[0].question = "Why?".to_owned();
    told.turns[0].answer.as_mut().unwrap().text = "# Because\n\n- of **this** [1]".to_owned();
    let page = html_page(&told);
    for part in [
        "<h1 class=\"question\" dir=\"auto\">Why?</h1>",
        "<h1 id=\"h1-1\" dir=\"auto\">Because</h1>",
        "<strong>this</strong> <a class=\"cite\" href=\"#s1-1\"",
        "<li value=\"1\" id=\"s1-1\">",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

/// I3: a command in an error message is code, and a lone backtick is text.
#[test]
fn i3_commands_in_messages_are_code() {
    let table = [
        ("run `outlast <x>` now", "run <code>outlast &lt;x&gt;</code> now"),
        ("`a` and `b`", "<code>a</code> and <code>b</code>"),
        ("a ` b", "a ` b"),
        ("`a` ` b", "<code>a</code> ` b"),
    ];
    for (text, expected) in table {
        assert_eq!(with_code(text).into_string(), expected);
    }
}

/// I3: a title above the report and the finest headings are not in the table of contents.
#[test]
fn i3_a_long_report_has_a_table_of_contents() {
    let listed = |markdown: &str| {
        let headings = report(markdown, &[], 1).headings;
        let html = contents(&headings).into_string();
        has_contents(&headings).then(|| html.matches("<li").count())
    };
    assert_eq!(listed("# Title\n## A\n### B\n#### C\n## D\n"), Some(3));
    assert_eq!(listed("## A\n## B\n## C\n"), Some(3));
    assert_eq!(listed("## A\n## B\n"), None);
}
