//! Decodes server-sent events as bytes arrive. The decoder holds at most one event and refuses an event over
//! the limit before it is buffered.
//!
//! The crate `sse-stream` has no limit, buffers a long event twice (14.5 MB for a 7 MiB event; this decoder
//! uses 7.2 MB) and ends the whole stream at an unknown field or at a byte that is not UTF-8, which would lose
//! a paid answer.

use std::collections::VecDeque;

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// Lines up to this length are read in place; the memory of longer ones is reused (see [`SseDecoder::reuse`]).
const SHORT_LINE: usize = 4096;

/// The kind of a line.
enum LineKind {
    Data,
    Event,
    Id,
    Retry,
    /// A blank line, which ends the event.
    End,
    Other,
}

/// A server-sent event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SseEvent {
    /// The type of the event, if it has one.
    pub event: Option<String>,
    /// The `data` lines, joined by newlines.
    pub data: Option<String>,
    /// The id from which a stream can be resumed.
    pub id: Option<String>,
    /// The delay before the stream is resumed, in milliseconds.
    pub retry: Option<u64>,
}

/// The stream sent an event that is larger than the limit.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {limit} bytes")]
pub struct EventTooLarge {
    /// The limit in bytes.
    pub limit: usize,
}

/// Decodes events from bytes that may be split anywhere.
#[derive(Debug)]
pub struct SseDecoder {
    limit: usize,
    line: Vec<u8>,
    last_was_cr: bool,
    /// True until the first line is read, because a byte order mark may precede it.
    first_line: bool,
    /// The fields of the incomplete event, without its data.
    event: SseEvent,
    data: Option<Vec<u8>>,
    events: VecDeque<SseEvent>,
}

