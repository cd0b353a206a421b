//! How long something will be, found by writing it to nowhere.

use std::io;

/// Counts what is written to it and keeps nothing; fails when there is more than `longest`, so that what is known to be long
/// is measured no further.
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
