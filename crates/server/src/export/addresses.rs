//! Addresses in reports: those that become links, and the site that an address belongs to.

/// Returns true if the address may be a link.
pub(crate) fn is_allowed(address: &str) -> bool {
    let address = address.trim_start().to_ascii_lowercase();
    ["https://", "http://", "mailto:"].iter().any(|scheme| address.starts_with(scheme))
}

/// Returns the site of a web address, without `www.`; `None` for a document and for any other address.
pub(crate) fn site(address: &str) -> Option<&str> {
    let (scheme, rest) = address.trim_start().split_once("://")?;
    if !scheme.eq_ignore_ascii_case("https") && !scheme.eq_ignore_ascii_case("http") {
        return None;
    }
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority.rsplit('@').next()?;
    let host = host.strip_prefix("www.").unwrap_or(host);
    (!host.is_empty()).then_some(host)
}

/// Splits a text into its parts: each is a web address, or the text between two of them.
pub(super) fn split_addresses(text: &str) -> Vec<(&str, bool)> {
    let mut parts = Vec::new();
    let mut rest = text;
    let mut searched = 0;
    while let Some(found) = rest[searched..].find("http").map(|at| at + searched) {
        let follows_word = rest[..found].ends_with(|sign: char| sign.is_alphanumeric());
        let length = if follows_word { None } else { address_length(&rest[found..]) };
        match length {
            Some(length) => {
                parts.push((&rest[..found], false));
                parts.push((&rest[found..found + length], true));
                rest = &rest[found + length..];
                searched = 0;
            }
            None => searched = found + "http".len(),
        }
    }
    parts.push((rest, false));
    parts.retain(|(part, _)| !part.is_empty());
    parts
}

/// The punctuation that ends a sentence, and is not part of an address at its end.
const PUNCTUATION: [char; 15] =
    ['.', ',', ';', ':', '!', '?', '*', '_', '~', '\'', '”', '’', '。', '，', '、'];

/// Returns the length of the address at the start of the text, as GitHub's autolinks end one: without the punctuation of
/// the sentence around it, and without a closing bracket that it does not open.
fn address_length(text: &str) -> Option<usize> {
    let scheme = ["https://", "http://"].into_iter().find(|scheme| text.starts_with(scheme))?;
    let ends = |sign: char| sign.is_whitespace() || "<>\"`[]{}|".contains(sign);
    let mut address = &text[..text.find(ends).unwrap_or(text.len())];
    let count = |bracket: char| address.matches(bracket).count();
    let mut unopened = count(')').saturating_sub(count('('));
    loop {
        let shorter = address.trim_end_matches(PUNCTUATION);
        let is_unopened = unopened > 0 && shorter.ends_with(')');
        let shorter = if is_unopened { &shorter[..shorter.len() - 1] } else { shorter };
        unopened -= usize::from(is_unopened);
        if shorter.len() == address.len() {
            break;
        }
        address = shorter;
    }
    let has_host = address[scheme.len()..].starts_with(|sign: char| sign.is_alphanumeric());
    has_host.then_some(address.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn i3_a_bare_address_ends_before_the_punctuation_of_its_sentence() {
        let table = [
            ("see https://a.example/b.", Some("https://a.example/b")),
            ("(https://a.example/b_(c))", Some("https://a.example/b_(c)")),
            ("http://a.example/?q=1&r=2, and", Some("http://a.example/?q=1&r=2")),
            ("https://a.example[1]", Some("https://a.example")),
            ("https://", None),
            ("xhttps://a.example", None),
            ("https://.", None),
            ("javascript:alert(1)", None),
            ("http and https: two words", None),
        ];
        for (text, address) in table {
            let parts = split_addresses(text);
            let found = parts.iter().find(|(_, is_address)| *is_address).map(|(part, _)| *part);
            assert_eq!(found, address, "{text}");
            assert_eq!(parts.iter().map(|(part, _)| *part).collect::<String>(), text);
        }
    }

    #[test]
    fn i3_the_site_of_a_source_is_its_host() {
        let table = [
            ("https://www.a.example/b?c", Some("a.example")),
            ("HTTP://a.example:81", Some("a.example:81")),
            ("https://a.example@b.example/", Some("b.example")),
            ("notes/a.md", None),
            ("file:///etc/passwd", None),
            ("https://", None),
        ];
        for (address, expected) in table {
            assert_eq!(site(address), expected, "{address}");
        }
    }
}
