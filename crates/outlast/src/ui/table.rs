//! Tables that fit the terminal: ids are shortened, and the last column takes the remaining width and is cut. Output
//! that is not read on a terminal is complete.

use anstyle::Style;
use outlast_core::StateKind;
use unicode_width::UnicodeWidthStr;

use super::{DIM, line, one_line, set, short, state_style, terminal_width};

/// A terminal at least this wide has room for whole ids.
const ROOM_FOR_IDS: usize = 110;
/// A terminal narrower than this has room only for the shortest ids.
const NARROW: usize = 60;
/// The minimum width of the last column; with less there is no table.
const LEFT: usize = 4;

/// A cell: its text and its style.
pub(crate) struct Cell {
    text: String,
    style: Style,
    is_id: bool,
}

impl Cell {
    /// Creates a cell with text.
    pub(crate) fn plain(text: &str) -> Self {
        Self { text: one_line(text), style: Style::new(), is_id: false }
    }

    /// Creates a cell with an id, of which the first characters are enough.
    pub(crate) fn id(text: &str) -> Self {
        Self { is_id: true, ..Self::plain(text) }
    }

    /// Creates a cell with a state, in its colour.
    pub(crate) fn state(text: String, state: StateKind) -> Self {
        Self { text, style: state_style(state), is_id: false }
    }

    fn fit(&mut self, terminal: Option<usize>) {
        let Some(columns) = terminal.filter(|_| self.is_id) else { return };
        let characters = match columns {
            ROOM_FOR_IDS.. => return,
            NARROW.. => 12,
            _ => 8,
        };
        self.text = self.text.chars().take(characters).collect();
    }
}

/// Prints a table.
pub(crate) fn table(heads: &[&str], mut rows: Vec<Vec<Cell>>) {
    let terminal = terminal_width();
    rows.iter_mut().flatten().for_each(|cell| cell.fit(terminal));
    let widths = widths(heads, &rows, terminal);
    let all: usize = widths.iter().map(|width| width + 2).sum::<usize>().saturating_sub(2);
    if terminal.is_some_and(|columns| all > columns) {
        return one_by_one(&rows);
    }
    let heads: Vec<Cell> =
        heads.iter().map(|head| Cell { style: DIM, ..Cell::plain(head) }).collect();
    for row in std::iter::once(&heads).chain(&rows) {
        let cells = row.iter().zip(&widths).map(|(cell, width)| {
            let text = short(&cell.text, *width);
            let padding = " ".repeat(width.saturating_sub(text.width()));
            format!("{}{text}{:#}{padding}", cell.style, cell.style)
        });
        line(cells.collect::<Vec<_>>().join("  ").trim_end());
    }
}

/// Prints each row over several lines, if there is no room for columns.
fn one_by_one(rows: &[Vec<Cell>]) {
    for row in rows {
        let cells = row.iter().map(|cell| format!("{}{}{:#}", cell.style, cell.text, cell.style));
        set(&cells.collect::<Vec<_>>().join("  "), 4);
    }
}

fn widths(heads: &[&str], rows: &[Vec<Cell>], terminal: Option<usize>) -> Vec<usize> {
    let mut widths: Vec<usize> = heads.iter().map(|head| head.len()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = cell.text.width().max(*width);
        }
    }
    if let (Some(terminal), Some((last, others))) = (terminal, widths.split_last_mut()) {
        let taken: usize = others.iter().map(|width| width + 2).sum();
        *last = (*last).min(terminal.saturating_sub(taken).max(LEFT));
    }
    widths
}
