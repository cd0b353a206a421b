//! Writes plain text as a small PDF file with a text layer.

use std::fmt::Write as _;

const LINES_PER_PAGE: usize = 54;
const CHARS_PER_LINE: usize = 88;
/// Objects before those of the pages: the catalog, the list of pages and the font.
const FIRST_PAGE_OBJECT: usize = 4;

/// Returns the file.
pub(super) fn write(text: &str) -> Vec<u8> {
    let lines: Vec<String> = text.lines().flat_map(wrap).collect();
    let sheets: Vec<&[String]> = lines.chunks(LINES_PER_PAGE).collect();
    let numbers = (0..sheets.len()).map(|nth| FIRST_PAGE_OBJECT + 2 * nth);
    let kids: String = numbers.map(|number| format!("{number} 0 R ")).collect();
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        format!("<< /Type /Pages /Kids [{kids}] /Count {} >>", sheets.len()),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding >>"
            .to_owned(),
    ];
    for sheet in sheets {
        let mut stream = "BT /F1 10 Tf 50 790 Td 14 TL\n".to_owned();
        for line in sheet {
            let line = line.replace('\\', "\\\\").replace('(', "\\(").replace(')', "\\)");
            // Writing to a string cannot fail.
            _ = writeln!(stream, "({line}) Tj T*");
        }
        stream.push_str("ET");
        let contents = objects.len() + 2;
        objects.push(format!(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 595 842] /Resources << /Font << /F1 3 0 R >> >> /Contents {contents} 0 R >>"
        ));
        objects.push(format!("<< /Length {} >>\nstream\n{stream}\nendstream", stream.len()));
    }
    assemble(&objects)
}

fn assemble(objects: &[String]) -> Vec<u8> {
    let mut file = "%PDF-1.4\n".to_owned();
    let mut places = Vec::new();
    for (nth, object) in objects.iter().enumerate() {
        places.push(file.len());
        _ = writeln!(file, "{} 0 obj\n{object}\nendobj", nth + 1);
    }
    let table = file.len();
    _ = write!(file, "xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
    for place in places {
        _ = writeln!(file, "{place:010} 00000 n ");
    }
    let count = objects.len() + 1;
    _ = write!(file, "trailer\n<< /Size {count} /Root 1 0 R >>\nstartxref\n{table}\n%%EOF\n");
    file.into_bytes()
}

fn wrap(line: &str) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in line.split(' ') {
        let last = lines.len() - 1;
        if !lines[last].is_empty() && lines[last].len() + word.len() >= CHARS_PER_LINE {
            lines.push(word.to_owned());
            continue;
        }
        if !lines[last].is_empty() {
            lines[last].push(' ');
        }
        lines[last].push_str(word);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_points_to_the_objects() {
        let file = String::from_utf8(write(&"A line (with brackets).\n".repeat(60))).unwrap();
        let table = file.rfind("xref\n0").unwrap();
        assert!(file.ends_with(&format!("startxref\n{table}\n%%EOF\n")));
        for (nth, row) in file[table..].lines().skip(3).take(7).enumerate() {
            let place: usize = row[..10].parse().unwrap();
            assert!(file[place..].starts_with(&format!("{} 0 obj", nth + 1)), "{row}");
        }
    }
}
