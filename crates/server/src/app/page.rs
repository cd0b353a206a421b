//! The page: one document that includes its style and its script, because a host shows it in a frame that cannot load
//! anything.

const HTML: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

pub(super) fn html() -> String {
    let style = format!("{STYLE}{}", crate::export::REPORT_STYLE);
    HTML.replace("/*style*/", &style).replace("/*script*/", SCRIPT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I7: the page loads nothing, and the document is small.
    #[test]
    fn i7_the_page_needs_nothing_else() {
        let page = html();
        assert!(page.contains("ui/initialize") && page.contains("--text"), "{page}");
        assert!(page.len() < 20_000, "{} bytes", page.len());
        for loads in ["src=", "<link", "@import", "url(", "http://", "https://", "fetch("] {
            assert!(!page.contains(loads), "the page holds {loads}");
        }
    }
}
