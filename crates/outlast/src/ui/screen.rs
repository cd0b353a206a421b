//! The terminal under a bar. Narrower than it is: where Ctrl-C is typed the terminal writes `^C` behind the bar, and if
//! that went over the edge, the bar could not be taken away any more. So bars do not reach the edge, and each ends with a
//! line break of its own.

use std::io::Write as _;
use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::TermLike;

/// Columns at the right edge that no bar uses: room for `^C`, and the one that would begin a new line.
const MARGIN: usize = 3;

/// Standard error as bars need it. What is drawn at once is written at once.
#[derive(Debug, Default)]
pub(super) struct Screen {
    drawn: Mutex<Drawn>,
}

/// What is drawn and not yet written.
#[derive(Debug, Default)]
struct Drawn {
    text: String,
    /// How many pieces it is made of: the library draws each bar as its line and the blanks up to the edge.
    pieces: usize,
}

/// How many columns a bar may take.
pub(super) fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    size.map_or(80, |size| usize::from(size.ws_col)).saturating_sub(MARGIN).max(1)
}

impl Screen {
    fn drawn(&self) -> MutexGuard<'_, Drawn> {
        self.drawn.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, text: &str) -> std::io::Result<()> {
        self.drawn().text.push_str(text);
        Ok(())
    }

    /// Moves the cursor by so many places, by the letter of the direction.
    fn step(&self, n: usize, direction: char) -> std::io::Result<()> {
        if n == 0 { Ok(()) } else { self.push(&format!("\x1b[{n}{direction}")) }
    }
}

impl TermLike for Screen {
    fn width(&self) -> u16 {
        u16::try_from(columns()).unwrap_or(u16::MAX)
    }

    fn height(&self) -> u16 {
        let size = rustix::termios::tcgetwinsize(std::io::stderr());
        size.map_or(24, |size| size.ws_row.max(1))
    }

    fn move_cursor_up(&self, n: usize) -> std::io::Result<()> {
        self.step(n, 'A')
    }

    fn move_cursor_down(&self, n: usize) -> std::io::Result<()> {
        self.step(n, 'B')
    }

    fn move_cursor_right(&self, n: usize) -> std::io::Result<()> {
        self.step(n, 'C')
    }

    fn move_cursor_left(&self, n: usize) -> std::io::Result<()> {
        self.step(n, 'D')
    }

    fn write_line(&self, text: &str) -> std::io::Result<()> {
        self.push(&format!("{text}\n"))
    }

    /// The library counts on its blanks to reach the edge, where the terminal begins a line. Ours would not reach it.
    fn write_str(&self, text: &str) -> std::io::Result<()> {
        let mut drawn = self.drawn();
        let is_bar = drawn.pieces.is_multiple_of(2);
        if is_bar && drawn.pieces > 0 {
            drawn.text.push('\n');
        }
        if is_bar {
            drawn.text.push_str(text);
        }
        drawn.pieces += 1;
        Ok(())
    }

    fn clear_line(&self) -> std::io::Result<()> {
        self.push("\r\x1b[2K")
    }

    fn flush(&self) -> std::io::Result<()> {
        let drawn = std::mem::take(&mut *self.drawn());
        let mut stderr = std::io::stderr().lock();
        stderr.write_all(drawn.text.as_bytes())?;
        stderr.flush()
    }
}
