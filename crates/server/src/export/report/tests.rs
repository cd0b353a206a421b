use super::*;

fn html(markdown: &str, sources: &[Source]) -> String {
    report(markdown, sources, 4).text.into_string()
}

fn source(number: u32) -> Source {
    Source { number, url: "https://www.a.example/b".to_owned(), ..Source::default() }
}

/// A citation is a listed number in brackets, outside code and outside links.
#[test]
fn a_citation_leads_to_its_source_and_nothing_else_does() {
    let sources = [source(1), source(12)];
    let table = [
        ("so[1][12].", 2),
        ("[3] [x] [] [", 0),
        ("`a[1]` and\n\n    b[1]\n", 0),
        ("[see [1]](https://b.example)", 0),
        ("**bold[1]** | [12]", 2),
        ("https://c.example[1]", 1),
    ];
    for (text, count) in table {
        let html = html(text, &sources);
        assert_eq!(html.matches("class=\"cite\" href=\"#s4-").count(), count, "{text}: {html}");
    }
    let titled = Source { title: Some("A \"b\"".to_owned()), ..source(1) };
    let cited = html("so[1]", &[titled]);
    assert!(cited.contains("data-source=\"A &quot;b&quot; · a.example\""), "{cited}");
}

/// I3, I5: a table scrolls in its own box, and its alignment needs no style attribute.
#[test]
fn i3_a_table_is_in_a_box_that_scrolls_and_aligns_by_class() {
    let html = html("| a | b | c |\n|---|:-:|--:|\n| 1 | 2 | 3 |\n", &[]);
    for part in [
        "<div class=\"table\" role=\"group\" aria-label=\"Table\" tabindex=\"0\"><table dir=\"auto\">",
        "<th scope=\"col\">a</th><th scope=\"col\" class=\"center\">b</th>",
        "<td>1</td><td class=\"center\">2</td><td class=\"right\">3</td>",
        "</tbody></table>\n</div>",
    ] {
        assert!(html.contains(part), "{part}: {html}");
    }
    assert!(!html.contains("style="), "{html}");
}

#[test]
fn i3_bare_addresses_tasks_and_footnotes_are_rendered() {
    let table = [
        (
            "see https://a.example/b.",
            "see <a class=\"url\" href=\"https://a.example/b\" rel=\"noopener noreferrer\">https://a.example/b</a>.",
        ),
        (
            "<https://a.example>",
            "<a href=\"https://a.example\" rel=\"noopener noreferrer\">https://a.example</a>",
        ),
        (
            "[x](https://a.example)",
            "<a href=\"https://a.example\" rel=\"noopener noreferrer\">x</a>",
        ),
        (
            "[https://a.example](javascript:x)",
            "<a class=\"url\" href=\"https://a.example\" rel=\"noopener noreferrer\">https://a.example</a>",
        ),
        ("`https://a.example`", "<code>https://a.example</code>"),
        (
            "- [x] one\n- [ ] two",
            "<li><span class=\"task\" role=\"img\" aria-label=\"done\">☑</span> one</li>",
        ),
        ("a[^n]\n\n[^n]: why", "a<sup><a id=\"r4-1\" href=\"#f4-1\">1</a></sup>"),
        (
            "a[^n]\n\n[^n]: why",
            "<li value=\"1\" id=\"f4-1\" dir=\"auto\"><p>why</p>\n<a href=\"#r4-1\" aria-label=\"Back to mention 1\">↩</a></li>",
        ),
        ("a[^n]", "a[^n]"),
        ("~~old~~ *e* **s**\\\nx", "<del>old</del> <em>e</em> <strong>s</strong><br>"),
        (
            "3. c\n\n---\n\n> q",
            "<ol start=\"3\" dir=\"auto\"><li>c</li>\n</ol>\n<hr>\n<blockquote dir=\"auto\"><p>q</p>\n</blockquote>",
        ),
    ];
    for (markdown, expected) in table {
        let html = html(markdown, &[]);
        assert!(html.contains(expected), "{markdown}: {html}");
    }
}

/// I3: text in Hebrew or Arabic runs from right to left, block by block.
#[test]
fn i3_each_block_takes_the_direction_of_its_text() {
    let html = html("# שלום\n\nשלום\n\n- שלום\n\n  שלום\n\n    code\n", &[]);
    assert_eq!(html.matches("dir=\"auto\"").count(), 3, "{html}");
    assert!(html.contains("<p dir=\"auto\">"), "{html}");
}

#[test]
fn i3_headings_are_listed_with_their_ids() {
    let markdown = "# A *b* `c` [1]\n\ntext\n\n## D & <e>\n";
    let report = report(markdown, &[source(1)], 2);
    let listed: Vec<_> =
        report.headings.iter().map(|heading| (heading.id.as_str(), heading.title.trim())).collect();
    assert_eq!(listed, [("h2-1", "A b c"), ("h2-2", "D & <e>")]);
    assert!(
        report.text.into_string().contains("<h2 id=\"h2-2\" dir=\"auto\">D &amp; &lt;e&gt;</h2>")
    );
}

/// I5: an id never comes from the report, so it cannot take the place of one of the page's.
#[test]
fn i5_a_footnote_has_an_id_of_the_page() {
    let html = html("a[^main] b[^main]\n\n[^main]: [^link]\n\n[^link]: x", &[]);
    assert!(!html.contains("id=\"main\"") && !html.contains("id=\"link\""), "{html}");
    assert_eq!(html.matches("id=\"r4-1\"").count(), 1, "{html}");
}
