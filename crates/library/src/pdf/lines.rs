//! Pieces become lines, in the order they are read.
//!
//! Makers of PDF draw text in the order it is read, columns one after the other, so that order is kept; only a page
//! that jumps up and down without sense is put in order by its places.

use super::pieces::{BLANK, Piece};

/// Of the size, a gap that separates the cells of a row.
const CELL: f64 = 1.6;

/// One line of a page.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Line {
    pub(super) page: u32,
    pub(super) x: f64,
    pub(super) end: f64,
    /// Upwards.
    pub(super) y: f64,
    pub(super) size: f64,
    pub(super) is_bold: bool,
    /// Whether it has cells rather than running text.
    pub(super) is_row: bool,
    pub(super) text: String,
    pub(super) unknown: u32,
}

/// The lines of one page.
pub(super) fn lines(page: u32, mut pieces: Vec<Piece>) -> Vec<Line> {
    // What runs across the rest, such as a stamp in the margin, is not part of the text.
    let mut turns = [0_usize; 4];
    for piece in &pieces {
        turns[usize::from(piece.turn % 4)] += piece.text.len();
    }
    let most = turns.iter().copied().max().unwrap_or(0);
    let turn = turns.iter().position(|turn| *turn == most).unwrap_or(0);
    pieces.retain(|piece| usize::from(piece.turn % 4) == turn);
    let mut lines: Vec<Line> = Vec::new();
    // The signs of the size that the line has, and those that are bold.
    let mut counts = (0, 0);
    for piece in pieces {
        let length = piece.text.len();
        let bold = if piece.is_bold { length } else { 0 };
        match lines.last_mut().filter(|line| follows(line, &piece)) {
            Some(line) => {
                let gap = piece.x - line.end;
                if gap > line.size.max(piece.size) * CELL {
                    line.is_row = true;
                }
                if gap > piece.size * BLANK && !line.text.ends_with(' ') {
                    line.text.push(' ');
                }
                line.text.push_str(&piece.text);
                line.end = line.end.max(piece.end);
                line.unknown += piece.unknown;
                if length > counts.0 {
                    (line.size, line.y) = (piece.size, piece.y);
                    counts.0 = length;
                }
                counts.1 += bold;
                line.is_bold = counts.1 * 10 > line.text.len() * 8;
            }
            None => {
                counts = (length, bold);
                lines.push(Line {
                    page,
                    x: piece.x,
                    end: piece.end,
                    y: piece.y,
                    size: piece.size,
                    is_bold: piece.is_bold,
                    is_row: false,
                    text: piece.text,
                    unknown: piece.unknown,
                });
            }
        }
    }
    lines.retain(|line| line.unknown > 0 || !line.text.trim().is_empty());
    if is_senseless(&lines) {
        lines.sort_by(|a, b| b.y.total_cmp(&a.y).then(a.x.total_cmp(&b.x)));
    }
    lines
}

/// Whether a piece stands on a line, behind what is there; small ones may stand a little higher or lower.
fn follows(line: &Line, piece: &Piece) -> bool {
    let size = line.size.max(piece.size);
    let is_small = !(0.85..1.18).contains(&(line.size / piece.size));
    let off = (line.y - piece.y).abs();
    off < size * if is_small { 0.55 } else { 0.2 } && piece.x > line.end - size * 0.6
}

/// Whether lines often go up to a place above the last, in the same column.
fn is_senseless(lines: &[Line]) -> bool {
    let jumps = lines.windows(2).filter(|pair| {
        let [a, b] = pair else { return false };
        let shared = a.end.min(b.end) - a.x.max(b.x);
        b.y > a.y + a.size * 0.5 && shared > (a.end - a.x).min(b.end - b.x) * 0.5
    });
    jumps.count() > 2 + lines.len() / 8
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(x: f64, y: f64, size: f64, text: &str) -> Piece {
        let end = x + size * 0.5 * text.len() as f64;
        Piece { x, end, y, size, turn: 0, is_bold: false, text: text.to_owned(), unknown: 0 }
    }

    fn texts(pieces: Vec<Piece>) -> Vec<(String, bool)> {
        lines(1, pieces).into_iter().map(|line| (line.text, line.is_row)).collect()
    }

    #[test]
    fn what_is_small_and_raised_belongs_to_its_line() {
        let pieces = vec![
            piece(0.0, 100.0, 10.0, "E=mc"),
            piece(20.0, 104.0, 7.0, "2"),
            piece(26.0, 100.0, 10.0, "holds"),
        ];
        assert_eq!(texts(pieces), [("E=mc2 holds".to_owned(), false)]);
    }

    #[test]
    fn cells_are_told_from_words_and_columns_stay_apart() {
        let pieces = vec![
            piece(0.0, 100.0, 10.0, "F28"),
            piece(60.0, 100.0, 10.0, "no gas"),
            piece(0.0, 88.0, 10.0, "left"),
            piece(100.0, 700.0, 10.0, "right"),
        ];
        let expected = [("F28 no gas", true), ("left", false), ("right", false)];
        assert_eq!(texts(pieces), expected.map(|(text, is_row)| (text.to_owned(), is_row)));
    }

    #[test]
    fn text_across_the_rest_is_left_out() {
        let mut stamp = piece(5.0, 300.0, 10.0, "draft");
        stamp.turn = 1;
        assert_eq!(
            texts(vec![stamp, piece(0.0, 100.0, 10.0, "running text")]),
            [("running text".to_owned(), false)]
        );
    }

    #[test]
    fn a_page_drawn_without_sense_is_put_in_order() {
        let order = [1, 0, 3, 2, 5, 4, 7, 6, 9, 8];
        let pieces =
            order.map(|at| piece(0.0, 500.0 - 12.0 * f64::from(at), 10.0, &format!("line {at}")));
        let seen = texts(pieces.to_vec());
        assert!(seen.is_sorted(), "{seen:?}");
    }
}
