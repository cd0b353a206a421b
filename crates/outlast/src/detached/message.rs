//! What processes on one store tell one another: that there is something to look at. Nothing is lost with a lost message, which
//! the store does not say too.

use outlast_core::JobId;

/// One datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Message {
    /// The store has changed.
    Look,
    /// Carry this held call.
    Carry(JobId),
    /// Give the jobs back and leave.
    Stop,
}

/// As long as any of them.
pub(crate) const MAX_MESSAGE_BYTES: usize = 64;

impl Message {
    pub(crate) fn to_text(self) -> String {
        match self {
            Self::Look => "look".to_owned(),
            Self::Carry(id) => format!("carry {id}"),
            Self::Stop => "stop".to_owned(),
        }
    }

    /// `None` for what another version may say.
    pub(crate) fn parse(bytes: &[u8]) -> Option<Self> {
        match std::str::from_utf8(bytes).ok()? {
            "look" => Some(Self::Look),
            "stop" => Some(Self::Stop),
            text => text.strip_prefix("carry ")?.parse().ok().map(Self::Carry),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_read_as_it_was_written() {
        let id = "0190b0a0000040008000000000000001".parse().unwrap();
        for message in [Message::Look, Message::Carry(id), Message::Stop] {
            let text = message.to_text();
            assert!(text.len() <= MAX_MESSAGE_BYTES, "{text}");
            assert_eq!(Message::parse(text.as_bytes()), Some(message));
        }
        assert_eq!(Message::parse(b"carry on"), None);
        assert_eq!(Message::parse(&[0xff]), None);
    }
}
