use outlast_core::{Source, StateKind};

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
        "th", "td", "ul",
    ];
    for tag in tags(&page).into_iter().filter(|tag| *tag != "!doctype html") {
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
                "title",
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
        "<h1 class=\"question\">Why?</h1>",
        "<h1>Because</h1>",
        "<strong>this</strong> <a class=\"cite\" href=\"#s1-1\"",
        "<li value=\"1\" id=\"s1-1\">",
    ] {
        assert!(page.contains(part), "{part}: {page}");
    }
}

/// A citation is a listed number in brackets, outside code and outside links.
#[test]
fn a_citation_leads_to_its_source_and_nothing_else_does() {
    let source =
        |number| Source { number, url: "https://a.example".to_owned(), ..Source::default() };
    let sources = [source(1), source(12)];
    let table = [
        ("so[1][12].", 2),
        ("[3] [x] [] [", 0),
        ("`a[1]` and\n\n    b[1]\n", 0),
        ("[see [1]](https://b.example)", 0),
        ("**bold[1]** | [12]", 2),
    ];
    for (text, count) in table {
        let html = report(text, &sources, 4).into_string();
        assert_eq!(html.matches("class=\"cite\" href=\"#s4-").count(), count, "{text}: {html}");
    }
}
