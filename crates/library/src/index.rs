//! The search index: the passages and the words in them. There is one SQLite file per set of folders, shared by
//! any number of processes. It is only a cache.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, ErrorCode, OpenFlags, Row, params};

use super::document::{HEADING_SEPARATOR, PassageKind, Unit};
use super::words;

/// Incremented whenever the tables or the parsers change: an index with another version is rebuilt.
const VERSION: i64 = 5;
/// The maximum time to wait for another process that writes.
const BUSY: Duration = Duration::from_secs(5);

const TABLES: &str = "
    DROP TABLE IF EXISTS vocabulary; DROP TABLE IF EXISTS words; DROP TABLE IF EXISTS passages; DROP TABLE IF EXISTS files;
    CREATE TABLE files (
        id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, size INTEGER NOT NULL, modified INTEGER NOT NULL,
        converter TEXT NOT NULL, title TEXT, unit INTEGER NOT NULL, skipped INTEGER NOT NULL);
    CREATE TABLE passages (
        id INTEGER PRIMARY KEY, file INTEGER NOT NULL, section INTEGER NOT NULL, block INTEGER NOT NULL,
        line INTEGER NOT NULL, kind INTEGER NOT NULL, headings TEXT NOT NULL, text TEXT NOT NULL);
    CREATE INDEX passages_by_block ON passages (file, block);
    CREATE VIRTUAL TABLE words USING fts5 (
        name, title, headings, body, tokenize = 'unicode61 remove_diacritics 2');
    CREATE VIRTUAL TABLE vocabulary USING fts5vocab (words, row);";

/// The location of an index.
#[derive(Clone, Copy, Debug)]
pub(super) enum IndexPlace<'a> {
    File(&'a Path),
    Memory,
}

/// A passage that contains a word, and its score.
#[derive(Clone, Copy, Debug)]
pub(super) struct PassageMatch {
    pub(super) passage: i64,
    pub(super) file: i64,
    pub(super) section: u32,
    /// BM25; higher is better.
    pub(super) score: f64,
}

/// A passage with all its stored fields.
#[derive(Clone, Debug)]
pub(super) struct StoredPassage {
    pub(super) id: i64,
    pub(super) file: i64,
    pub(super) name: String,
    pub(super) title: Option<String>,
    pub(super) block: u32,
    pub(super) unit: Unit,
    pub(super) line: u32,
    pub(super) kind: PassageKind,
    pub(super) headings: String,
    pub(super) text: String,
}

impl StoredPassage {
    /// The heading above it, or the title of its file.
    pub(super) fn heading(&self) -> Option<&str> {
        let nearest = self.headings.rsplit(HEADING_SEPARATOR).next();
        nearest.filter(|heading| !heading.is_empty()).or(self.title.as_deref())
    }
}

/// An open index.
pub(super) struct Index {
    pub(super) connection: Connection,
}

impl Index {
    /// Opens the index and creates it if necessary.
    pub(super) fn open(place: IndexPlace<'_>) -> rusqlite::Result<Self> {
        let connection = connect(place)?;
        connection.busy_timeout(BUSY)?;
        connection.set_prepared_statement_cache_capacity(32);
        // Memory for the first reading of a large library; released when the question is answered.
        connection.execute_batch("PRAGMA cache_size = -65536;")?;
        if let IndexPlace::File(_) = place {
            // A lost commit costs a second reading, never a wrong answer.
            connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = NORMAL;")?;
        }
        let mut index = Self { connection };
        index.prepare()?;
        Ok(index)
    }

    fn prepare(&mut self) -> rusqlite::Result<()> {
        let version = |connection: &Connection| {
            connection.query_row("PRAGMA user_version", [], |row| row.get::<_, i64>(0))
        };
        if version(&self.connection)? == VERSION {
            return Ok(());
        }
        let transaction =
            self.connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
        // Another process may have created it meanwhile.
        if version(&transaction)? != VERSION {
            transaction.execute_batch(TABLES)?;
            transaction.pragma_update(None, "user_version", VERSION)?;
        }
        transaction.commit()
    }

    /// Returns the number of passages.
    pub(super) fn passages(&self) -> rusqlite::Result<usize> {
        let count: i64 =
            self.connection.query_row("SELECT count(*) FROM passages", [], |row| row.get(0))?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    /// Returns the number of passages that have searchable words.
    pub(super) fn findable(&self) -> rusqlite::Result<f64> {
        self.connection.query_row("SELECT count(*) FROM words_docsize", [], |row| row.get(0))
    }

    /// Returns every passage that matches an expression; names and headings weigh more than the text.
    pub(super) fn matches(&self, expression: &str) -> rusqlite::Result<Vec<PassageMatch>> {
        let mut statement = self.connection.prepare_cached(
            "SELECT p.id, p.file, p.section, -bm25(words, 2.0, 2.0, 3.0, 1.0)
             FROM words JOIN passages p ON p.id = words.rowid WHERE words MATCH ?1",
        )?;
        let row = |row: &Row<'_>| {
            Ok(PassageMatch {
                passage: row.get(0)?,
                file: row.get(1)?,
                section: row.get(2)?,
                score: row.get(3)?,
            })
        };
        statement.query_map(params![expression], row)?.collect()
    }

