//! The mirror's position in the changes, saved between processes. A lost cursor costs only reading: all
//! conversations are checked again, and correct files are not rewritten. So the file is not flushed, and a
//! damaged one counts as missing.

use std::fs;
use std::io;
use std::path::PathBuf;

use outlast_core::Rev;
use serde_json::{Value, json};

use crate::folder::{make_private_dir, open_private};

/// Incremented when the contents of the files change, so that all are written again.
const FORMAT: u64 = 1;

/// The saved cursor.
#[derive(Debug)]
pub(crate) struct Cursor {
    /// The directory of the saved cursor.
    pub(crate) dir: PathBuf,
}

impl Cursor {
    /// Returns the position to continue from in a store at revision `latest`; in doubt, the beginning.
    pub(crate) fn read(&self, latest: Rev) -> Rev {
        let text = fs::read(self.dir.join("cursor.json")).unwrap_or_default();
        let saved: Value = serde_json::from_slice(&text).unwrap_or_default();
        let rev = saved["rev"].as_u64().filter(|_| saved["format"] == FORMAT).map(Rev);
        // A cursor ahead of the store belongs to another store: this one was restored from a copy.
        rev.filter(|rev| *rev <= latest).unwrap_or_default()
    }

    pub(crate) fn write(&self, Rev(rev): Rev) -> io::Result<()> {
        make_private_dir(&self.dir)?;
        let temporary = self.dir.join("cursor.json.tmp");
        let text = json!({ "format": FORMAT, "rev": rev }).to_string();
        let mut file = open_private().create(true).truncate(true).open(&temporary)?;
        io::Write::write_all(&mut file, text.as_bytes())?;
        fs::rename(temporary, self.dir.join("cursor.json"))
    }
}

#[cfg(test)]
mod tests {
    use tempfile::TempDir;

    use super::*;

    #[test]
    fn an_unreliable_cursor_starts_from_the_beginning() {
        let dir = TempDir::new().unwrap();
        let cursor = Cursor { dir: dir.path().join("made") };
        assert_eq!(cursor.read(Rev(9)), Rev(0), "none");
        cursor.write(Rev(7)).unwrap();
        assert_eq!(cursor.read(Rev(9)), Rev(7));
        assert_eq!(cursor.read(Rev(6)), Rev(0), "of another store");
        for broken in ["", "{", "[]", "{\"rev\":7}", "{\"format\":0,\"rev\":7}", "{\"format\":1}"] {
            fs::write(dir.path().join("made/cursor.json"), broken).unwrap();
            assert_eq!(cursor.read(Rev(9)), Rev(0), "{broken}");
        }
    }
}
