//! Lines that move while something runs; on a terminal only. Elsewhere each change is a line of its own.

use std::time::Duration;

use anstyle::Style;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::screen::{Screen, columns};
use super::{BOLD, CYAN, DIM, has_colour, is_quiet, remark, short, watched};

/// A terminal narrower than this gets a short bar.
const NARROW: usize = 70;

/// A progress bar.
pub(crate) struct Bar {
    bar: ProgressBar,
    label: String,
    last: String,
}

impl Bar {
    /// Starts one for something that began just now.
    pub(crate) fn start() -> Self {
        let bar = ProgressBar::with_draw_target(Some(100), target());
        Self::over(bar, Duration::ZERO, String::new())
    }

    fn over(bar: ProgressBar, elapsed: Duration, label: String) -> Self {
        let bar = bar.with_elapsed(elapsed).with_prefix(label.clone());
        if is_drawn() {
            // Before the first tick, which would draw the library's default bar.
            if let Some(style) = style(columns(), false, !label.is_empty()) {
                bar.set_style(style);
            }
            bar.enable_steady_tick(Duration::from_millis(90));
        }
        Self { bar, label, last: String::new() }
    }

    /// Shows how far it has come, if that is known.
    pub(crate) fn show(&mut self, percent: Option<u64>, message: &str) {
        if is_drawn() {
            let columns = columns();
            let has_label = !self.label.is_empty();
            if let Some(style) = style(columns, percent.is_some(), has_label) {
                self.bar.set_style(style);
            }
            let label = if has_label { self.label.len() + 2 } else { 0 };
            let taken = 9 + label + percent.map_or(0, |_| bar_width(columns, has_label) + 8);
            self.bar.set_position(percent.unwrap_or(0));
            self.bar.set_message(short(message, columns.saturating_sub(taken).max(1)));
            return;
        }
        let message = short(message, 200);
        let said = match percent {
            Some(percent) => format!("{percent:>3} %  {message}"),
            None => format!("       {message}"),
        };
        if said != self.last {
            let label =
                if self.label.is_empty() { String::new() } else { format!("{}  ", self.label) };
            remark(&format!("  {label}{said}"));
            self.last = said;
        }
    }

    /// Takes it away.
    pub(crate) fn end(self) {}
}

/// Also where its work is given up: nothing of it stays on the screen.
impl Drop for Bar {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// Several bars under one another, each with a name.
pub(crate) struct Rows {
    all: MultiProgress,
    bars: Vec<Bar>,
}

impl Rows {
    /// Starts a row for each name and the time it has been going on for.
    pub(crate) fn start(named: impl Iterator<Item = (String, Duration)>) -> Self {
        let all = MultiProgress::with_draw_target(target());
        let bars = named
            .map(|(name, elapsed)| Bar::over(all.add(ProgressBar::new(100)), elapsed, name))
            .collect();
        Self { all, bars }
    }

    /// Shows how far one of them has come.
    pub(crate) fn show(&mut self, row: usize, percent: Option<u64>, message: &str) {
        if let Some(bar) = self.bars.get_mut(row) {
            bar.show(percent, message);
        }
    }

    /// Says something above them.
    pub(crate) fn remark(&self, text: &str) {
        self.all.suspend(|| remark(text));
    }

    /// Leaves one of them standing as it is.
    pub(crate) fn rest(&mut self, row: usize) {
        if let Some(bar) = self.bars.get_mut(row) {
            bar.bar.abandon();
        }
    }

    /// Takes them all away.
    pub(crate) fn end(self) {
        self.bars.into_iter().for_each(Bar::end);
        drop(self.all.clear());
    }
}

/// Where bars are drawn: nowhere without a terminal.
fn target() -> ProgressDrawTarget {
    match is_drawn() {
        true => ProgressDrawTarget::term_like_with_hz(Box::new(Screen::default()), 20),
        false => ProgressDrawTarget::hidden(),
    }
}

/// Whether bars are drawn.
fn is_drawn() -> bool {
    watched() && !is_quiet()
}

/// The words need the room more than the bar does where there is a name too.
fn bar_width(columns: usize, has_label: bool) -> usize {
    let narrow = if has_label { 2 * NARROW } else { NARROW };
    if columns < narrow { 8 } else { 24 }
}

fn style(columns: usize, has_percent: bool, has_label: bool) -> Option<ProgressStyle> {
    // Styled here: the library would ask whether standard output is a terminal.
    let [cyan, bold, dim] = if has_colour() { [CYAN, BOLD, DIM] } else { [Style::new(); 3] };
    let label = if has_label { format!("{bold}{{prefix}}{bold:#}  ") } else { String::new() };
    let percent = match has_percent {
        true => format!("{cyan}{{bar:{}}}{cyan:#} {{pos:>3}} %  ", bar_width(columns, has_label)),
        false => String::new(),
    };
    let elapsed = format!("{dim}{{elapsed:>3}}{dim:#}");
    let template = format!("  {cyan}{{spinner}}{cyan:#} {label}{percent}{elapsed}  {{msg}}");
    let style = ProgressStyle::with_template(&template).ok()?;
    Some(style.progress_chars("\u{2501}\u{2578}\u{2500}"))
}
