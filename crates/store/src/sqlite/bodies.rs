//! What a job leaves behind: its result and the provider's last word. What may be megabytes is kept as it is, in a place
//! of its own, and written and read there; as JSON or as a parameter it would be copied several times on its way.

use std::borrow::Cow;

use outlast_core::{Body, Output};
use rusqlite::blob::ZeroBlob;
use rusqlite::{Connection, MAIN_DB};

use super::fault::Fault;
use super::rows;

/// The text of a report is kept apart from so many bytes on.
const LONG: usize = 64 * 1024;
/// Memory for pages while a long text or word is written, in SQLite's way to say kilobytes.
const FEW_PAGES: i64 = -256;

/// Writes them to a job's row.
pub(super) fn write(
    connection: &Connection,
    seq: i64,
    output: Option<&Output>,
    raw: Option<&[u8]>,
) -> Result<(), Fault> {
    let (output, text) = output.map(parted).unzip();
    let output = output.map(|output| rows::json(&*output)).transpose()?;
    let text = text.flatten().map(str::as_bytes);
    let fill = || -> Result<(), Fault> {
        let room = |bytes: &[u8]| ZeroBlob(bytes.len() as u64);
        connection
            .prepare_cached("UPDATE bodies SET output = ?2, raw = ?3, text = ?4 WHERE job = ?1")?
            .execute((seq, output, raw.map(room), text.map(room)))?;
        for (column, bytes) in [("raw", raw), ("text", text)] {
            if let Some(bytes) = bytes {
                connection
                    .blob_open(MAIN_DB, "bodies", column, seq, false)?
                    .write_all_at(bytes, 0)?;
            }
        }
        Ok(())
    };
    if [raw, text].into_iter().flatten().all(|bytes| bytes.len() < LONG) {
        return fill();
    }
    // A cache that has taken in megabytes for one job keeps them; so most pages go to the log as they are filled.
    let pages: i64 = connection.pragma_query_value(None, "cache_size", |row| row.get(0))?;
    connection.pragma_update(None, "cache_size", FEW_PAGES)?;
    let filled = fill();
    connection.pragma_update(None, "cache_size", pages)?;
    filled
}

/// The text of a long report, and the result without it.
fn parted(output: &Output) -> (Cow<'_, Output>, Option<&str>) {
    match &output.body {
        Body::Report { text, sources, thinking, related } if text.len() >= LONG => {
            let body = Body::Report {
                text: String::new(),
                sources: sources.clone(),
                thinking: thinking.clone(),
                related: related.clone(),
            };
            let Output { body: _, model, usage, cost } = output;
            let (model, usage, cost) = (model.clone(), usage.clone(), *cost);
            (Cow::Owned(Output { body, model, usage, cost }), Some(text))
        }
        Body::Report { .. } | Body::Tool { .. } => (Cow::Borrowed(output), None),
    }
}

/// Gives a long report its text again; `None` when it is no text, or the result no report.
pub(super) fn with_text(
    connection: &Connection,
    seq: i64,
    mut output: Output,
) -> Result<Option<Output>, Fault> {
    let place = connection.blob_open(MAIN_DB, "bodies", "text", seq, true)?;
    let mut bytes = vec![0; place.len()];
    place.read_at_exact(&mut bytes, 0)?;
    Ok(match (&mut output.body, String::from_utf8(bytes)) {
        (Body::Report { text, .. }, Ok(read)) => {
            *text = read;
            Some(output)
        }
        (Body::Report { .. } | Body::Tool { .. }, _) => None,
    })
}
