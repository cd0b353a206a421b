//! Tables that fit the terminal: the last column takes what is left and is cut.

use anstyle::Style;
use outlast_core::StateKind;

use super::{DIM, line, one_line, short, state_style};

/// A cell: its text, and how it looks.
pub(crate) struct Cell {
    text: String,
    style: Style,
}

impl Cell {
    /// Text.
    pub(crate) fn plain(text: &str) -> Self {
        Self { text: one_line(text), style: Style::new() }
    }

    /// A state, in its colour.
    pub(crate) fn state(text: String, state: StateKind) -> Self {
        Self { text, style: state_style(state) }
    }

    fn width(&self) -> usize {
        self.text.chars().count()
    }
}

/// Prints a table.
pub(crate) fn table(heads: &[&str], rows: Vec<Vec<Cell>>) {
    let widths = widths(heads, &rows, terminal_width());
    let heads: Vec<Cell> =
        heads.iter().map(|head| Cell { text: (*head).to_owned(), style: DIM }).collect();
    for row in std::iter::once(&heads).chain(&rows) {
        let cells = row.iter().zip(&widths).map(|(cell, width)| {
            let text = short(&cell.text, *width);
            let padding = " ".repeat(width - text.chars().count());
            format!("{}{text}{:#}{padding}", cell.style, cell.style)
        });
        line(cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}

fn widths(heads: &[&str], rows: &[Vec<Cell>], terminal: Option<usize>) -> Vec<usize> {
    let mut widths: Vec<usize> = heads.iter().map(|head| head.len()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.width().max(*width);
        }
    }
    if let (Some(terminal), Some((last, others))) = (terminal, widths.split_last_mut()) {
        let taken: usize = others.iter().map(|width| width + 2).sum();
        *last = (*last).min(terminal.saturating_sub(taken).max(8));
    }
    widths
}

/// The width to fit into; `None` when nobody reads it on a terminal.
fn terminal_width() -> Option<usize> {
    let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
    (size.ws_col > 0).then_some(usize::from(size.ws_col))
}
