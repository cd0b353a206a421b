//! Measures the length of serialized JSON without storing it.

use std::io;

/// Counts the bytes written to it and keeps none of them. Fails beyond `longest`, so that measuring a long value stops
/// early.
pub(crate) struct JsonSize {
    pub(crate) length: usize,
    pub(crate) longest: usize,
}

impl io::Write for JsonSize {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.length = self.length.saturating_add(bytes.len());
        if self.length > self.longest {
            return Err(io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
