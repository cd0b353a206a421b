//! How long something will be, found by writing it to nowhere.

use std::io;

/// Counts what is written to it and keeps nothing.
pub(crate) struct JsonSize {
    length: usize,
    longest: usize,
}

impl JsonSize {
    /// Counts all there is.
    pub(crate) fn without_end() -> Self {
        Self::up_to(usize::MAX)
    }

    /// Fails when there is more than this, so that what is known to be long is measured no further.
    pub(crate) fn up_to(longest: usize) -> Self {
        Self { length: 0, longest }
    }

    /// How much was written.
    pub(crate) fn length(&self) -> usize {
        self.length
    }
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
