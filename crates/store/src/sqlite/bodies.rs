//! A job's result and the provider's raw response. Values that may be megabytes have separate columns and are written and
//! read in place; as JSON or as parameters they would be copied several times.

use outlast_core::Output;
use rusqlite::blob::ZeroBlob;
use rusqlite::{Connection, MAIN_DB};

use super::fault::Fault;
use super::sql;
use crate::columns::{LONG_TEXT, join_text, json, split_text};

/// The size of SQLite's cache while a long value is written: 256 KiB. A negative value means KiB to SQLite.
const SMALL_CACHE: i64 = -256;

/// Writes the result and the raw response to a job's row.
pub(super) fn write(
    connection: &Connection,
    seq: i64,
    output: Option<&Output>,
    raw: Option<&[u8]>,
) -> Result<(), Fault> {
    let (output, text) = output.map(split_text).unzip();
    let output = output.map(|output| json(&*output)).transpose()?;
    let text = text.flatten().map(str::as_bytes);
    let fill = || -> Result<(), Fault> {
        let room = |bytes: &[u8]| ZeroBlob(bytes.len() as u64);
        let update = sql!(sqlite::bodies::write);
        sql::execute(connection, update, (seq, output, raw.map(room), text.map(room)))?;
        for (column, bytes) in [("raw", raw), ("text", text)] {
            let Some(bytes) = bytes else { continue };
            let mut blob = connection.blob_open(MAIN_DB, "bodies", column, seq, false)?;
            blob.write_all_at(bytes, 0)?;
        }
        Ok(())
    };
    if [raw, text].into_iter().flatten().all(|bytes| bytes.len() < LONG_TEXT) {
        return fill();
    }
    // SQLite keeps a cache that has grown by megabytes for one job. A small cache writes its pages to the log when it is
    // full.
    let pages: i64 = connection.pragma_query_value(None, "cache_size", |row| row.get(0))?;
    connection.pragma_update(None, "cache_size", SMALL_CACHE)?;
    let filled = fill();
    connection.pragma_update(None, "cache_size", pages)?;
    filled
}

/// Puts the text back into a long report. Returns `None` if the bytes are not text or the result is not a report.
pub(super) fn with_text(
    connection: &Connection,
    seq: i64,
    output: Output,
) -> Result<Option<Output>, Fault> {
    let blob = connection.blob_open(MAIN_DB, "bodies", "text", seq, true)?;
    let mut bytes = vec![0; blob.len()];
    blob.read_at_exact(&mut bytes, 0)?;
    Ok(join_text(output, bytes))
}
