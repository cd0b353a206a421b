//! Lines that move while something runs; on a terminal only. Elsewhere each change is a line of its own.

use std::io::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use anstyle::Style;
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::wrap::width;
use super::{BOLD, CYAN, DIM, has_colour, is_quiet, remark, short, watched};

/// Columns at the right edge that no line uses. Where Ctrl-C is typed the terminal writes `^C` behind the last line; over
/// the edge, the lines could not be taken away any more.
const MARGIN: u16 = 3;
/// A terminal narrower than this gets a short bar.
const NARROW: usize = 70;
/// A terminal narrower than this gets no bar.
const NARROWEST: usize = 40;
/// How often the lines are drawn.
const REDRAW: Duration = Duration::from_millis(90);
const SPINNER: [&str; 8] = [
    "\u{2801}", "\u{2802}", "\u{2804}", "\u{2840}", "\u{2880}", "\u{2820}", "\u{2810}", "\u{2808}",
];
/// Takes away the line that the cursor is in.
const CLEAR_LINE: &str = "\r\x1b[2K";

/// Lines under one another, one for each thing that runs. They go when this is dropped, also where the work is given up.
pub(crate) struct Bars {
    lines: Arc<Mutex<Lines>>,
    redraw: Option<AbortHandle>,
}

impl Bars {
    /// One without a name, for something that began just now.
    pub(crate) fn one() -> Self {
        Self::start([(String::new(), Duration::ZERO)])
    }

    /// One for each name and the time it has been going on for.
    pub(crate) fn start(named: impl IntoIterator<Item = (String, Duration)>) -> Self {
        let lines = Arc::new(Mutex::new(Lines::default()));
        let rows = named.into_iter().map(|(name, before)| Row::new(name, before));
        locked(&lines).rows.extend(rows);
        let drawn = Arc::clone(&lines);
        let redraw = async move {
            let mut tick = tokio::time::interval(REDRAW);
            loop {
                tick.tick().await;
                locked(&drawn).draw();
            }
        };
        let redraw = is_drawn().then(|| outlast_engine::spawn(redraw).abort_handle());
        Self { lines, redraw }
    }

    /// Shows how far one of them has come, if that is known.
    pub(crate) fn show(&mut self, row: usize, percent: Option<u64>, message: &str) {
        let mut lines = locked(&self.lines);
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

    /// Says something above them.
    pub(crate) fn remark(&self, text: &str) {
        let mut lines = locked(&self.lines);
        write(&lines.cleared());
        remark(text);
        if is_drawn() {
            lines.draw();
        }
    }

    /// Leaves one of them standing as it is.
    pub(crate) fn rest(&mut self, row: usize) {
        if let Some(row) = locked(&self.lines).rows.get_mut(row) {
            row.rests_at = Some(row.elapsed());
        }
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        self.redraw.iter().for_each(AbortHandle::abort);
        let mut lines = locked(&self.lines);
        // A redraw that waits for the lock draws nothing any more.
        lines.rows.clear();
        write(&lines.cleared());
    }
}

#[derive(Default)]
struct Lines {
    rows: Vec<Row>,
    /// How many of them are on the terminal.
    drawn: usize,
    redraws: usize,
}

impl Lines {
    fn draw(&mut self) {
        let size = rustix::termios::tcgetwinsize(std::io::stderr());
        let height = size.map_or(24, |size| usize::from(size.ws_row.max(1)));
        let mut text = self.cleared();
        self.redraws += 1;
        let spinner = SPINNER[self.redraws % SPINNER.len()];
        let rows = self.rows.iter().take(height).map(|row| row.line(columns(), spinner));
        let lines: Vec<String> = rows.collect();
        self.drawn = lines.len();
        text.push_str(&lines.join("\n"));
        write(&text);
    }

    /// The orders that take away what is drawn.
    fn cleared(&mut self) -> String {
        match std::mem::take(&mut self.drawn) {
            0 => String::new(),
            drawn => format!("{CLEAR_LINE}\x1b[1A").repeat(drawn - 1) + CLEAR_LINE,
        }
    }
}

struct Row {
    name: String,
    /// How long it had been going on when its line was started.
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
            // The words need the room more than the bar does where there is a name too.
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

/// How many columns a line may take.
pub(super) fn columns() -> usize {
    let size = rustix::termios::tcgetwinsize(std::io::stderr());
    usize::from(size.map_or(80, |size| size.ws_col).saturating_sub(MARGIN).max(1))
}

/// Whether lines are drawn.
fn is_drawn() -> bool {
    watched() && !is_quiet()
}

fn locked(lines: &Mutex<Lines>) -> MutexGuard<'_, Lines> {
    lines.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Not through anstream: where there is no colour it would leave out the orders to the terminal as well.
fn write(text: &str) {
    drop(std::io::stderr().lock().write_all(text.as_bytes()));
}
