//! Progress lines that are redrawn while work runs; on a terminal only. Elsewhere each change is a separate line.

use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anstyle::Style;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::wrap::width;
use super::{BOLD, CYAN, DIM, has_colour, is_quiet, is_watched, remark, short};

/// Columns at the right edge that no line uses. The terminal writes `^C` after the last line when Ctrl-C is typed;
/// beyond the edge, the lines could no longer be removed.
const MARGIN: u16 = 3;
/// A terminal narrower than this gets a short bar.
const NARROW: usize = 70;
/// A terminal narrower than this gets no bar.
const NARROWEST: usize = 40;
/// The interval between redraws.
const REDRAW: Duration = Duration::from_millis(90);
const SPINNER: [&str; 8] = [
    "\u{2801}", "\u{2802}", "\u{2804}", "\u{2840}", "\u{2880}", "\u{2820}", "\u{2810}", "\u{2808}",
];
/// Clears the line that the cursor is in.
const CLEAR_LINE: &str = "\r\x1b[2K";

/// Progress lines, one for each running item. They are removed when this is dropped, also if the work is abandoned.
pub(crate) struct Bars {
    lines: Arc<Mutex<Lines>>,
    redraw: Option<AbortHandle>,
}

impl Bars {
    /// Creates one line without a name, for an item that has just begun.
    pub(crate) fn one() -> Self {
        Self::start([(String::new(), Duration::ZERO)])
    }

    /// Creates a line for each name with the time for which it has been running.
    pub(crate) fn start(named: impl IntoIterator<Item = (String, Duration)>) -> Self {
        let lines = Arc::new(Mutex::new(Lines::default()));
        let rows = named.into_iter().map(|(name, before)| Row::new(name, before));
        lock(&lines).rows.extend(rows);
        let drawn = Arc::clone(&lines);
        let redraw = async move {
            let mut tick = tokio::time::interval(REDRAW);
            loop {
                tick.tick().await;
                lock(&drawn).draw();
            }
        };
        let redraw = is_drawn().then(|| outlast_engine::spawn(redraw).abort_handle());
        Self { lines, redraw }
    }

    /// Shows the progress of one line, if it is known.
    pub(crate) fn show(&mut self, row: usize, percent: Option<u64>, message: &str) {
        let mut lines = lock(&self.lines);
        let Some(row) = lines.rows.get_mut(row) else { return };
        let is_new = row.percent != percent || row.message != message;
        (row.percent, row.message) = (percent, message.to_owned());
        if is_drawn() {
            lines.draw();
        } else if is_new {
            let name = if row.name.is_empty() { String::new() } else { format!("{}  ", row.name) };
            let percent = percent.map_or(String::new(), |percent| format!("{percent:>3} %"));
            remark(&format!("  {name}{percent:5}  {}", short(message, 200)));
        }
    }

    /// Prints a remark above the lines.
    pub(crate) fn remark(&self, text: &str) {
        let mut lines = lock(&self.lines);
        write(&lines.clear());
        remark(text);
        if is_drawn() {
            lines.draw();
        }
    }

    /// Leaves one line on the terminal unchanged.
    pub(crate) fn rest(&mut self, row: usize) {
        if let Some(row) = lock(&self.lines).rows.get_mut(row) {
            row.rests_at = Some(row.elapsed());
        }
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.redraw.iter().for_each(AbortHandle::abort);
        let mut lines = lock(&self.lines);
        // A redraw that waits for the lock then draws nothing.
        lines.rows.clear();
        write(&lines.clear());
    }
}

#[derive(Default)]
struct Lines {
    rows: Vec<Row>,
    /// The number of lines on the terminal.
    drawn: usize,
    redraws: usize,
}

impl Lines {
    fn draw(&mut self) {
        let size = rustix::termios::tcgetwinsize(std::io::stderr());
        let height = size.map_or(24, |size| usize::from(size.ws_row.max(1)));
        let mut text = self.clear();
        self.redraws += 1;
        let spinner = SPINNER[self.redraws % SPINNER.len()];
        let rows = self.rows.iter().take(height).map(|row| row.line(columns(), spinner));
        let lines: Vec<String> = rows.collect();
        self.drawn = lines.len();
        text.push_str(&lines.join("\n"));
        write(&text);
    }

    /// Returns the sequences that clear the drawn lines.
    fn clear(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            drawn => format!("{CLEAR_LINE}\x1b[1A").repeat(drawn - 1) + CLEAR_LINE,
        }
    }
}

struct Row {
    name: String,
    /// The time for which it had been running when its line was created.
    before: Duration,
    started: Instant,
    rests_at: Option<Duration>,
    percent: Option<u64>,
    message: String,
}

impl Row {
    fn new(name: String, before: Duration) -> Self {
        let started = Instant::now();
        Self { name, before, started, rests_at: None, percent: None, message: String::new() }
    }

    fn elapsed(&self) -> Duration {
        self.rests_at.unwrap_or_else(|| self.before + self.started.elapsed())
    }

    fn line(&self, columns: usize, spinner: &str) -> String {
        let [cyan, bold, dim] = if has_colour() { [CYAN, BOLD, DIM] } else { [Style::new(); 3] };
        let mut line = format!("  {cyan}{spinner}{cyan:#} ");
        if !self.name.is_empty() {
            line.push_str(&format!("{bold}{}{bold:#}  ", self.name));
        }
        if let Some(percent) = self.percent {
            // If there is a name too, the words need the room more than the bar does.
            let narrow = if self.name.is_empty() { NARROW } else { 2 * NARROW };
            let room = match columns {
                ..NARROWEST => 0,
                columns if columns < narrow => 8,
                _ => 24,
            };
            let full = usize::try_from(percent.min(100)).unwrap_or(0) * room / 100;
            let (full, rest) = ("\u{2501}".repeat(full), "\u{2500}".repeat(room - full));
            line.push_str(&format!("{cyan}{full}{rest}{cyan:#} {percent:>3} %  "));
        }
        let elapsed = match self.elapsed().as_secs() {
            seconds @ ..60 => format!("{seconds}s"),
            seconds @ 60..3600 => format!("{}m", seconds / 60),
            seconds => format!("{}h", seconds / 3600),
        };
        line.push_str(&format!("{dim}{elapsed:>3}{dim:#}  "));
        let room = columns.saturating_sub(width(&line)).max(1);
        line + &short(&self.message, room)
    }
}

/// Returns the maximum number of columns of a line.
pub(super) fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    usize::from(size.map_or(80, |size| size.ws_col).saturating_sub(MARGIN).max(1))
}

/// Returns true if lines are drawn.
fn is_drawn() -> bool {
    is_watched() && !is_quiet()
}

fn lock(lines: &Mutex<Lines>) -> MutexGuard<'_, Lines> {
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Does not write through anstream: without colour it would also remove the control sequences.
fn write(text: &str) {
    drop(std::io::stderr().lock().write_all(text.as_bytes()));
}
