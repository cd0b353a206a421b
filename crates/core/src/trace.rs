//! The trace that a request belongs to, in the W3C form `traceparent`. It is stored with the job and sent on (M5).

use crate::{NewJob, RequestNote};

/// The name of a trace and of the span that sent the request: `00-<trace>-<span>-<flags>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Traceparent(String);

impl Traceparent {
    /// Parses a `traceparent`. One with another form is ignored, as the specification asks.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let mut parts = text.split('-');
        let (version, trace) = (parts.next()?, parts.next()?);
        let (span, flags) = (parts.next()?, parts.next()?);
        let is_hex = |part: &str, length| {
            part.len() == length
                && part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        };
        let is_id =
            |part: &str, length| is_hex(part, length) && part.bytes().any(|byte| byte != b'0');
        // A later version may append parts; they mean nothing here.
        let is_known = version != "ff" && (version != "00" || parts.next().is_none());
        let is_valid =
            is_hex(version, 2) && is_id(trace, 32) && is_id(span, 16) && is_hex(flags, 2);
        (is_known && is_valid).then(|| Self(format!("{version}-{trace}-{span}-{flags}")))
    }

    /// Returns the text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl NewJob {
    /// Returns the same job as a part of this trace.
    pub fn with_traceparent(mut self, trace: Option<&Traceparent>) -> Self {
        if let Some(trace) = trace {
            self.request.set_note(RequestNote::Traceparent, Some(trace.0.clone()));
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    /// M5: only well-formed names are stored and sent on.
    #[test]
    fn m5_only_a_well_formed_traceparent_is_parsed() {
        let parsed = |text: &str| Traceparent::parse(text).map(|trace| trace.0);
        assert_eq!(parsed(TRACE).as_deref(), Some(TRACE));
        assert_eq!(parsed(&format!(" {TRACE} ")).as_deref(), Some(TRACE));
        let later = TRACE.replacen("00-", "01-", 1);
        assert_eq!(parsed(&format!("{later}-more")), Some(later));
        let wrong = [
            String::new(),
            format!("{TRACE}-more"),
            TRACE.to_uppercase(),
            TRACE.replacen("00-", "ff-", 1),
            TRACE.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            TRACE.replace("00f067aa0ba902b7", &"0".repeat(16)),
            TRACE.replace("4bf9", "4bf\n"),
            TRACE[..54].to_owned(),
        ];
        for text in wrong {
            assert_eq!(parsed(&text), None, "{text}");
        }
    }
}
