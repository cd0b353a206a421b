//! The faults that the address of a scripted server selects.

/// Switches such as `broken=30,slow=50,hostile`.
#[derive(Debug, Default)]
pub(crate) struct Switches(Vec<(String, Option<String>)>);

impl Switches {
    /// Reads the path segment; `-` is none.
    pub(crate) fn parse(segment: &str) -> Self {
        let parts = segment.split(',').filter(|part| !matches!(*part, "" | "-"));
        let switch = |part: &str| match part.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (part.to_owned(), None),
        };
        Self(parts.map(switch).collect())
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(key, _)| key == name)
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name)?.1.as_deref()
    }

    /// Returns the number of a switch, 0 without one.
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.text(name).and_then(|value| value.parse().ok()).unwrap_or(0)
    }

    /// Returns true for the given percentage of requests, always the same ones.
    pub(crate) fn strikes(&self, name: &str, digest: u64) -> bool {
        let percent = self.number(name);
        percent > 0 && spread(digest, name) % 100 < percent
    }
}

/// Returns a number that depends on the digest and, independently, on the name.
pub(crate) fn spread(digest: u64, name: &str) -> u64 {
    let mixed = crate::ids::fnv1a64(&[&digest.to_le_bytes(), name.as_bytes()]);
    // The low bits of FNV-1a are weak.
    let mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn switches_are_read_from_a_path_segment() {
        let switches = Switches::parse("broken=30,none,json=off");
        assert_eq!((switches.number("broken"), switches.number("slow")), (30, 0));
        assert!(switches.has("none") && !switches.has("-"));
        assert_eq!(switches.text("json"), Some("off"));
        assert!(!Switches::parse("-").has("-"));
    }

    #[test]
    fn a_percentage_strikes_about_that_share_of_requests() {
        let switches = Switches::parse("broken=30,refuse=30");
        let strikes = |name| (0..10_000).filter(|n| switches.strikes(name, *n)).count();
        assert!((2_800..3_200).contains(&strikes("broken")), "{}", strikes("broken"));
        let both = (0..10_000)
            .filter(|n| switches.strikes("broken", *n) && switches.strikes("refuse", *n));
        assert!((750..1_050).contains(&both.count()));
    }
}
