//! Lines cut from bytes as they arrive. A line keeps its newline; the last one may have none.

/// Bytes that are no whole line yet.
#[derive(Debug, Default)]
pub(crate) struct LineBuffer {
    bytes: Vec<u8>,
    /// How far there is certainly no newline.
    searched: usize,
}

impl LineBuffer {
    pub(crate) fn push(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// The next whole line, with its newline.
    pub(crate) fn next_line(&mut self) -> Option<Vec<u8>> {
        let rest = self.bytes.get(self.searched..).unwrap_or_default();
        let Some(at) = rest.iter().position(|byte| *byte == b'\n') else {
            self.searched = self.bytes.len();
            return None;
        };
        let rest = self.bytes.split_off(self.searched + at + 1);
        self.searched = 0;
        Some(std::mem::replace(&mut self.bytes, rest))
    }

    /// What stands behind the last newline when no more comes.
    pub(crate) fn rest(&mut self) -> Option<Vec<u8>> {
        self.searched = 0;
        let rest = std::mem::take(&mut self.bytes);
        (!rest.is_empty()).then_some(rest)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_come_whole_however_the_bytes_are_cut() {
        let mut buffer = LineBuffer::default();
        let mut lines = Vec::new();
        for byte in "a\n\u{e9}\n\nend".as_bytes() {
            buffer.push(&[*byte]);
            lines.extend(std::iter::from_fn(|| buffer.next_line()));
        }
        assert_eq!(lines, [b"a\n".to_vec(), "\u{e9}\n".as_bytes().to_vec(), b"\n".to_vec()]);
        assert_eq!(buffer.rest().as_deref(), Some(b"end".as_slice()));
        assert_eq!(buffer.rest(), None);
    }
}
