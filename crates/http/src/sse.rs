//! Server-sent events, taken apart as bytes arrive. Knows nothing of any vendor and never holds more than one
//! bounded event.

/// An event larger than this is an error, not memory.
pub const MAX_EVENT: usize = 8 * 1024 * 1024;

/// One event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The `data` lines, joined by newlines.
    pub data: String,
}

/// The stream sent an event we will not hold.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is larger than {MAX_EVENT} bytes")]
pub struct TooLarge;

/// Turns bytes, cut anywhere, into events.
#[derive(Debug, Default)]
pub struct Decoder {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    last_was_cr: bool,
    /// Whether a first line was seen: a mark of the byte order may stand before it.
    begun: bool,
    frames: std::collections::VecDeque<Frame>,
}

impl Decoder {
    /// Takes in bytes as they came off the wire.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), TooLarge> {
        while let Some(&first) = bytes.first() {
            let after_cr = std::mem::take(&mut self.last_was_cr);
            if after_cr && first == b'\n' {
                bytes = &bytes[1..]; // the second half of a CRLF
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let (part, rest) = bytes.split_at(end.unwrap_or(bytes.len()));
            if self.line.len() + self.data.len() + part.len() > MAX_EVENT {
                return Err(TooLarge);
            }
            self.line.extend_from_slice(part);
            bytes = rest;
            if let Some((end, rest)) = rest.split_first() {
                self.last_was_cr = *end == b'\r';
                self.end_line();
                bytes = rest;
            }
        }
        Ok(())
    }

    /// How much it holds of an event that is not whole yet.
    pub fn held(&self) -> usize {
        self.line.capacity() + self.data.capacity()
    }

    /// Takes the memory of an event that was read, for the next ones: a report comes several times in one stream, and
    /// what is allocated and freed again each time is not given back to the system at once.
    pub fn reuse(&mut self, data: String) {
        let mut line = data.into_bytes();
        if line.capacity() > self.line.capacity() {
            line.clear();
            line.append(&mut self.line);
            self.line = line;
        }
    }

    /// The next whole event, if there is one.
    pub fn next(&mut self) -> Option<Frame> {
        self.frames.pop_front()
    }

    fn end_line(&mut self) {
        let mut line = std::mem::take(&mut self.line);
        if !std::mem::replace(&mut self.begun, true) && line.starts_with(b"\xEF\xBB\xBF") {
            line.drain(..3);
        }
        if line.is_empty() {
            self.line = line;
            self.end_event();
            return;
        }
        let colon = line.iter().position(|&byte| byte == b':').unwrap_or(line.len());
        // Event names are repeated inside the JSON; ids and retry hints are not used here.
        if &line[..colon] != b"data" {
            line.clear();
            self.line = line;
            return;
        }
        let space = line.get(colon + 1) == Some(&b' ');
        line.drain(..(colon + 1 + usize::from(space)).min(line.len()));
        // The usual event has one line of data, which may be megabytes: it is moved, not copied.
        if self.has_data {
            self.data.push(b'\n');
            self.data.append(&mut line);
        } else {
            self.data = line;
        }
        self.has_data = true;
    }

    fn end_event(&mut self) {
        let data = std::mem::take(&mut self.data);
        if std::mem::take(&mut self.has_data) {
            let data = String::from_utf8(data)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned());
            self.frames.push_back(Frame { data });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(chunks: &[&[u8]]) -> Vec<String> {
        let mut decoder = Decoder::default();
        let mut frames = Vec::new();
        for chunk in chunks {
            decoder.push(chunk).unwrap();
            while let Some(frame) = decoder.next() {
                frames.push(frame.data.clone());
                decoder.reuse(frame.data);
            }
        }
        frames
    }

    #[test]
    fn events_are_the_same_wherever_the_bytes_are_cut() {
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

    /// The first event names the run: it must not be lost to a mark before it.
    #[test]
    fn a_byte_order_mark_hides_no_event() {
        assert_eq!(decode(&[b"\xEF\xBB", b"\xBFdata: a\n\n\xEF\xBB\xBFdata: b\n\n"]), ["a"]);
    }

    #[test]
    fn the_memory_of_a_long_event_is_taken_for_the_next() {
        let mut decoder = Decoder::default();
        let long = "x".repeat(100_000);
        for _ in 0..3 {
            decoder
                .push(format!(": ping\n\nevent: a\ndata: {long}\n\ndata: b\n").as_bytes())
                .unwrap();
            let data = decoder.next().unwrap().data;
            assert_eq!(data, long);
            let memory = data.as_ptr();
            decoder.reuse(data);
            decoder.push(b"\n: ping\n\nevent: a\ndata: c").unwrap();
            let data = decoder.next().unwrap().data;
            assert_eq!(data, "b");
            decoder.reuse(data);
            decoder.push(b"\n\n").unwrap();
            let data = decoder.next().unwrap().data;
            assert_eq!((data.as_str(), data.as_ptr()), ("c", memory));
            decoder.reuse(data);
        }
    }

    #[test]
    fn an_unfinished_event_is_no_event() {
        assert_eq!(decode(&[b"data: half"]), Vec::<String>::new());
    }

    #[test]
    fn a_line_without_end_is_refused_not_kept() {
        let mut decoder = Decoder::default();
        let megabyte = vec![b'x'; 1024 * 1024];
        let refused = (0..100).find_map(|_| decoder.push(&megabyte).err());
        assert_eq!(refused, Some(TooLarge));
        assert!(decoder.held() <= 2 * MAX_EVENT);
    }
}
