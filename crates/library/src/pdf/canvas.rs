//! A page being read: where the next sign goes, and in which font.

use std::rc::Rc;

use super::Trouble;
use super::file::File;
use super::font::{Font, Sign};
use super::matrix::Matrix;
use super::object::Object;
use super::pieces::{Pieces, Placed};

/// One page being read.
pub(super) struct Canvas {
    pub(super) state: State,
    pub(super) kept: Vec<State>,
    line: Matrix,
    text: Matrix,
    pub(super) marks: Vec<Mark>,
    pub(super) forms: u32,
    pub(super) pieces: Pieces,
}

/// What `q` keeps and `Q` brings back.
#[derive(Clone)]
pub(super) struct State {
    pub(super) page: Matrix,
    pub(super) font: Option<Rc<Font>>,
    pub(super) size: f64,
    /// Between signs, between words, across, between lines, above the line.
    spacing: f64,
    words: f64,
    stretch: f64,
    leading: f64,
    rise: f64,
}

/// What a marked part of a page is.
pub(super) enum Mark {
    Plain,
    /// Not part of the text, such as a page number.
    Artifact,
    /// Says what its signs mean, once.
    Says(String),
}

impl Default for Canvas {
    fn default() -> Self {
        Self {
            state: State {
                page: Matrix::SAME,
                font: None,
                size: 0.0,
                spacing: 0.0,
                words: 0.0,
                stretch: 1.0,
                leading: 0.0,
                rise: 0.0,
            },
            kept: Vec::new(),
            line: Matrix::SAME,
            text: Matrix::SAME,
            marks: Vec::new(),
            forms: 0,
            pieces: Pieces::default(),
        }
    }
}

impl Canvas {
    /// Does what an operator says that needs nothing but the canvas.
    pub(super) fn operate(
        &mut self,
        operator: &str,
        operands: &[Object],
        file: &File<'_>,
    ) -> Result<(), Trouble> {
        let number = |at: usize| operands.get(at).and_then(Object::number).unwrap_or(0.0);
        match operator {
            "q" if self.kept.len() < 256 => self.kept.push(self.state.clone()),
            "Q" => {
                if let Some(state) = self.kept.pop() {
                    self.state = state;
                }
            }
            "cm" => self.state.page = Matrix::of(operands).then(self.state.page),
            "BT" => self.start(Matrix::SAME),
            "Tm" => self.start(Matrix::of(operands)),
            "Td" => self.start(Matrix::moved(number(0), number(1)).then(self.line)),
            "TD" => {
                self.state.leading = -number(1);
                self.start(Matrix::moved(number(0), number(1)).then(self.line));
            }
            "TL" => self.state.leading = number(0),
            "Tc" => self.state.spacing = number(0),
            "Tw" => self.state.words = number(0),
            "Tz" => self.state.stretch = number(0) / 100.0,
            "Ts" => self.state.rise = number(0),
            "T*" => self.next_line(),
            "Tj" => self.show(operands.first(), file)?,
            "'" => {
                self.next_line();
                self.show(operands.first(), file)?;
            }
            "\"" => {
                (self.state.words, self.state.spacing) = (number(0), number(1));
                self.next_line();
                self.show(operands.get(2), file)?;
            }
            "TJ" => {
                for part in operands.first().map_or(&[][..], Object::array) {
                    if let Object::Number(back) = part {
                        let along = -back / 1_000.0 * self.state.size * self.state.stretch;
                        self.text = Matrix::moved(along, 0.0).then(self.text);
                    } else {
                        self.show(Some(part), file)?;
                    }
                }
            }
            "BMC" => self.marks.push(match operands {
                [Object::Name(tag), ..] if tag == "Artifact" => Mark::Artifact,
                _ => Mark::Plain,
            }),
            "EMC" => drop(self.marks.pop()),
            _ => {}
        }
        Ok(())
    }

    fn start(&mut self, matrix: Matrix) {
        self.line = matrix;
        self.text = matrix;
    }

    fn next_line(&mut self) {
        self.start(Matrix::moved(0.0, -self.state.leading).then(self.line));
    }

    fn show(&mut self, text: Option<&Object>, file: &File<'_>) -> Result<(), Trouble> {
        let (Some(Object::Text(text)), Some(font)) = (text, self.state.font.clone()) else {
            return Ok(());
        };
        file.budget.spend(text.len().saturating_mul(16))?;
        font.signs(text, |sign| self.place(sign, font.is_bold, file))
    }

    fn place(&mut self, sign: Sign, is_bold: bool, file: &File<'_>) -> Result<(), Trouble> {
        let state = &self.state;
        let at = Matrix::moved(0.0, state.rise).then(self.text).then(state.page);
        let width = sign.width * state.size * state.stretch;
        let words = if sign.is_space { state.words } else { 0.0 };
        let along = width + (state.spacing + words) * state.stretch;
        let size = state.size;
        self.text = Matrix::moved(along, 0.0).then(self.text);
        let mut text = sign.text;
        for mark in &mut self.marks {
            match mark {
                Mark::Plain => {}
                Mark::Artifact => return Ok(()),
                Mark::Says(said) => text = Some(std::mem::take(said)),
            }
        }
        self.pieces.add(Placed { at, width, size, text, is_bold }, file.budget)
    }
}
