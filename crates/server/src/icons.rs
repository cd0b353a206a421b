//! The icons of the server and its tools (L6): drawings as data addresses, so that a client loads nothing.

use rmcp::model::{Icon, Tool};

// A space is not allowed in an address.
const BEFORE: &str = "data:image/svg+xml,%3Csvg%20xmlns='http://www.w3.org/2000/svg'%20viewBox='0%200%2024%2024'%20\
                      fill='none'%20stroke='%236b7280'%20stroke-width='2'%3E%3Cpath%20d='";
const AFTER: &str = "'/%3E%3C/svg%3E";

/// An hourglass.
const SERVER: &str = "M6 3h12M6 21h12M7 3v3l10 12v3M17 3v3L7 18v3";
/// A magnifying glass.
const ASK: &str = "M16 16l5 5M10 4a6 6 0 100 12 6 6 0 000-12z";
/// A page.
const READ: &str = "M6 3h9l3 3v15H6zM9 10h6M9 14h6";
/// A list.
const LIST: &str = "M4 6h2M9 6h11M4 12h2M9 12h11M4 18h2M9 18h11";
/// A cross.
const CANCEL: &str = "M6 6l12 12M18 6L6 18";

/// Returns the icon of the server.
pub(crate) fn server() -> Icon {
    icon(SERVER)
}

/// Adds the icon that shows what a tool does, by its annotations.
pub(crate) fn with_icon(mut tool: Tool) -> Tool {
    let hints = tool.annotations.clone().unwrap_or_default();
    let is = |hint: Option<bool>| hint == Some(true);
    let path =
        match (is(hints.destructive_hint), is(hints.read_only_hint), is(hints.open_world_hint)) {
            (true, _, _) => CANCEL,
            (false, true, true) => READ,
            (false, true, false) => LIST,
            (false, false, _) => ASK,
        };
    tool.icons = Some(vec![icon(path)]);
    tool
}

fn icon(path: &str) -> Icon {
    Icon::new(format!("{BEFORE}{}{AFTER}", path.replace(' ', "%20")))
        .with_mime_type("image/svg+xml")
        .with_sizes(vec!["any".to_owned()])
}
