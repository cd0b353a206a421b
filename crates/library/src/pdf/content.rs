//! What a page draws, as far as it is text: its operators are followed, also into the forms it draws.

use std::borrow::Cow;
use std::collections::HashMap;
use std::rc::Rc;

use super::Trouble;
use super::budget::STREAM;
use super::canvas::{Canvas, Mark};
use super::file::File;
use super::font::Font;
use super::matrix::Matrix;
use super::object::{Dict, Object};
use super::pages::Page;
use super::pieces::Piece;
use super::reader::Reader;

/// Forms within forms.
const DEEPEST: u32 = 8;
/// Operands of one operator, with the values within them; no operator has as many.
const OPERANDS: (usize, u32) = (64, 100_000);
/// Forms that one page may draw; more are left out.
const FORMS: u32 = 1_000;
/// Fonts are forgotten when they have so many entries together.
const FONTS: usize = 400_000;

/// Reads the pages of one file.
pub(super) struct Reading<'a> {
    file: &'a File<'a>,
    fonts: HashMap<u32, Rc<Font>>,
    weight: usize,
}

impl<'a> Reading<'a> {
    pub(super) fn new(file: &'a File<'a>) -> Self {
        Self { file, fonts: HashMap::new(), weight: 0 }
    }

    /// The text of a page, piece by piece in the order it is drawn.
    pub(super) fn page(&mut self, page: Page) -> Result<Vec<Piece>, Trouble> {
        let content = self.content(&page.dict(self.file)?)?;
        let resources = page.resources(self.file)?;
        let mut canvas = Canvas::default();
        self.follow(&content, &resources, &mut canvas, 0)?;
        Ok(canvas.pieces.finish())
    }

    /// The streams of a page as one.
    fn content(&self, page: &Dict) -> Result<Vec<u8>, Trouble> {
        let contents = self.file.get(page, "Contents")?;
        let Object::Array(parts) = &*contents else {
            return Ok(self.file.unpacked(&contents)?.unwrap_or_default());
        };
        let mut content = Vec::new();
        for part in parts {
            content.extend(self.file.unpacked(part)?.unwrap_or_default());
            content.push(b'\n');
            if content.len() > STREAM {
                return Err(Trouble::TooMuch);
            }
        }
        Ok(content)
    }

    fn follow(
        &mut self,
        content: &[u8],
        resources: &Dict,
        canvas: &mut Canvas,
        depth: u32,
    ) -> Result<(), Trouble> {
        let mut reader = Reader::new(content, 0);
        let mut operands: Vec<Object> = Vec::new();
        let mut values = 0_u32;
        let mut from = 0;
        while let Some(object) = reader.object() {
            self.file.budget.spend(reader.at.saturating_sub(from))?;
            from = reader.at;
            let Object::Word(operator) = object else {
                values = values.saturating_add(reader.values());
                if operands.len() < OPERANDS.0 && values <= OPERANDS.1 {
                    operands.push(object);
                }
                continue;
            };
            match operator.as_str() {
                "Do" if depth < DEEPEST => self.form(&operands, resources, canvas, depth)?,
                "Tf" => {
                    canvas.state.font = self.font(&operands, resources)?;
                    canvas.state.size = operands.get(1).and_then(Object::number).unwrap_or(0.0);
                }
                "BDC" => {
                    let mark = self.mark(&operands, resources)?;
                    canvas.marks.push(mark);
                }
                "BI" => skip_picture(content, &mut reader),
                _ => canvas.operate(&operator, &operands, self.file)?,
            }
            canvas.marks.truncate(64);
            operands.clear();
            values = 0;
        }
        Ok(())
    }

