//! Renders a page as HTML, with navigation and other noise around its article.

use std::fmt::Write as _;

use super::attacks::{Attack, Place};
use super::corpus::{Block, Page, pages};

/// Renders the page; `origin` is the address of its host.
pub(super) fn render(page: &Page, origin: &str) -> String {
    let title = escape(&page.title);
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title>\n\
         <meta name=\"description\" content=\"{title}\">\n<script>var a = \"{title}\";</script>\n\
         <style>nav {{ color: red }}</style></head>\n<body>\n<header><a href=\"/\">Home</a></header>\n\
         <nav><ul><li><a href=\"/login\">Log in</a></li><li><a href=\"/basket\">Basket (3 items)</a></li></ul></nav>\n\
         <main><article><h1>{title}</h1>\n"
    );
    let place = |place: Place, html: &mut String| {
        if let Some(attack) = page.attack.as_ref().filter(|attack| attack.place == place) {
            html.push_str(&attack_html(attack, &format!("{origin}/trap/{}", page.number)));
        }
    };
    for (nth, block) in page.blocks.iter().enumerate() {
        render_block(block, &mut html);
        if nth == 0 {
            [Place::Paragraph, Place::Comment, Place::Hidden, Place::Alternative]
                .into_iter()
                .for_each(|here| place(here, &mut html));
        }
    }
    place(Place::Cell, &mut html);
    html.push_str("</article></main>\n<aside><h2>Related pages</h2><ul>");
    for step in 1..4 {
        let related = &pages()[(page.number + step) % pages().len()];
        // Writing to a string cannot fail.
        _ = write!(html, "<li><a href=\"/{}\">{}</a></li>", related.path, escape(&related.title));
    }
    html.push_str(
        "</ul></aside>\n<footer>Subscribe to our newsletter. 12 cookies.</footer></body></html>\n",
    );
    html
}

fn render_block(block: &Block, html: &mut String) {
    match block {
        Block::Heading(text) => _ = writeln!(html, "<h2>{}</h2>", escape(text)),
        Block::Text(text) => _ = writeln!(html, "<p>{}</p>", escape(text)),
        Block::Table(rows) => {
            html.push_str("<table>\n");
            for (nth, row) in rows.iter().enumerate() {
                let tag = if nth == 0 { "th" } else { "td" };
                let cells = row.iter().map(|cell| format!("<{tag}>{}</{tag}>", escape(cell)));
                _ = writeln!(html, "<tr>{}</tr>", cells.collect::<String>());
            }
            html.push_str("</table>\n");
        }
    }
}

fn attack_html(attack: &Attack, trap: &str) -> String {
    let text = attack.text.replace("TRAP", trap);
    let escaped = escape(&text);
    match attack.place {
        Place::Paragraph => format!("<p>{escaped}</p>\n"),
        Place::Comment => format!("<!-- {} -->\n", text.replace("--", "- -")),
        Place::Hidden => format!("<div style=\"display:none\">{escaped}</div>\n"),
        Place::Alternative => format!("<p><img src=\"/pixel.png\" alt=\"{escaped}\"></p>\n"),
        Place::Cell => format!("<table><tr><td>{escaped}</td></tr></table>\n"),
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
