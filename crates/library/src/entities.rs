//! Decodes character references such as `&amp;`.

use super::clean;

/// Replaces character references by their characters; unknown ones are unchanged.
pub(super) fn decode(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('&') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let end = rest.bytes().take(12).position(|byte| byte == b';');
        match end.and_then(|end| Some((entity(&rest[1..end])?, end + 1))) {
            Some((sign, length)) => {
                plain.push_str(&clean::text(sign.encode_utf8(&mut [0; 4])));
                rest = &rest[length..];
            }
            None => {
                plain.push('&');
                rest = &rest[1..];
            }
        }
    }
    plain.push_str(rest);
    plain
}

fn entity(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let hex = number.strip_prefix(['x', 'X']);
        let code = hex.map_or_else(|| number.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok());
        return code.and_then(char::from_u32);
    }
    Some(match name {
        "amp" => '&',
        "lt" => '<',
        "gt" => '>',
        "quot" => '"',
        "apos" | "lsquo" | "rsquo" => '\'',
        "ldquo" | "rdquo" => '"',
        "nbsp" => ' ',
        "ndash" => '–',
        "mdash" => '—',
        "hellip" => '…',
        "copy" => '©',
        "deg" => '°',
        "eacute" => 'é',
        "auml" => 'ä',
        "ouml" => 'ö',
        "uuml" => 'ü',
        "szlig" => 'ß',
        "times" => '×',
        "minus" => '−',
        "euro" => '€',
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entities_are_decoded_except_those_that_steer_a_terminal() {
        let cases = [
            ("a &amp; b", "a & b"),
            ("&lt;&#62;&#x41;", "<>A"),
            ("&minus;5&nbsp;&deg;C", "−5 °C"),
            ("&unknown; & &", "&unknown; & &"),
            ("&#27;[31m&#x202e;", "[31m"),
            ("&#99999999;&#;&;", "&#99999999;&#;&;"),
        ];
        for (coded, plain) in cases {
            assert_eq!(decode(coded), plain, "{coded}");
        }
    }
}
