//! How far the mirror has come, saved between processes. A lost cursor costs only reading: all conversations are looked
//! at again, and files that are right are not written. So the file is not flushed, and a broken one counts as none.

use std::fs;
use std::io;
use std::path::PathBuf;

use outlast_core::Rev;
use serde_json::{Value, json};

use crate::folder::{make_private_dir, open_private};

/// Raised when what the files hold changes: then all are written again.
const FORMAT: u64 = 1;

/// The saved cursor.
#[derive(Debug)]
pub(crate) struct Cursor {
    /// Where it is saved.
    pub(crate) dir: PathBuf,
}

impl Cursor {
    /// Where to go on in a store that has come to `latest`; the beginning when in doubt.
    pub(crate) fn read(&self, latest: Rev) -> Rev {
        let text = fs::read(self.dir.join("cursor.json")).unwrap_or_default();
        let saved: Value = serde_json::from_slice(&text).unwrap_or_default();
        let rev = saved["rev"].as_u64().filter(|_| saved["format"] == FORMAT).map(Rev);
        // A cursor ahead of the store is another store's: this one was put back from a copy.
        rev.filter(|rev| *rev <= latest).unwrap_or_default()
    }

    /// Saves it.
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
    fn a_cursor_that_cannot_be_trusted_is_the_beginning() {
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
