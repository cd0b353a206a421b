//! How long an event on a stream is, counted before anybody keeps it.

/// Counts the bytes of an event, which ends with an empty line.
pub(super) struct EventSize {
    longest: usize,
    event: usize,
    empty_line: bool,
}

impl EventSize {
    pub(super) fn new(longest: usize) -> Self {
        Self { longest, event: 0, empty_line: true }
    }

    /// Whether the event they belong to is still short enough.
    pub(super) fn fits(&mut self, bytes: &[u8]) -> bool {
        for byte in bytes {
            self.event += 1;
            match byte {
                b'\n' if self.empty_line => self.event = 0,
                b'\n' => self.empty_line = true,
                b'\r' => {}
                _ => self.empty_line = false,
            }
            if self.event > self.longest {
                return false;
            }
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_measured_from_one_empty_line_to_the_next() {
        let mut size = EventSize::new(10);
        for piece in ["data: 1\n\n", "data", ": 2\r\n\r\n", "\n\n", ": hello\n\n", "data: 123"] {
            assert!(size.fits(piece.as_bytes()), "{piece:?}");
        }
        assert!(!size.fits(b"45"));
    }
}