    /// Returns the words of the library that are forms of this word, including the word itself if it occurs.
    pub(super) fn forms(&self, word: &str) -> rusqlite::Result<Vec<String>> {
        let stem = words::stem(word);
        // All forms start like their stem, except for a last letter that may change: "retry", "retries".
        let start = stem.strip_suffix('i').unwrap_or(&stem);
        let mut statement = self
            .connection
            .prepare_cached("SELECT term FROM vocabulary WHERE term >= ?1 AND term < ?2")?;
        let all =
            statement.query_map(params![start, format!("{start}\u{10ffff}")], |row| row.get(0))?;
        let mut forms: Vec<String> = all.collect::<rusqlite::Result<_>>()?;
        forms.retain(|form| words::stem(form) == stem);
        forms.extend(words::irregular(&stem).map(str::to_owned));
        Ok(forms)
    }

    pub(super) fn passage(&self, id: i64) -> rusqlite::Result<StoredPassage> {
        let sql = format!("{STORED} WHERE p.id = ?1");
        self.connection.prepare_cached(&sql)?.query_row(params![id], read_passage)
    }

    /// Returns the passages of a file in their order.
    pub(super) fn passages_of(&self, name: &str) -> rusqlite::Result<Vec<StoredPassage>> {
        let sql = format!("{STORED} WHERE f.name = ?1 ORDER BY p.id");
        self.connection.prepare_cached(&sql)?.query_map(params![name], read_passage)?.collect()
    }

    /// Returns the passages of a block in the order of the file.
    pub(super) fn block(&self, file: i64, block: u32) -> rusqlite::Result<Vec<StoredPassage>> {
        let sql = format!("{STORED} WHERE p.file = ?1 AND p.block = ?2 ORDER BY p.id");
        self.connection
            .prepare_cached(&sql)?
            .query_map(params![file, block], read_passage)?
            .collect()
    }
}

const STORED: &str =
    "SELECT p.id, p.file, f.name, f.title, p.block, p.line, p.kind, p.headings, p.text, f.unit
     FROM passages p JOIN files f ON f.id = p.file";

fn read_passage(row: &Row<'_>) -> rusqlite::Result<StoredPassage> {
    Ok(StoredPassage {
        id: row.get(0)?,
        file: row.get(1)?,
        name: row.get(2)?,
        title: row.get(3)?,
        block: row.get(4)?,
        line: row.get(5)?,
        kind: PassageKind::from_code(row.get(6)?),
        headings: row.get(7)?,
        text: row.get(8)?,
        unit: Unit::from_code(row.get(9)?),
    })
}

/// Returns true if the error means that the index should be deleted and rebuilt in the same place.
pub(super) fn is_damage(error: &rusqlite::Error) -> bool {
    match error.sqlite_error_code() {
        Some(
            ErrorCode::DatabaseCorrupt
            | ErrorCode::NotADatabase
            // A table or column is missing: the file belongs to another program or was only half created.
            | ErrorCode::Unknown,
        ) => true,
        Some(_) => false,
        // A value has a type that we do not store.
        None => true,
    }
}

/// Removes an index with its working files. The log goes first, so that a new file never picks it up.
pub(super) fn remove(path: &Path) -> io::Result<()> {
    for ending in ["-wal", "-shm", ""] {
        match fs::remove_file(beside(path, ending)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

#[expect(
    clippy::disallowed_methods,
    reason = "the library's index is a separate cache, not the job store"
)]
fn connect(place: IndexPlace<'_>) -> rusqlite::Result<Connection> {
    match place {
        IndexPlace::Memory => Connection::open_in_memory(),
        IndexPlace::File(path) => {
            // If this fails, the open below reports the error.
            drop(make_private(path));
            let flags = OpenFlags::SQLITE_OPEN_READ_WRITE
                | OpenFlags::SQLITE_OPEN_CREATE
                | OpenFlags::SQLITE_OPEN_NO_MUTEX;
            Connection::open_with_flags(path, flags)
        }
    }
}

/// Creates the file and its directory readable only by their owner, because they contain the text of the
/// library.
fn make_private(path: &Path) -> io::Result<()> {
    if let Some(parent) = path.parent() {
        fs::DirBuilder::new().recursive(true).mode(0o700).create(parent)?;
    }
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map(drop)
}
