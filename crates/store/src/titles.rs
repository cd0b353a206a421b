//! The index of titles, for both databases: the three-letter parts of titles, by segments of jobs.
//!
//! A segment is 4,096 successive numbers of jobs. For each part, it has the set of its jobs whose title contains that part. A title
//! never changes, so a segment is written once, after its last job has arrived. A search reads the sets of the parts that it
//! looks for, newest segment first, and compares only the titles that are in all of them. The jobs after the last segment are
//! read one by one.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use outlast_core::{Cursor, OwnerId};

use crate::columns::to_signed;

/// The number of jobs of a segment is 2 to this power.
const SEGMENT_BITS: u32 = 12;
const SEGMENT_JOBS: usize = 1 << SEGMENT_BITS;
/// The number of bytes of a set that has one bit for each job.
const BITMAP_BYTES: usize = SEGMENT_JOBS / 8;
const CHAR_BITS: u32 = 21;
const CHARS: usize = 3;

/// The number of segments whose sets are read first; then four times as many.
const FIRST_SEGMENTS: i64 = 8;
/// The number of candidates whose titles are compared first; then four times as many.
const FIRST_CANDIDATES: usize = 256;

/// The segments to search, newest first.
pub(crate) struct TitleSpans {
    end: i64,
    together: i64,
    /// Only jobs below this number are looked for.
    pub(crate) before: i64,
}

impl TitleSpans {
    /// Searches the segments below `end`, from a cursor on.
    pub(crate) fn new(end: i64, after: Option<Cursor>) -> Self {
        let before = after.map_or(i64::MAX, |Cursor(seq)| to_signed(seq));
        Self { end: end.min(segment_of(before) + 1), together: FIRST_SEGMENTS, before }
    }
}

impl Iterator for TitleSpans {
    type Item = Range<i64>;

    fn next(&mut self) -> Option<Range<i64>> {
        let last = self.end;
        self.end = (last - self.together).max(0);
        self.together *= 4;
        (last > 0).then_some(self.end..last)
    }
}

/// Splits candidates into a small portion, then larger ones: most searches end with the first.
pub(crate) fn portions(candidates: &[i64]) -> impl Iterator<Item = &[i64]> {
    let (mut rest, mut size) = (candidates, FIRST_CANDIDATES);
    std::iter::from_fn(move || {
        let (portion, later) = rest.split_at(size.min(rest.len()));
        (rest, size) = (later, (size * 4).min(SEGMENT_JOBS));
        (!portion.is_empty()).then_some(portion)
    })
}

/// The segment with the job of this number.
pub(crate) fn segment_of(seq: i64) -> i64 {
    seq >> SEGMENT_BITS
}

/// The number of a segment's first job.
pub(crate) fn first_of(segment: i64) -> i64 {
    segment << SEGMENT_BITS
}

/// The parts that a job must have so that its title can contain a text.
pub(crate) struct TitleParts {
    /// All of these.
    pub(crate) all: Vec<i64>,
    /// And one from this range, for a text of one or two letters.
    pub(crate) one_from: Option<(i64, i64)>,
}

impl TitleParts {
    /// Returns the parts of a text in lower case. Returns `None` for an empty text, which every title contains.
    pub(crate) fn of(text: &str, owner: Option<&OwnerId>) -> Option<Self> {
        let letters: Vec<char> = text.chars().collect();
        if letters.is_empty() {
            return None;
        }
        let mut all: BTreeSet<i64> = letters.windows(CHARS).map(part).collect();
        all.extend(owner.map(|owner| owner_part(owner.as_str())));
        let one_from = (letters.len() < CHARS).then(|| {
            let free = CHAR_BITS * (CHARS - letters.len()) as u32;
            let first = part(&letters);
            (first, first | ((1 << free) - 1))
        });
        Some(Self { all: all.into_iter().collect(), one_from })
    }
}

/// Returns the sets of a segment's jobs by part.
pub(crate) fn sets(jobs: impl Iterator<Item = (i64, String, String)>) -> BTreeMap<i64, Vec<u8>> {
    let mut places: BTreeMap<i64, Vec<u16>> = BTreeMap::new();
    for (seq, owner, title) in jobs {
        let place = place_of(seq);
        let mut letters: Vec<char> = title.chars().collect();
        let count = letters.len();
        // So that the last letters begin a part too.
        letters.extend(['\0'; CHARS - 1]);
        let parts: BTreeSet<i64> = letters.windows(CHARS).take(count).map(part).collect();
        for part in parts.into_iter().chain([owner_part(&owner)]) {
            places.entry(part).or_default().push(place);
        }
    }
    places.into_iter().map(|(part, places)| (part, encode(&places))).collect()
}

/// Returns the jobs below a number that are in all these sets of segments and parts, newest first.
pub(crate) fn candidates(
    parts: &TitleParts,
    sets: impl IntoIterator<Item = (i64, i64, Vec<u8>)>,
    before: i64,
) -> Vec<i64> {
    let mut segments: BTreeMap<i64, SegmentJobs> = BTreeMap::new();
    for (segment, part, set) in sets {
        let jobs = segments.entry(segment).or_default();
        if parts.all.binary_search(&part).is_ok() {
            jobs.narrow(&set);
        } else {
            jobs.widen(&set);
        }
    }
    let jobs = segments.into_iter().rev().flat_map(|(segment, jobs)| jobs.with_all(segment, parts));
    jobs.filter(|seq| *seq < before).collect()
}

/// The jobs of a segment whose titles may contain the text.
struct SegmentJobs {
    with_all: JobSet,
    found: usize,
    with_one: JobSet,
}

impl SegmentJobs {
    /// Adds the set of one of [`TitleParts::all`].
    fn narrow(&mut self, set: &[u8]) {
        self.with_all.keep(&JobSet::decode(set));
        self.found += 1;
    }

