//! HTML tags: their extent, and whether they separate the words around them.

/// A tag at the beginning of a text.
pub(super) struct Tag {
    /// The length with its brackets.
    pub(super) length: usize,
    /// True if the words on its two sides are separate.
    pub(super) breaks: bool,
}

/// Parses an HTML tag; anything else in angle brackets is text.
pub(super) fn tag(text: &str) -> Option<Tag> {
    if text.starts_with("<!--") {
        let length = text[..text.floor_char_boundary(NEAR)].find("-->")? + 3;
        return Some(Tag { length, breaks: true });
    }
    let (name, _, length) = name_of(text)?;
    let breaks = is_block(&name);
    (breaks || is_inline(&name)).then_some(Tag { length, breaks })
}

/// The maximum distance to the end of a tag.
const NEAR: usize = 2_048;

fn is_block(name: &str) -> bool {
    const BLOCKS: &str = "br p div li ul ol tr td th table thead tbody hr h1 h2 h3 h4 h5 h6 details summary \
                          blockquote section center picture source dl dt dd";
    BLOCKS.split(' ').any(|block| block == name)
}

/// Returns true for a tag inside running text.
pub(super) fn is_inline(name: &str) -> bool {
    const INLINE: &str = "a b i u s em strong small sub sup span font img kbd code mark del ins abbr cite q var samp";
    INLINE.split(' ').any(|inline| inline == name)
}

/// Returns the lower-case name of a tag, whether it closes, and its length.
pub(super) fn name_of(text: &str) -> Option<(String, bool, usize)> {
    let inner = text.strip_prefix('<')?;
    let closing = inner.starts_with('/');
    let inner = inner.strip_prefix('/').unwrap_or(inner);
    let end = inner.find(|c: char| !c.is_ascii_alphanumeric()).unwrap_or(inner.len());
    let name = inner[..end].to_ascii_lowercase();
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return None;
    }
    let mut quote = None;
    for (at, byte) in text.bytes().enumerate().take(NEAR) {
        match (quote, byte) {
            (None, b'>') => return Some((name, closing, at + 1)),
            (None, b'"' | b'\'') => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
    }
    // An unclosed quote: the tag ends at the first bracket.
    let length = text.bytes().take(NEAR).position(|byte| byte == b'>')? + 1;
    Some((name, closing, length))
}
