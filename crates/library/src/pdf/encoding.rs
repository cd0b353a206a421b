//! What the codes and the names of signs mean: the encodings that PDF knows by name, and the names of letters.

/// The encodings of single bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Standard,
    Windows,
    Mac,
}

impl Encoding {
    pub(super) fn named(name: &str) -> Option<Self> {
        match name {
            "StandardEncoding" => Some(Self::Standard),
            "WinAnsiEncoding" => Some(Self::Windows),
            "MacRomanEncoding" => Some(Self::Mac),
            _ => None,
        }
    }

    /// The sign of a code.
    pub(super) fn sign(self, code: u8) -> Option<char> {
        let upper = |from: u8, signs: &str| {
            let at = usize::from(code.checked_sub(from)?);
            signs.chars().nth(at).filter(|sign| *sign != '\u{fffd}')
        };
        match (self, code) {
            (_, 0..32) => None,
            (Self::Standard, b'\'') => Some('’'),
            (Self::Standard, b'`') => Some('‘'),
            (_, 32..127) => Some(char::from(code)),
            (Self::Windows, 0x80..0xa0) => upper(0x80, WINDOWS),
            (Self::Windows, 0xa0..) => Some(char::from(code)),
            (Self::Mac, 0x80..) => upper(0x80, MAC),
            (Self::Standard, 0xa1..) => upper(0xa1, STANDARD),
            (_, 127..) => None,
        }
    }
}

const WINDOWS: &str = "€•‚ƒ„…†‡ˆ‰Š‹Œ•Ž••‘’“”•–—˜™š›œ•žŸ";
const MAC: &str = "ÄÅÇÉÑÖÜáàâäãåçéèêëíìîïñóòôöõúùûü†°¢£§•¶ß®©™´¨≠ÆØ∞±≤≥¥µ∂∑∏π∫ªºΩæø¿¡¬√ƒ≈∆«»… ÀÃÕŒœ–—“”‘’÷◊ÿŸ⁄€‹›ﬁﬂ‡·‚„‰ÂÊÁËÈÍÎÏÌÓÔ\u{fffd}ÒÚÛÙıˆ˜¯˘˙˚¸˝˛ˇ";
const STANDARD: &str = "¡¢£⁄¥ƒ§¤'“«‹›ﬁﬂ\u{fffd}–†‡·\u{fffd}¶•‚„”»…‰\u{fffd}¿\u{fffd}`´ˆ˜¯˘˙¨\u{fffd}˚¸\u{fffd}˝˛ˇ—\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}Æ\u{fffd}ª\u{fffd}\u{fffd}\u{fffd}\u{fffd}ŁØŒº\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}æ\u{fffd}\u{fffd}\u{fffd}ı\u{fffd}\u{fffd}łøœß";

/// The letters that one sign may stand for; a name that says more is there to cost memory.
const LETTERS: usize = 16;

/// The text of a sign by its name, as fonts name them: `a`, `eacute`, `fi`, `uni20AC`, `f_i`, `a.alt`.
pub(super) fn named(name: &str) -> Option<String> {
    let name = name.split('.').next().filter(|name| !name.is_empty())?;
    // No letter's name is longer than this.
    if name.len() > LETTERS * 16 {
        return None;
    }
    let text: String = name.split('_').map(one_named).collect::<Option<_>>()?;
    (text.chars().count() <= LETTERS).then_some(text)
}

fn one_named(name: &str) -> Option<String> {
    let mut letters = name.chars();
    if let (Some(one), None) = (letters.next(), letters.next()) {
        return Some(one.to_string());
    }
    if let Some(at) = NAMES.iter().position(|known| *known == name) {
        return NAMES.get(at + 1).map(|text| (*text).to_owned());
    }
    let code = |digits: &str| u32::from_str_radix(digits, 16).ok().and_then(char::from_u32);
    if let Some(digits) = name.strip_prefix("uni").filter(|digits| digits.len() >= 4) {
        let fours =
            digits.as_bytes().chunks(4).map(|four| std::str::from_utf8(four).ok().and_then(code));
        return fours.collect();
    }
    if let Some(sign) = name.strip_prefix('u').filter(|digits| digits.len() >= 4).and_then(code) {
        return Some(sign.to_string());
    }
    // A letter and its accent, as in `eacute`.
    let mut letters = name.chars();
    let letter = letters.next()?;
    let (accent, _) = ACCENTS.iter().find(|(_, accent)| *accent == letters.as_str())?;
    composed(letter, *accent).map(|sign| sign.to_string())
}

