//! Normal forms of text, so that a report and a page can be compared: characters, sentences and words.

use std::collections::HashSet;
use std::sync::LazyLock;

use unicode_normalization::UnicodeNormalization as _;

pub(crate) use super::language::Language;

/// Returns the text in NFKC with plain spaces, quotation marks and dashes, without control and hidden characters.
pub(crate) fn normalize(text: &str) -> String {
    let mut normal = String::with_capacity(text.len());
    let mut last = ' ';
    for sign in text.chars() {
        // NFKC would turn 10² into 102.
        if matches!(sign, '²' | '³' | '¹' | '⁰' | '⁴'..='⁹') && last.is_ascii_digit() {
            normal.push('^');
        }
        let plain = match sign {
            '\u{ad}'
            | '\u{200b}'..='\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{2069}'
            | '\u{feff}' => {
                continue;
            }
            '\n' | '\t' => sign,
            _ if sign.is_control() => continue,
            _ if sign.is_whitespace() => ' ',
            '‘' | '’' | '‚' | '‛' | '′' | '´' => '\'',
            '“' | '”' | '„' | '‟' | '«' | '»' | '″' | '「' | '」' | '『' | '』' => {
                '"'
            }
            '‐'..='―' | '−' | '﹣' => '-',
            '٠'..='٩' => digit(sign, '٠'),
            '۰'..='۹' => digit(sign, '۰'),
            '०'..='९' => digit(sign, '०'),
            _ => sign,
        };
        normal.push(plain);
        last = plain;
    }
    normal.nfkc().collect()
}

fn digit(sign: char, zero: char) -> char {
    char::from_digit(sign as u32 - zero as u32, 10).unwrap_or(sign)
}

/// Joins the words with single spaces.
pub(crate) fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Truncates the text to a number of characters, and marks the cut.
pub(crate) fn shorten(text: &str, longest: usize) -> String {
    match text.char_indices().nth(longest) {
        None => text.to_owned(),
        Some((at, _)) => {
            let end = text[..at].rfind(' ').filter(|end| *end > at / 2).unwrap_or(at);
            format!("{}…", text[..end].trim_end())
        }
    }
}

/// Returns true for a character of a script without spaces between words.
pub(crate) fn is_cjk(sign: char) -> bool {
    matches!(sign, '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{2ffff}')
}

/// Counts words; two characters of a script without spaces count as one.
pub(crate) fn count_words(text: &str) -> usize {
    let cjk = text.chars().filter(|sign| is_cjk(*sign)).count();
    let words = text.split_whitespace().filter(|word| !word.contains(is_cjk));
    words.filter(|word| word.contains(char::is_alphanumeric)).count() + cjk / 2
}

/// Returns the sentences of a paragraph.
pub fn split_sentences(text: &str) -> Vec<&str> {
    sentences(text).into_iter().map(|range| text[range].trim()).collect()
}

/// Returns the byte ranges of the sentences of a paragraph.
pub(crate) fn sentences(text: &str) -> Vec<std::ops::Range<usize>> {
    let mut ranges = Vec::new();
    let mut start = 0;
    let mut in_code = false;
    let mut signs = text.char_indices().peekable();
    while let Some((at, sign)) = signs.next() {
        match sign {
            '`' => in_code = !in_code,
            '.' | '!' | '?' | '…' | '。' | '！' | '？' | '｡' if !in_code => {
                // Closing quotation marks and brackets belong to the sentence.
                let mut end = at + sign.len_utf8();
                while let Some((next, closing)) = signs.next_if(|(_, c)| {
                    matches!(c, '"' | '\'' | ')' | '”' | '’' | '»' | '.' | '」' | '*' | '_')
                }) {
                    end = next + closing.len_utf8();
                }
                let is_full_width = matches!(sign, '。' | '！' | '？' | '｡');
                if is_full_width || is_end(&text[start..at], sign, &text[end..]) {
                    ranges.push(start..end);
                    start = end;
                }
            }
            _ => {}
        }
    }
    ranges.push(start..text.len());
    ranges.retain(|range| !text[range.clone()].trim().is_empty());
    ranges
}

fn is_end(before: &str, sign: char, after: &str) -> bool {
    let rest = after.trim_start();
    if rest.is_empty() {
        return true;
    }
    if after.len() == rest.len() && !rest.starts_with('[') && !rest.starts_with(is_cjk) {
        return false;
    }
    if rest.starts_with(char::is_lowercase) {
        return false;
    }
    if sign != '.' {
        return true;
    }
    let word = before.rsplit(|c: char| c.is_whitespace() || c == '(').next().unwrap_or("");
    let is_initial = word.chars().count() == 1 && word.chars().all(char::is_uppercase);
    // As in U.S., p.m. or e.g.
    let is_dotted = word.contains('.') && word.split('.').all(|part| part.chars().count() == 1);
    // As in "12. März".
    let is_day = word.len() <= 2
        && word.parse::<u8>().is_ok_and(|day| day <= 31)
        && month(&rest.split([' ', '.']).next().unwrap_or("").to_lowercase()).is_some();
    let is_short = ABBREVIATIONS.split(' ').any(|known| known == word.to_lowercase());
    let is_abbreviation = is_initial || is_day || is_short;
    !is_abbreviation && (!is_dotted || begins_sentence(rest))
}

/// Returns true if the text begins with a word that rarely follows an abbreviation.
fn begins_sentence(text: &str) -> bool {
    const FIRST: &str = "The This That These Those It He She They We In On At By For A An However But And Its His Her Their When While";
    let word = text.split_whitespace().next().unwrap_or("");
    FIRST.split(' ').any(|first| first == word)
}

