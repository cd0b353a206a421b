//! What one file may cost. Every byte that is unpacked or read and every sign that is placed is paid for here, so a
//! file that would take all memory or all day ends early, and so does the work for a question nobody waits for.

use std::cell::Cell;

use super::Trouble;

/// In bytes unpacked or read, more or less: a manual of 350 pages needs an eighth of it.
const ALL: u64 = 256 * 1024 * 1024;
/// What one stream may become, or the streams of one page together.
pub(super) const STREAM: usize = 24 * 1024 * 1024;
/// Of packed objects, what is kept while the file is read.
pub(super) const KEPT: usize = 64 * 1024 * 1024;

/// What is left.
pub(super) struct Budget<'a> {
    left: Cell<u64>,
    unasked: Cell<u64>,
    go_on: &'a dyn Fn() -> bool,
}

impl<'a> Budget<'a> {
    pub(super) fn new(go_on: &'a dyn Fn() -> bool) -> Self {
        Self::of(ALL, go_on)
    }

    /// Another sum than the usual.
    pub(super) fn of(sum: u64, go_on: &'a dyn Fn() -> bool) -> Self {
        Self { left: Cell::new(sum), unasked: Cell::new(0), go_on }
    }

    /// Pays; fails when there is no more, or when the work is not wanted any more.
    pub(super) fn spend(&self, cost: usize) -> Result<(), Trouble> {
        let cost = u64::try_from(cost).unwrap_or(u64::MAX);
        let left = self.left.get().checked_sub(cost).ok_or(Trouble::TooMuch)?;
        self.left.set(left);
        let unasked = self.unasked.get() + cost;
        let is_time = unasked > 64 * 1024;
        self.unasked.set(if is_time { 0 } else { unasked });
        if is_time && !(self.go_on)() { Err(Trouble::Stopped) } else { Ok(()) }
    }
}