/// One letter out of a letter and the accent above or below it.
pub(super) fn composed(letter: char, accent: char) -> Option<char> {
    let letter = match letter {
        'ı' => 'i',
        'ȷ' => 'j',
        letter => letter,
    };
    let (_, pairs) = COMPOSED.iter().find(|(sign, _)| *sign == accent)?;
    let mut pairs = pairs.chars();
    while let (Some(plain), Some(sign)) = (pairs.next(), pairs.next()) {
        if plain == letter {
            return Some(sign);
        }
    }
    None
}

const ACCENTS: &[(char, &str)] = &[
    ('`', "grave"),
    ('´', "acute"),
    ('ˆ', "circumflex"),
    ('˜', "tilde"),
    ('¨', "dieresis"),
    ('˚', "ring"),
    ('¸', "cedilla"),
    ('ˇ', "caron"),
    ('˛', "ogonek"),
    ('¯', "macron"),
    ('˘', "breve"),
    ('˙', "dotaccent"),
    ('˝', "hungarumlaut"),
];

const COMPOSED: &[(char, &str)] = &[
    ('`', "AÀEÈIÌOÒUÙaàeèiìoòuùnǹ"),
    ('´', "AÁEÉIÍOÓUÚYÝaáeéiíoóuúyýcćCĆlĺLĹnńNŃrŕRŔsśSŚzźZŹ"),
    ('ˆ', "AÂEÊIÎOÔUÛaâeêiîoôuûcĉCĈgĝGĜhĥHĤjĵJĴsŝSŜwŵWŴyŷYŶ"),
    ('˜', "AÃNÑOÕaãnñoõIĨiĩUŨuũ"),
    ('¨', "AÄEËIÏOÖUÜYŸaäeëiïoöuüyÿ"),
    ('˚', "AÅaåUŮuů"),
    ('¸', "CÇcçSŞsşTŢtţGĢKĶkķLĻlļNŅnņRŖrŗ"),
    ('ˇ', "CČcčDĎdďEĚeěLĽlľNŇnňRŘrřSŠsšTŤtťZŽzž"),
    ('˛', "AĄaąEĘeęIĮiįUŲuų"),
    ('¯', "AĀaāEĒeēIĪiīOŌoōUŪuū"),
    ('˘', "AĂaăGĞgğUŬuŭ"),
    ('˙', "CĊcċEĖeėGĠgġIİZŻzż"),
    ('˝', "OŐoőUŰuű"),
];