const ABBREVIATIONS: &str = "etc cf vs approx dr mr mrs ms prof no nr fig figs sec st inc ltd co corp resp incl excl max min dept vol pp ed eds al bzw ca evtl ggf usw jr sr gen col sen rep gov jan feb mar apr jun jul aug sep sept oct nov dec mt ft art ch eq ref est";

/// Returns the number of a month by its name in English, German, French, Spanish or Italian.
pub(crate) fn month(word: &str) -> Option<u8> {
    const MONTHS: [&str; 12] = [
        "january jan januar janvier enero gennaio jänner",
        "february feb februar février fevrier febrero febbraio",
        "march mar märz marz mars marzo",
        "april apr avril abril aprile",
        "may mai mayo maggio",
        "june jun juni juin junio giugno",
        "july jul juli juillet julio luglio",
        "august aug août aout agosto",
        "september sep sept septembre septiembre settembre",
        "october oct oktober okt octobre octubre ottobre",
        "november nov novembre noviembre",
        "december dec dezember dez décembre decembre diciembre dicembre",
    ];
    let found = MONTHS.iter().position(|names| names.split(' ').any(|name| name == word))?;
    u8::try_from(found + 1).ok()
}

/// Returns the lower-case word without accents.
pub(crate) fn fold(word: &str) -> String {
    let folded = word.nfkd().filter(|sign| !unicode_normalization::char::is_combining_mark(*sign));
    folded.flat_map(char::to_lowercase).collect()
}

/// Returns the common beginning of the forms of an English word, roughly.
pub(crate) fn stem(word: &str) -> String {
    const ENDINGS: [&str; 13] = [
        "ations", "ation", "ments", "ment", "ings", "ing", "ions", "ion", "ies", "ed", "es", "s",
        "ly",
    ];
    for ending in ENDINGS {
        if let Some(stem) = word.strip_suffix(ending)
            && stem.chars().count() >= 3
            && !(ending == "s" && stem.ends_with('s'))
        {
            return without_last_vowel(stem).to_owned();
        }
    }
    without_last_vowel(word).to_owned()
}

fn without_last_vowel(word: &str) -> &str {
    let stem = word.trim_end_matches('e').trim_end_matches('y').trim_end_matches('i');
    without_doubled_end(if stem.len() < 3 { word } else { stem })
}

fn without_doubled_end(stem: &str) -> &str {
    let mut last = stem.char_indices().rev();
    match (last.next(), last.next()) {
        (Some((at, a)), Some((_, b))) if a == b && a.is_ascii_alphabetic() => &stem[..at],
        _ => stem,
    }
}

/// Returns true for a word that has little meaning alone.
pub(crate) fn is_function_word(word: &str) -> bool {
    const WORDS: &str = "a about above according additionally after again against all also although among an and another any are around as at \
         be became because been before being below between both but by can compared contrast could currently despite did do does done down due during each early either especially \
         even every few finally first following for from further furthermore had has have he hence her here his however i if in \
         indeed instead into is it its itself just last late later less like many may meanwhile might more moreover most much must my near nearly neither new next \
         no nor not notably now of off often on once one only or originally other our out over overall own per perhaps previously rather recently same second secondly several she should \
         similarly since so some sometimes specifically still such than that the their them then there thereby therefore these they third this those though three through \
         throughout thus to today together too two typically ultimately under unlike until up upon us usually very via was we were what when \
         where whereas whether which while who whose why will with within without would yes yet you your \
         der die das den dem des ein eine einen einem einer und oder aber in im an am auf aus bei mit nach seit von vom zu zum zur für ist sind war waren wird wurde wurden hat haben nicht kein auch als wie es er sie wir \
         le la les un une des et ou dans sur avec pour par est sont été ne pas qui que du au aux el los las y en con por para es son del al se il lo gli di da che non";
    static KNOWN: LazyLock<HashSet<&str>> = LazyLock::new(|| WORDS.split_whitespace().collect());
    KNOWN.contains(word)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J2
    #[test]
    fn sentences_end_as_readers_expect() {
        let cases: &[(&str, &[&str])] = &[
            ("One. Two! Three?", &["One.", "Two!", "Three?"]),
            ("In the U.S. Army, 3 of 4. Next.", &["In the U.S. Army, 3 of 4.", "Next."]),
            ("See Fig. 2. The rest.", &["See Fig. 2.", "The rest."]),
            ("Er starb am 12. März 2024. Danach.", &["Er starb am 12. März 2024.", "Danach."]),
            ("東京は大きい。人口は多い！本当？", &["東京は大きい。", "人口は多い！", "本当？"]),
            ("It costs 1.5 s. (See below.) Yes.", &["It costs 1.5 s.", "(See below.)", "Yes."]),
            ("Run `a. B` now. Then go.", &["Run `a. B` now.", "Then go."]),
            (
                "He works in the U.S. The house is old.",
                &["He works in the U.S.", "The house is old."],
            ),
        ];
        for (text, expected) in cases {
            let found: Vec<_> =
                sentences(text).into_iter().map(|range| text[range].trim()).collect();
            assert_eq!(found, *expected, "{text}");
        }
    }

    /// J2
    #[test]
    fn text_is_compared_in_one_form() {
        assert_eq!(normalize("１２\u{a0}km² “a”\u{0}–b"), "12 km2 \"a\"-b");
        assert_eq!(normalize("10² ٣"), "10^2 3");
        for (a, b) in [
            ("increased", "increases"),
            ("populations", "population"),
            ("city", "cities"),
            ("running", "runs"),
            ("uses", "use"),
        ] {
            assert_eq!(stem(a), stem(b), "{a} {b}");
        }
    }
}
