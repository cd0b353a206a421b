//! Tables that fit the terminal: ids are shortened, and the last column takes the remaining width and is cut. Output
//! that is not read on a terminal is complete.

use anstyle::Style;
use outlast_core::StateKind;
use unicode_width::UnicodeWidthStr;

use super::{DIM, line, one_line, set, short, state_style, terminal_width};

/// The number of characters of an id on a terminal, as every other message shows it.
const ID: usize = 8;
/// The width below which the last column is too narrow to be read.
const READABLE: usize = 24;
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

    fn shorten_id(&mut self) {
        if self.is_id {
            self.text = self.text.chars().take(ID).collect();
        }
    }
}

/// Prints a table. On a narrow terminal the `optional` columns are left out, in this order, until the last column can be
/// read.
pub(crate) fn table_with_optional(optional: &[&str], heads: &[&str], mut rows: Vec<Vec<Cell>>) {
    let mut heads = heads.to_vec();
    let terminal = terminal_width();
    if terminal.is_some() {
        rows.iter_mut().flatten().for_each(Cell::shorten_id);
    }
    for left_out in optional {
        let whole = widths(&heads, &rows, None).last().copied().unwrap_or(0);
        let is_readable = terminal.is_none_or(|columns| {
            let all = widths(&heads, &rows, Some(columns));
            let taken: usize = all.iter().map(|width| width + 2).sum();
            taken <= columns + 2 && all.last().is_some_and(|last| *last >= whole.min(READABLE))
        });
        if is_readable {
            break;
        }
        if let Some(column) = heads.iter().position(|head| head == left_out) {
            heads.remove(column);
            rows.iter_mut().for_each(|row| drop(row.remove(column)));
        }
    }
    table(&heads, rows);
}

/// Prints a table.
pub(crate) fn table(heads: &[&str], mut rows: Vec<Vec<Cell>>) {
    let terminal = terminal_width();
    if terminal.is_some() {
        rows.iter_mut().flatten().for_each(Cell::shorten_id);
    }
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
