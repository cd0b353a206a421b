//! Signs that follow each other closely become pieces of text; where the gap is wide enough a blank is put in.

use super::Trouble;
use super::budget::Budget;
use super::encoding::composed;
use super::matrix::Matrix;

/// Of the size, the gap between two words.
pub(super) const BLANK: f64 = 0.15;
/// What a piece costs more than its signs.
const COST: usize = 256;
/// What a byte of text costs: it is copied a few times on its way to a passage.
const BYTE: usize = 4;

/// A sign in its place.
pub(super) struct Placed {
    pub(super) at: Matrix,
    pub(super) width: f64,
    pub(super) size: f64,
    pub(super) text: Option<String>,
    pub(super) is_bold: bool,
}

/// Some text on one line. Its `x` runs the way the text does, also where the page is turned.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Piece {
    pub(super) x: f64,
    pub(super) end: f64,
    pub(super) y: f64,
    pub(super) size: f64,
    /// In quarters.
    pub(super) turn: u8,
    pub(super) is_bold: bool,
    pub(super) text: String,
    /// Signs that nobody can say the meaning of.
    pub(super) unknown: u32,
}

/// The pieces of a page.
#[derive(Default)]
pub(super) struct Pieces {
    done: Vec<Piece>,
}

impl Pieces {
    pub(super) fn finish(self) -> Vec<Piece> {
        self.done
    }

    /// Puts a sign where it belongs, which is paid for first.
    pub(super) fn add(&mut self, placed: Placed, budget: &Budget<'_>) -> Result<(), Trouble> {
        let Some((piece, across)) = piece(placed) else { return Ok(()) };
        budget.spend(piece.text.len().saturating_mul(BYTE))?;
        let Some(last) = self.done.last_mut() else { return self.push(piece, budget) };
        let gap = piece.x - last.end;
        let goes_on = last.turn == piece.turn
            && (last.y - piece.y).abs() < piece.size * 0.15
            && (0.8..1.25).contains(&(piece.size / last.size))
            && last.is_bold == piece.is_bold
            && gap < piece.size * 0.8;
        if goes_on && piece.x < last.end - across * 0.3 && overlaid(&mut last.text, &piece.text) {
            last.end = last.end.max(piece.end);
            return Ok(());
        }
        if !goes_on || gap < piece.size * -0.5 {
            return self.push(piece, budget);
        }
        let is_apart = gap > piece.size * BLANK;
        if is_apart && !last.text.ends_with(' ') && !piece.text.starts_with(' ') {
            last.text.push(' ');
        }
        last.text.push_str(&piece.text);
        last.end = piece.end;
        last.unknown += piece.unknown;
        Ok(())
    }

    fn push(&mut self, piece: Piece, budget: &Budget<'_>) -> Result<(), Trouble> {
        budget.spend(COST)?;
        self.done.push(piece);
        Ok(())
    }
}

/// One sign as a piece, and how wide it is.
fn piece(placed: Placed) -> Option<(Piece, f64)> {
    let Matrix { a, b, c, d, e, f } = placed.at;
    let across = placed.width * a.hypot(b) * placed.size.signum();
    let size = placed.size.abs() * c.hypot(d);
    let (along_x, along_y) = (a * placed.size.signum(), b * placed.size.signum());
    let (x, y, turn) = if along_x.abs() >= along_y.abs() {
        if along_x >= 0.0 { (e, f, 0) } else { (-e, -f, 2) }
    } else if along_y >= 0.0 {
        (f, -e, 1)
    } else {
        (-f, e, 3)
    };
    let is_on_page = |place: f64| place.abs() < 1e5;
    let is_sane =
        is_on_page(x) && is_on_page(y) && size > 0.5 && size < 2_000.0 && across.abs() < 1e4;
    let unknown = u32::from(placed.text.is_none());
    let text = placed.text.unwrap_or_default();
    let end = x + across.max(0.0);
    is_sane.then_some((
        Piece { x, end, y, size, turn, is_bold: placed.is_bold, text, unknown },
        across,
    ))
}

/// An accent drawn over a letter, in either order, becomes one letter.
fn overlaid(text: &mut String, over: &str) -> bool {
    let mut signs = over.chars();
    let (Some(last), Some(sign), None) = (text.chars().next_back(), signs.next(), signs.next())
    else {
        return false;
    };
    let Some(letter) = composed(sign, last).or_else(|| composed(last, sign)) else { return false };
    text.pop();
    text.push(letter);
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(signs: &[(f64, f64, &str)]) -> Vec<String> {
        let mut pieces = Pieces::default();
        let go_on = || true;
        let budget = Budget::new(&go_on);
        for (x, y, text) in signs {
            let at = Matrix::moved(*x, *y);
            let text = Some((*text).to_owned());
            let placed = Placed { at, width: 5.0, size: 10.0, text, is_bold: false };
            pieces.add(placed, &budget).unwrap();
        }
        pieces.finish().into_iter().map(|piece| piece.text).collect()
    }

    #[test]
    fn gaps_make_words_and_wide_ones_make_pieces() {
        let signs = [
            (0.0, 0.0, "a"),
            (5.0, 0.0, "b"),
            (12.5, 0.0, "c"),
            (40.0, 0.0, "d"),
            (45.0, 9.0, "e"),
        ];
        assert_eq!(texts(&signs), ["ab c", "d", "e"]);
    }

    #[test]
    fn an_accent_over_a_letter_is_one_letter() {
        assert_eq!(
            texts(&[(0.0, 0.0, "Z"), (5.0, 0.0, "¨"), (5.1, 0.0, "u"), (10.1, 0.0, "r")]),
            ["Zür"]
        );
        assert_eq!(texts(&[(0.0, 0.0, "c"), (0.2, 0.0, "¸"), (5.2, 0.0, "a")]), ["ça"]);
    }

    #[test]
    fn signs_off_every_page_are_left_out() {
        assert!(
            texts(&[(f64::NAN, 0.0, "a"), (1e300, 0.0, "b"), (0.0, f64::INFINITY, "c")]).is_empty()
        );
    }
}