impl SseDecoder {
    /// Creates a decoder that refuses events larger than `limit`.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            last_was_cr: false,
            first_line: true,
            event: SseEvent::default(),
            data: None,
            events: VecDeque::new(),
        }
    }

    /// Feeds bytes as they arrive.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), EventTooLarge> {
        while let Some(&first) = bytes.first() {
            let after_cr = std::mem::take(&mut self.last_was_cr);
            if after_cr && first == b'\n' {
                bytes = &bytes[1..]; // the second half of a CRLF
                continue;
            }
            let end = memchr::memchr2(b'\n', b'\r', bytes);
            let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            if self.event_size() + part.len() > self.limit {
                return Err(EventTooLarge { limit: self.limit });
            }
            let Some((end, rest)) = rest.split_first() else {
                self.line.extend_from_slice(part);
                break;
            };
            self.last_was_cr = *end == b'\r';
            if self.line.is_empty() && part.len() <= SHORT_LINE {
                self.end_line(part);
            } else {
                self.line.extend_from_slice(part);
                self.end_gathered_line();
            }
            self.first_line = false;
            bytes = rest;
        }
        Ok(())
    }

    /// The number of bytes allocated for the incomplete event.
    pub fn buffered_bytes(&self) -> usize {
        self.line.capacity() + self.data.as_ref().map_or(0, Vec::capacity)
    }

    /// Reuses the memory of an event that was read for the next ones. A report appears several times in one
    /// stream, and memory that is freed and allocated again each time is not returned to the system promptly.
    pub fn reuse(&mut self, data: String) {
        let mut line = data.into_bytes();
        if line.capacity() > self.line.capacity() {
            line.clear();
            line.append(&mut self.line);
            self.line = line;
        }
    }

    /// Returns the next complete event, if there is one.
    pub fn next_event(&mut self) -> Option<SseEvent> {
        self.events.pop_front()
    }

    fn event_size(&self) -> usize {
        let names = [&self.event.event, &self.event.id].into_iter().flatten();
        let names: usize = names.map(String::len).sum();
        self.line.len() + self.data.as_ref().map_or(0, Vec::len) + names
    }

    /// Handles a line that arrived in one piece.
    fn end_line(&mut self, line: &[u8]) {
        let (name, value) = self.field(line);
        let value = &line[value..];
        let text = || String::from_utf8_lossy(value).into_owned();
        match name {
            LineKind::Data => match &mut self.data {
                None => self.data = Some(value.to_vec()),
                Some(data) => {
                    data.push(b'\n');
                    data.extend_from_slice(value);
                }
            },
            LineKind::Event => self.event.event = Some(text()),
            LineKind::Id => self.event.id = Some(text()),
            LineKind::Retry => self.event.retry = text().parse().ok(),
            LineKind::End => self.end_event(),
            LineKind::Other => {}
        }
    }

    /// Handles a line that arrived in several pieces, or a long one. Megabytes of data are moved, not copied.
    fn end_gathered_line(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        match self.field(&line) {
            (LineKind::Data, value) if self.data.is_none() => {
                line.drain(..value);
                self.data = Some(std::mem::take(&mut line));
            }
            _ => self.end_line(&line),
        }
        line.clear();
        self.line = line;
    }

    /// Returns the field of a line and the offset of its value.
    fn field(&self, line: &[u8]) -> (LineKind, usize) {
        let mark = if self.first_line && line.starts_with(BYTE_ORDER_MARK) { 3 } else { 0 };
        let rest = &line[mark..];
        let colon = memchr::memchr(b':', rest).unwrap_or(rest.len());
        let space = rest.get(colon + 1) == Some(&b' ');
        let value = (mark + colon + 1 + usize::from(space)).min(line.len());
        let name = match &rest[..colon] {
            _ if rest.is_empty() => LineKind::End,
            b"data" => LineKind::Data,
            b"event" => LineKind::Event,
            b"id" => LineKind::Id,
            b"retry" => LineKind::Retry,
            _ => LineKind::Other,
        };
        (name, value)
    }

    fn end_event(&mut self) {
        let mut event = std::mem::take(&mut self.event);
        event.data = self.data.take().map(|data| {
            String::from_utf8(data)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned())
        });
        if event != SseEvent::default() {
            self.events.push_back(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: usize = 1024 * 1024;

    fn decode(chunks: &[&[u8]]) -> Vec<String> {
        let mut decoder = SseDecoder::new(LIMIT);
        let mut texts = Vec::new();
        for chunk in chunks {
            decoder.push(chunk).unwrap();
            while let Some(event) = decoder.next_event() {
                let Some(data) = event.data else { continue };
                texts.push(data.clone());
                decoder.reuse(data);
            }
        }
        texts
    }

    #[test]
    fn events_do_not_depend_on_how_the_bytes_are_split() {
        let wire = "event: a\ndata: {\"t\":\"h\u{e9}\u{1F600}\"}\n\n: ping\n\ndata: one\r\ndata: two\r\n\r\ndata:[DONE]\n\nid: 7\n\ndata\n\n"
            .as_bytes();
        let whole = decode(&[wire]);
        assert_eq!(whole, ["{\"t\":\"h\u{e9}\u{1F600}\"}", "one\ntwo", "[DONE]", ""]);
        for cut in 0..=wire.len() {
            assert_eq!(decode(&[&wire[..cut], &wire[cut..]]), whole, "cut at {cut}");
        }
        let drip: Vec<&[u8]> = wire.chunks(1).collect();
        assert_eq!(decode(&drip), whole);
    }

    /// The first event names the run, so a byte order mark before it must not hide it.
    #[test]
    fn a_byte_order_mark_does_not_hide_an_event() {
        assert_eq!(decode(&[b"\xEF\xBB", b"\xBFdata: a\n\n\xEF\xBB\xBFdata: b\n\n"]), ["a"]);
    }

    #[test]
    fn the_memory_of_a_long_event_is_reused_for_the_next() {
        let mut decoder = SseDecoder::new(LIMIT);
        let long = "x".repeat(100_000);
        for _ in 0..3 {
            decoder
                .push(format!(": ping\n\nevent: a\ndata: {long}\n\ndata: b\n").as_bytes())
                .unwrap();
            let data = decoder.next_event().unwrap().data.unwrap();
            assert_eq!(data, long);
            let memory = data.as_ptr();
            decoder.reuse(data);
            decoder.push(b"\n: ping\n\nevent: a\ndata: c").unwrap();
            let data = decoder.next_event().unwrap().data.unwrap();
            assert_eq!(data, "b");
            decoder.reuse(data);
            decoder.push(b"\n\n").unwrap();
            let data = decoder.next_event().unwrap().data.unwrap();
            assert_eq!((data.as_str(), data.as_ptr()), ("c", memory));
            decoder.reuse(data);
        }
    }

    #[test]
    fn an_unfinished_event_is_not_returned() {
        assert_eq!(decode(&[b"data: half"]), Vec::<String>::new());
    }

    #[test]
    fn an_endless_line_is_refused_and_not_buffered() {
        let mut decoder = SseDecoder::new(LIMIT);
        let piece = vec![b'x'; 128 * 1024];
        let refused = (0..100).find_map(|_| decoder.push(&piece).err());
        assert_eq!(refused, Some(EventTooLarge { limit: LIMIT }));
        assert!(decoder.buffered_bytes() <= 2 * LIMIT);
    }

    #[test]
    fn names_count_towards_the_limit_and_end_with_their_event() {
        let mut decoder = SseDecoder::new(12);
        decoder
            .push(b"event: a\nid: 7\nretry: 20\n\nretry: soon\n\n: hello\n\nodd: 1\n\n")
            .unwrap();
        let expected = SseEvent {
            event: Some("a".to_owned()),
            id: Some("7".to_owned()),
            retry: Some(20),
            data: None,
        };
        assert_eq!(decoder.next_event(), Some(expected));
        assert_eq!(decoder.next_event(), None);
        for piece in ["data: 1\n\n", "data", ": 2\r\n\r\n", "\n\n", ": hello\n\n", "id: 12345\n"] {
            decoder.push(piece.as_bytes()).unwrap();
        }
        assert_eq!(decoder.push(b"data: 12"), Err(EventTooLarge { limit: 12 }));
    }
}