/// Names and what they stand for, in turn.
#[rustfmt::skip]
const NAMES: &[&str] = &[
    "space", " ", "exclam", "!", "quotedbl", "\"", "numbersign", "#", "dollar", "$", "percent", "%", "ampersand", "&",
    "quotesingle", "'", "quoteright", "’", "quoteleft", "‘", "parenleft", "(", "parenright", ")", "asterisk", "*",
    "plus", "+", "comma", ",", "hyphen", "-", "sfthyphen", "-", "minus", "−", "period", ".", "slash", "/", "zero", "0",
    "one", "1", "two", "2", "three", "3", "four", "4", "five", "5", "six", "6", "seven", "7", "eight", "8", "nine", "9",
    "colon", ":", "semicolon", ";", "less", "<", "equal", "=", "greater", ">", "question", "?", "at", "@",
    "bracketleft", "[", "backslash", "\\", "bracketright", "]", "asciicircum", "^", "underscore", "_", "grave", "`",
    "braceleft", "{", "bar", "|", "braceright", "}", "asciitilde", "~", "exclamdown", "¡", "cent", "¢",
    "sterling", "£", "fraction", "⁄", "yen", "¥", "florin", "ƒ", "section", "§", "currency", "¤", "quotedblleft", "“",
    "guillemotleft", "«", "guilsinglleft", "‹", "guilsinglright", "›", "fi", "fi", "fl", "fl", "ff", "ff", "ffi", "ffi",
    "ffl", "ffl", "endash", "–", "emdash", "—", "dagger", "†", "daggerdbl", "‡", "periodcentered", "·",
    "paragraph", "¶", "bullet", "•", "quotesinglbase", "‚", "quotedblbase", "„", "quotedblright", "”",
    "guillemotright", "»", "ellipsis", "…", "perthousand", "‰", "questiondown", "¿", "acute", "´", "circumflex", "ˆ",
    "tilde", "˜", "macron", "¯", "breve", "˘", "dotaccent", "˙", "dieresis", "¨", "ring", "˚", "cedilla", "¸",
    "hungarumlaut", "˝", "ogonek", "˛", "caron", "ˇ", "AE", "Æ", "ordfeminine", "ª", "Lslash", "Ł", "Oslash", "Ø",
    "OE", "Œ", "ordmasculine", "º", "ae", "æ", "dotlessi", "ı", "dotlessj", "ȷ", "lslash", "ł", "oslash", "ø",
    "oe", "œ", "germandbls", "ß", "Eth", "Ð", "eth", "ð", "Thorn", "Þ", "thorn", "þ", "logicalnot", "¬", "mu", "µ",
    "trademark", "™", "plusminus", "±", "onehalf", "½", "onequarter", "¼", "threequarters", "¾", "divide", "÷",
    "brokenbar", "¦", "degree", "°", "multiply", "×", "onesuperior", "¹", "twosuperior", "²", "threesuperior", "³",
    "registered", "®", "copyright", "©", "Euro", "€", "dcroat", "đ", "Dcroat", "Đ", "nbspace", " ",
    "alpha", "α", "beta", "β", "gamma", "γ", "delta", "δ", "epsilon", "ε", "epsilon1", "ϵ", "zeta", "ζ", "eta", "η",
    "theta", "θ", "iota", "ι", "kappa", "κ", "lambda", "λ", "nu", "ν", "xi", "ξ", "omicron", "ο", "pi", "π", "rho", "ρ",
    "sigma", "σ", "tau", "τ", "upsilon", "υ", "phi", "φ", "phi1", "ϕ", "chi", "χ", "psi", "ψ", "omega", "ω",
    "Gamma", "Γ", "Delta", "Δ", "Theta", "Θ", "Lambda", "Λ", "Xi", "Ξ", "Pi", "Π", "Sigma", "Σ", "Upsilon", "Υ",
    "Phi", "Φ", "Psi", "Ψ", "Omega", "Ω", "infinity", "∞", "notequal", "≠", "lessequal", "≤", "greaterequal", "≥",
    "approxequal", "≈", "equivalence", "≡", "similar", "∼", "proportional", "∝", "element", "∈", "partialdiff", "∂",
    "summation", "∑", "product", "∏", "integral", "∫", "radical", "√", "nabla", "∇", "arrowleft", "←",
    "arrowright", "→", "arrowup", "↑", "arrowdown", "↓", "arrowboth", "↔", "arrowdblright", "⇒", "asteriskmath", "∗",
    "prime", "′", "forall", "∀", "existential", "∃", "emptyset", "∅", "intersection", "∩", "union", "∪",
    "logicaland", "∧", "logicalor", "∨", "angbracketleft", "⟨", "angbracketright", "⟩", "lozenge", "◊",
    "circle", "○", "square", "□", "checkmark", "✓",
];

/// Signs that stand for several letters, as those letters.
pub(super) fn ligature(sign: char) -> Option<&'static str> {
    match sign {
        'ﬀ' => Some("ff"),
        'ﬁ' => Some("fi"),
        'ﬂ' => Some("fl"),
        'ﬃ' => Some("ffi"),
        'ﬄ' => Some("ffl"),
        'ﬅ' | 'ﬆ' => Some("st"),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_names_become_letters() {
        let seen = [0x80, 0xe4, 0x41].map(|code| Encoding::Windows.sign(code));
        assert_eq!(seen, [Some('€'), Some('ä'), Some('A')]);
        let seen = [0x8a, 0xd0, 0xde, 0xff].map(|code| Encoding::Mac.sign(code));
        assert_eq!(seen, [Some('ä'), Some('–'), Some('ﬁ'), Some('ˇ')]);
        let seen = [0x27, 0xae, 0xd0, 0xe1, 0xf5, 0xfb].map(|code| Encoding::Standard.sign(code));
        assert_eq!(seen, [Some('’'), Some('ﬁ'), Some('—'), Some('Æ'), Some('ı'), Some('ß')]);
        let cases = [
            ("a", "a"),
            ("eacute", "é"),
            ("ffi", "ffi"),
            ("uni20AC", "€"),
            ("u1F600", "😀"),
            ("f_f_i", "ffi"),
            ("a.alt", "a"),
            ("zcaron", "ž"),
            ("germandbls", "ß"),
        ];
        for (name, text) in cases {
            assert_eq!(named(name).as_deref(), Some(text), "{name}");
        }
        assert_eq!((named("g123"), named(".notdef"), composed('ı', '¨')), (None, None, Some('ï')));
    }

    #[test]
    fn no_name_stands_for_a_whole_text() {
        let cases = [("uni".to_owned(), "0041"), ("a".to_owned(), "_a"), ("a".to_owned(), "_ffi")];
        for (start, more) in cases {
            assert!(named(&(start.clone() + &more.repeat(5))).is_some(), "{more}");
            for times in [17, 60, 50_000] {
                assert_eq!(named(&(start.clone() + &more.repeat(times))), None, "{more} {times}");
            }
        }
    }
}
