//! The maps in which a PDF says what its codes mean, and how many bytes they have.

use std::collections::{BTreeMap, HashMap};

use super::object::Object;
use super::reader::Reader;

/// Entries of one map; the largest honest ones have a few tens of thousands.
const MOST: usize = 70_000;

/// What the codes of a font mean.
#[derive(Clone, Debug, Default)]
pub(super) struct CMap {
    signs: HashMap<u32, String>,
    /// From where, up to where, and what the first of them means.
    ranges: BTreeMap<u32, (u32, Vec<u16>)>,
    /// The lengths of codes, in bytes, with the codes that have them.
    spaces: Vec<(usize, u32, u32)>,
}

impl CMap {
    pub(super) fn parse(bytes: &[u8]) -> Self {
        let mut map = Self::default();
        let mut reader = Reader::new(bytes, 0);
        let mut before: Vec<Object> = Vec::new();
        // With the values within them.
        let mut values = 0;
        while let Some(object) = reader.object() {
            let Object::Word(word) = object else {
                values += reader.values() as usize;
                if values <= MOST * 3 {
                    before.push(object);
                }
                continue;
            };
            match word.as_str() {
                "endbfchar" => before.chunks_exact(2).for_each(|pair| map.sign(&pair[0], &pair[1])),
                "endbfrange" => before
                    .chunks_exact(3)
                    .for_each(|three| map.range(&three[0], &three[1], &three[2])),
                "endcodespacerange" => {
                    for pair in before.chunks_exact(2) {
                        if let (Object::Text(low), Object::Text(high)) = (&pair[0], &pair[1]) {
                            map.spaces.push((low.len().clamp(1, 4), code(low), code(high)));
                        }
                    }
                    map.spaces.truncate(64);
                }
                _ => {}
            }
            before.clear();
            values = 0;
        }
        map
    }

    /// How much there is in it.
    pub(super) fn len(&self) -> usize {
        self.signs.len() + self.ranges.len()
    }

    /// The text of a code.
    pub(super) fn text(&self, code: u32) -> Option<String> {
        if let Some(text) = self.signs.get(&code) {
            return Some(text.clone());
        }
        let (low, (_, first)) =
            self.ranges.range(..=code).next_back().filter(|(_, (high, _))| code <= *high)?;
        let mut units = first.clone();
        // The last unit counts up with the code.
        let last = units.last_mut()?;
        *last = last.wrapping_add((code - low) as u16);
        Some(String::from_utf16_lossy(&units))
    }

    /// How many bytes the code has that these begin with; none where the map does not say.
    pub(super) fn length(&self, bytes: &[u8]) -> Option<usize> {
        let fits = |(length, low, high): &&(usize, u32, u32)| {
            bytes.get(..*length).is_some_and(|bytes| (*low..=*high).contains(&code(bytes)))
        };
        self.spaces.iter().find(fits).or(self.spaces.first()).map(|(length, _, _)| *length)
    }

    fn sign(&mut self, from: &Object, to: &Object) {
        if let (Object::Text(from), Object::Text(to)) = (from, to)
            && self.len() < MOST
        {
            self.signs.insert(code(from), String::from_utf16_lossy(&units(to)));
        }
    }

    fn range(&mut self, low: &Object, high: &Object, to: &Object) {
        let (Object::Text(low), Object::Text(high)) = (low, high) else { return };
        match to {
            Object::Text(first) if self.len() < MOST => {
                self.ranges.insert(code(low), (code(high), units(first)));
            }
            Object::Array(texts) => {
                for (code, text) in (code(low)..=code(high)).zip(texts) {
                    let Object::Text(text) = text else { continue };
                    if self.len() < MOST {
                        self.signs.insert(code, String::from_utf16_lossy(&units(text)));
                    }
                }
            }
            _ => {}
        }
    }
}

/// The number that up to four bytes are.
pub(super) fn code(bytes: &[u8]) -> u32 {
    bytes.iter().take(4).fold(0, |code, byte| (code << 8) | u32::from(*byte))
}

/// Bytes as UTF-16, at most a word's worth of them.
fn units(bytes: &[u8]) -> Vec<u16> {
    match bytes {
        [one] => vec![u16::from(*one)],
        _ => bytes
            .chunks_exact(2)
            .take(16)
            .map(|pair| u16::from_be_bytes([pair[0], pair[1]]))
            .collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_looked_up_in_lists_ranges_and_arrays() {
        let map = CMap::parse(
            b"begincmap 1 begincodespacerange <0000> <FFFF> endcodespacerange \
              2 beginbfchar <0003> <0020> <0010> <006600660069> endbfchar \
              2 beginbfrange <0020> <0040> <0041> <0050> <0051> [<0058> <D83DDE00>] endbfrange endcmap",
        );
        let seen = [3, 0x10, 0x22, 0x50, 0x51, 0x99].map(|code| map.text(code));
        let expected = [" ", "ffi", "C", "X", "😀"].map(|text| Some(text.to_owned()));
        assert_eq!(seen[..5], expected);
        assert_eq!((seen[5].clone(), map.length(&[0, 3])), (None, Some(2)));
    }

    #[test]
    fn what_is_too_much_for_one_list_is_not_kept() {
        let list = |times| {
            let array = format!("[{}]", "{".repeat(times));
            CMap::parse(format!("{array}{array}<41><0042> endbfchar").as_bytes()).len()
        };
        assert_eq!((list(10), list(MOST * 2)), (1, 0));
    }

    #[test]
    fn a_range_over_everything_costs_nothing() {
        let map = CMap::parse(b"<00000000> <FFFFFFFF> <0041> endbfrange");
        assert_eq!((map.len(), map.text(1).as_deref()), (1, Some("B")));
    }
}
