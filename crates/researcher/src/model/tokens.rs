//! Counts tokens without the model's tokenizer, rather too many than too few.

/// Returns the estimated number of tokens of a text: a token for each 2.5 bytes of letters, one for each digit or sign,
/// plus 10 %. Numbers, tables and addresses have more tokens than prose of the same length.
pub(crate) fn estimate_tokens(text: &str) -> u64 {
    let (mut letters, mut signs) = (0_u64, 0_u64);
    for byte in text.bytes() {
        let is_sign = byte.is_ascii_digit() || byte.is_ascii_punctuation();
        *(if is_sign { &mut signs } else { &mut letters }) += 1;
    }
    (letters * 44).div_ceil(100) + (signs * 11).div_ceil(10)
}

/// The factor between the estimate and the count of the model's own tokenizer, in thousandths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TokenFactor(pub(crate) u32);

impl TokenFactor {
    /// The factor without a tokenizer to ask.
    pub(crate) const NONE: Self = Self(1000);

    /// Returns the factor for a sample of which the tokenizer counted this many tokens. Other texts may have more
    /// tokens for each byte, so it never falls below a half, and 20 % are added.
    pub(crate) fn measured(sample: &str, counted: u64) -> Self {
        let estimate = estimate_tokens(sample).max(1);
        let thousandths = counted.saturating_mul(1200) / estimate;
        Self(u32::try_from(thousandths).unwrap_or(u32::MAX).clamp(500, 3000))
    }

    /// Returns the number of tokens of a text.
    pub(crate) fn count(self, text: &str) -> u64 {
        (estimate_tokens(text) * u64::from(self.0)).div_ceil(1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// K5: the estimate is above what tokenizers count, for prose and for numbers.
    #[test]
    fn k5_tokens_are_overestimated_without_a_tokenizer() {
        // The counts are those of cl100k_base.
        let cases = [
            ("The harbour handled more ships than in any year before.", 11),
            ("2023: 1,204 ships; 2022: 1,180 ships", 18),
            ("港湾は一千二百隻の船を扱った。", 19),
        ];
        for (text, counted) in cases {
            assert!(estimate_tokens(text) >= counted, "{text} {}", estimate_tokens(text));
        }
        assert_eq!(TokenFactor::measured("word ".repeat(100).as_str(), 100), TokenFactor(545));
        assert_eq!(TokenFactor::NONE.count("word"), 2);
    }
}
