//! The recorded progress of a session's paid step: before the step is sent, and after.

use outlast_core::Timestamp;

const SENDING: &str = "sending@";
const SENT: &str = "sent";

/// The progress of the question into the session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cursor {
    /// It was not, or certainly not accepted.
    Ready,
    /// It is about to be sent, or was sent, at this time by the store's clock. After a crash that cannot be known.
    Sending { at: Timestamp },
    /// It was accepted.
    Sent,
}

impl Cursor {
    /// Reads what was recorded. A cursor of another version may mean anything, so it counts as sent: nothing is paid
    /// for on a guess.
    pub(super) fn recorded(cursor: Option<&str>) -> Self {
        let Some(cursor) = cursor else { return Self::Ready };
        let at = cursor.strip_prefix(SENDING).and_then(|at| at.parse().ok());
        at.map_or(Self::Sent, |at| Self::Sending { at: Timestamp::from_millis(at) })
    }

    /// The text to record.
    pub(super) fn to_record(self) -> Option<String> {
        match self {
            Self::Ready => None,
            Self::Sending { at } => Some(format!("{SENDING}{}", at.as_millis())),
            Self::Sent => Some(SENT.to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G4: what was recorded is read back, and what cannot be read sends nothing.
    #[test]
    fn g4_a_cursor_is_read_as_it_was_recorded() {
        let at = Timestamp::from_millis(1_700_000_000_123);
        for cursor in [Cursor::Ready, Cursor::Sending { at }, Cursor::Sent] {
            assert_eq!(Cursor::recorded(cursor.to_record().as_deref()), cursor);
        }
        for odd in ["", "sending@", "sending@soon", "ready"] {
            assert_eq!(Cursor::recorded(Some(odd)), Cursor::Sent, "{odd}");
        }
    }
}