    /// Adds the set of a part in [`TitleParts::one_from`].
    fn widen(&mut self, set: &[u8]) {
        let set = JobSet::decode(set);
        self.with_one.0.iter_mut().zip(set.0).for_each(|(word, other)| *word |= other);
    }

    /// Returns the numbers of the jobs that have all parts, newest first.
    fn with_all(mut self, segment: i64, parts: &TitleParts) -> Vec<i64> {
        if self.found < parts.all.len() {
            return Vec::new();
        }
        if parts.one_from.is_some() {
            self.with_all.keep(&self.with_one);
        }
        let places = (0..SEGMENT_JOBS).rev().filter(|place| self.with_all.has(*place));
        places.map(|place| first_of(segment) + place as i64).collect()
    }
}

impl Default for SegmentJobs {
    fn default() -> Self {
        let none = [0; SEGMENT_JOBS / 64];
        let all = none.map(|_| u64::MAX);
        Self { with_all: JobSet(all), found: 0, with_one: JobSet(none) }
    }
}

/// One bit for each job of a segment.
struct JobSet([u64; SEGMENT_JOBS / 64]);

impl JobSet {
    fn decode(set: &[u8]) -> Self {
        let mut words = [0; SEGMENT_JOBS / 64];
        if set.len() == BITMAP_BYTES {
            for (word, bytes) in words.iter_mut().zip(set.chunks_exact(8)) {
                *word = u64::from_le_bytes(bytes.try_into().unwrap_or_default());
            }
        } else {
            for place in set.chunks_exact(2) {
                let place = usize::from(u16::from_le_bytes(place.try_into().unwrap_or_default()));
                if let Some(word) = words.get_mut(place / 64) {
                    *word |= 1 << (place % 64);
                }
            }
        }
        Self(words)
    }

    /// Removes the jobs that are not in the other set.
    fn keep(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(word, other)| *word &= other);
    }

    fn has(&self, place: usize) -> bool {
        self.0.get(place / 64).is_some_and(|word| word >> (place % 64) & 1 == 1)
    }
}

/// Writes places as two bytes each, or as one bit for each job of the segment, whichever is shorter.
fn encode(places: &[u16]) -> Vec<u8> {
    if places.len() * 2 < BITMAP_BYTES {
        return places.iter().flat_map(|place| place.to_le_bytes()).collect();
    }
    let mut set = vec![0; BITMAP_BYTES];
    for place in places {
        if let Some(byte) = set.get_mut(usize::from(place / 8)) {
            *byte |= 1 << (place % 8);
        }
    }
    set
}

/// The place of a job within its segment.
fn place_of(seq: i64) -> u16 {
    u16::try_from(seq & (SEGMENT_JOBS as i64 - 1)).unwrap_or_default()
}

/// The number of a part: up to three letters, 21 bits each.
fn part(letters: &[char]) -> i64 {
    let letter = |place| i64::from(u32::from(letters.get(place).copied().unwrap_or('\0')));
    (0..CHARS).fold(0, |part, place| part << CHAR_BITS | letter(place))
}

/// The number of an owner: negative, unlike those of letters. Owners may share one; the owner of each job is compared as well.
fn owner_part(owner: &str) -> i64 {
    // FNV-1a.
    let hash = owner.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    });
    hash.cast_signed() | i64::MIN
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the jobs whose titles a search compares.
    fn compared(titles: &[(i64, &str, &str)], text: &str, owner: Option<&str>) -> Vec<i64> {
        let parts = TitleParts::of(text, owner.map(OwnerId::new).as_ref()).unwrap();
        let is_wanted = |part: &i64| {
            let is_one = |(first, last)| (first..=last).contains(part);
            parts.all.contains(part) || parts.one_from.is_some_and(is_one)
        };
        let jobs = titles.iter();
        let jobs = jobs.map(|(seq, owner, title)| (*seq, owner.to_string(), title.to_string()));
        let sets = sets(jobs).into_iter().filter(|(part, _)| is_wanted(part));
        candidates(&parts, sets.map(|(part, set)| (2, part, set)), i64::MAX)
    }

    #[test]
    fn every_title_with_the_text_is_a_candidate() {
        let titles = [
            (8193, "ann", "über leases"),
            (8200, "ann", "100% of a_b"),
            (8201, "bob", "leases"),
            (12287, "ann", "x"),
        ];
        for (text, owner, expected) in [
            ("leases", None, vec![8201, 8193]),
            ("leases", Some("ann"), vec![8193]),
            ("leases", Some("nobody"), vec![]),
            ("über", Some("ann"), vec![8193]),
            ("es", None, vec![8201, 8193]),
            ("s", Some("bob"), vec![8201]),
            ("x", None, vec![12287]),
            ("%", None, vec![8200]),
            ("q", None, vec![]),
            ("fences", None, vec![]),
        ] {
            assert_eq!(compared(&titles, text, owner), expected, "{text} of {owner:?}");
        }
        assert!(TitleParts::of("", None).is_none());
    }

    #[test]
    fn large_sets_are_stored_as_bits() {
        let titles: Vec<_> = (8192..12288).map(|seq| (seq, "ann", "question")).collect();
        let all = compared(&titles, "question", Some("ann"));
        assert_eq!(all, (8192..12288).rev().collect::<Vec<_>>());
        let half = titles.into_iter().filter(|(seq, ..)| seq % 2 == 0).collect::<Vec<_>>();
        assert_eq!(compared(&half, "ion", None).len(), 2048);
        let jobs = half.iter().map(|(seq, ..)| (*seq, String::new(), "ab".to_owned()));
        assert!(sets(jobs).values().all(|set| set.len() == BITMAP_BYTES));
    }
}
