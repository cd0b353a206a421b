//! Languages, recognised by their most frequent words or their script.

use std::collections::HashSet;

/// A language that can be recognised by its most frequent words or its script.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Language {
    English,
    German,
    French,
    Spanish,
    Italian,
    Dutch,
    Portuguese,
    Japanese,
    Chinese,
    Cyrillic,
    Arabic,
    Korean,
}

impl Language {
    /// Recognises the language of a text; `None` if the text is too short or unclear.
    pub(crate) fn of(text: &str) -> Option<Self> {
        const FREQUENT: [(Language, &str); 7] = [
            (Language::English, "the of and to in is that for was with are this by from has have"),
            (
                Language::German,
                "der die und das ist nicht ein eine mit von für auf dem den des wird sich",
            ),
            (Language::French, "le la les et des est une dans pour que qui sur par avec pas du au"),
            (Language::Spanish, "el la los las y es una que del por con para se su como más en"),
            (Language::Italian, "il la di e che per una è con del della non sono gli nel da le"),
            (Language::Dutch, "de het een en van is dat op te zijn met voor niet aan ook door"),
            (Language::Portuguese, "o a os as e é uma que do da em para com não por mais dos"),
        ];
        let sample: String = text.chars().take(20_000).collect();
        let count = |range: std::ops::RangeInclusive<char>| {
            sample.chars().filter(|sign| range.contains(sign)).count()
        };
        let letters = sample.chars().filter(|sign| sign.is_alphabetic()).count().max(1);
        let kana = count('\u{3040}'..='\u{30ff}');
        let han = count('\u{4e00}'..='\u{9fff}');
        let scripts = [
            (Self::Cyrillic, count('\u{400}'..='\u{4ff}')),
            (Self::Arabic, count('\u{600}'..='\u{6ff}')),
            (Self::Korean, count('\u{ac00}'..='\u{d7af}')),
            (if kana * 20 > han { Self::Japanese } else { Self::Chinese }, kana + han),
        ];
        if let Some((language, _)) = scripts.into_iter().find(|(_, found)| found * 3 > letters) {
            return Some(language);
        }
        let words: Vec<_> = sample
            .split(|c: char| !c.is_alphabetic())
            .filter(|word| !word.is_empty())
            .map(str::to_lowercase)
            .collect();
        let mut scores = FREQUENT.map(|(language, frequent)| {
            let frequent: HashSet<_> = frequent.split(' ').collect();
            (words.iter().filter(|word| frequent.contains(word.as_str())).count(), language)
        });
        scores.sort_by_key(|(score, _)| std::cmp::Reverse(*score));
        let [(best, language), (second, _), ..] = scores;
        (best >= 3 && best * 12 >= words.len() && best * 2 >= second * 3).then_some(language)
    }

    /// Recognises the language by the value of an attribute `lang`.
    pub(crate) fn from_code(code: &str) -> Option<Self> {
        let primary = code.split(['-', '_']).next().unwrap_or("").to_ascii_lowercase();
        Some(match primary.as_str() {
            "en" => Self::English,
            "de" => Self::German,
            "fr" => Self::French,
            "es" => Self::Spanish,
            "it" => Self::Italian,
            "nl" => Self::Dutch,
            "pt" => Self::Portuguese,
            "ja" => Self::Japanese,
            "zh" => Self::Chinese,
            "ru" | "uk" | "bg" | "sr" => Self::Cyrillic,
            "ar" | "fa" => Self::Arabic,
            "ko" => Self::Korean,
            _ => return None,
        })
    }

    /// Returns true if 1,5 is one and a half.
    pub(crate) fn has_decimal_comma(self) -> bool {
        matches!(
            self,
            Self::German
                | Self::French
                | Self::Spanish
                | Self::Italian
                | Self::Dutch
                | Self::Portuguese
                | Self::Cyrillic
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// J2
    #[test]
    fn languages_are_recognised() {
        let cases = [
            ("The population of the city is larger than that of the county.", Language::English),
            (
                "Die Stadt ist nicht die größte, und der Fluss ist das Ziel von vielen.",
                Language::German,
            ),
            ("La ville est dans le nord et les routes sont pour les voitures.", Language::French),
            ("東京は日本の首都です。", Language::Japanese),
            ("Москва является столицей России.", Language::Cyrillic),
        ];
        for (text, language) in cases {
            assert_eq!(Language::of(text), Some(language), "{text}");
        }
        assert_eq!(Language::of("Berlin 3,6"), None);
    }
}