    /// Looks a name up, and pays for the search: the page's own dictionaries were read once but are searched often.
    fn resource<'r>(
        &self,
        resources: &'r Dict,
        kind: &str,
        name: &Object,
    ) -> Result<Cow<'r, Object>, Trouble> {
        let Some(name) = name.name() else { return Ok(Cow::Owned(Object::Null)) };
        self.file.budget.spend(resources.0.len())?;
        let all = self.file.get(resources, kind)?;
        self.file.budget.spend(all.dict().map_or(0, |all| all.0.len()))?;
        Ok(match all {
            Cow::Borrowed(all) => {
                Cow::Borrowed(all.dict().map_or(&Object::Null, |all| all.get(name)))
            }
            Cow::Owned(all) => {
                Cow::Owned(all.dict().map_or(Object::Null, |all| all.get(name).clone()))
            }
        })
    }

    fn form(
        &mut self,
        operands: &[Object],
        resources: &Dict,
        canvas: &mut Canvas,
        depth: u32,
    ) -> Result<(), Trouble> {
        let Some(name) = operands.first() else { return Ok(()) };
        let form = self.resource(resources, "XObject", name)?;
        let form = self.file.resolved(&form)?;
        let Object::Stream(dict, _) = &*form else { return Ok(()) };
        if dict.get("Subtype").name() != Some("Form") {
            return Ok(());
        }
        canvas.forms += 1;
        if canvas.forms > FORMS {
            return Ok(());
        }
        let Some(content) = self.file.unpacked(&form)? else { return Ok(()) };
        let own = self.file.get(dict, "Resources")?;
        let matrix = Matrix::of(self.file.get(dict, "Matrix")?.array());
        let before = canvas.state.clone();
        let kept = std::mem::take(&mut canvas.kept);
        canvas.state.page = matrix.then(canvas.state.page);
        self.follow(&content, own.dict().unwrap_or(resources), canvas, depth + 1)?;
        canvas.state = before;
        canvas.kept = kept;
        Ok(())
    }

    fn font(&mut self, operands: &[Object], resources: &Dict) -> Result<Option<Rc<Font>>, Trouble> {
        let Some(name) = operands.first() else { return Ok(None) };
        let object = self.resource(resources, "Font", name)?;
        let number = if let Object::Ref(number) = &*object { Some(*number) } else { None };
        if let Some(font) = number.and_then(|number| self.fonts.get(&number)) {
            return Ok(Some(Rc::clone(font)));
        }
        let object = self.file.resolved(&object)?;
        let Some(dict) = object.dict() else { return Ok(None) };
        let font = Rc::new(Font::read(self.file, dict)?);
        self.file.budget.spend(font.weight().saturating_mul(32))?;
        if let Some(number) = number {
            self.weight += font.weight();
            if self.weight > FONTS {
                self.fonts.clear();
                self.weight = font.weight();
            }
            self.fonts.insert(number, Rc::clone(&font));
        }
        Ok(Some(font))
    }

    fn mark(&self, operands: &[Object], resources: &Dict) -> Result<Mark, Trouble> {
        let [Object::Name(tag), properties, ..] = operands else { return Ok(Mark::Plain) };
        if tag == "Artifact" {
            return Ok(Mark::Artifact);
        }
        let named = match properties {
            Object::Name(_) => self.resource(resources, "Properties", properties)?,
            properties => Cow::Borrowed(properties),
        };
        let properties = self.file.resolved(&named)?;
        let Some(dict) = properties.dict() else { return Ok(Mark::Plain) };
        self.file.budget.spend(dict.0.len())?;
        match &*self.file.get(dict, "ActualText")? {
            Object::Text(bytes) => {
                // A byte may become a sign of three.
                self.file.budget.spend(bytes.len().saturating_mul(4))?;
                Ok(Mark::Says(super::text_of(bytes)))
            }
            _ => Ok(Mark::Plain),
        }
    }
}

/// Goes over a picture in the content, whose bytes look like anything.
fn skip_picture(content: &[u8], reader: &mut Reader<'_>) {
    let rest = content.get(reader.at..).unwrap_or(&[]);
    let end = rest.windows(4).position(|four| {
        four[0].is_ascii_whitespace() && &four[1..3] == b"EI" && four[3].is_ascii_whitespace()
    });
    reader.at += end.map_or(rest.len(), |end| end + 3);
}
