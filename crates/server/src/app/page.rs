//! The page itself: one document with its style and its script inside, because a host shows it in a frame that can load
//! nothing.

const HTML: &str = include_str!("page.html");
const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// The document.
pub(super) fn html() -> String {
    let style = format!("{STYLE}{}", crate::export::REPORT_STYLE);
    HTML.replace("/*style*/", &style).replace("/*script*/", SCRIPT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// I7: nothing is loaded from anywhere, and the whole is small.
    #[test]
    fn i7_the_page_stands_alone() {
        let page = html();
        assert!(page.contains("ui/initialize") && page.contains("--text"), "{page}");
        assert!(page.len() < 20_000, "{} bytes", page.len());
        for loads in ["src=", "<link", "@import", "url(", "http://", "https://", "fetch("] {
            assert!(!page.contains(loads), "the page holds {loads}");
        }
    }
}
