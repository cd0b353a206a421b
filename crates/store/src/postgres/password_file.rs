//! Passwords from a file in the format of `.pgpass`: `host:port:database:user:password`, `*` for any, `\` before `:` and `\`.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// The connection that needs a password.
pub(super) struct PasswordQuery {
    pub(super) host: String,
    pub(super) port: String,
    pub(super) database: String,
    pub(super) user: String,
}

/// Returns the password of the first line that matches. Like libpq, ignores a file that others may read, with a warning.
pub(super) fn find(file: &Path, wanted: &PasswordQuery) -> Option<String> {
    let metadata = fs::metadata(file).ok()?;
    if !metadata.is_file() {
        return None;
    }
    if metadata.permissions().mode() & 0o077 != 0 {
        let file = file.display();
        tracing::warn!(%file, "ignored the password file because others may read it; run `chmod 600` on it");
        return None;
    }
    let text = fs::read_to_string(file).ok()?;
    text.lines().find_map(|line| password(line, wanted))
}

fn password(line: &str, wanted: &PasswordQuery) -> Option<String> {
    if line.starts_with('#') {
        return None;
    }
    let (fields, password) = fields(line)?;
    let wanted = [&wanted.host, &wanted.port, &wanted.database, &wanted.user];
    let fits = fields.iter().zip(wanted).all(|(field, wanted)| match field {
        Field::Any => true,
        Field::Text(text) => text == wanted,
    });
    fits.then_some(password)
}

enum Field {
    Any,
    Text(String),
}

/// Splits a line into its first four fields and the password, which may contain further colons.
fn fields(line: &str) -> Option<([Field; 4], String)> {
    let mut rest = line.chars();
    let mut next = || {
        let (mut text, mut is_escaped) = (String::new(), false);
        loop {
            match rest.next()? {
                '\\' => {
                    text.push(rest.next()?);
                    is_escaped = true;
                }
                ':' if text == "*" && !is_escaped => return Some(Field::Any),
                ':' => return Some(Field::Text(text)),
                other => text.push(other),
            }
        }
    };
    let fields = [next()?, next()?, next()?, next()?];
    let (mut password, mut is_escaped) = (String::new(), false);
    for character in rest {
        match character {
            '\\' if !is_escaped => is_escaped = true,
            other => {
                password.push(other);
                is_escaped = false;
            }
        }
    }
    Some((fields, password))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted() -> PasswordQuery {
        PasswordQuery {
            host: "db".to_owned(),
            port: "5432".to_owned(),
            database: "jobs".to_owned(),
            user: "ann".to_owned(),
        }
    }

    #[test]
    fn f1_the_first_line_that_fits_has_the_password() {
        let cases = [
            ("db:5432:jobs:ann:hunter2", Some("hunter2")),
            ("*:*:*:ann:hunter2", Some("hunter2")),
            ("\\*:*:*:ann:hunter2", None),
            ("db:5432:jobs:bob:hunter2", None),
            ("db:5432:jobs:ann:a\\:b\\\\c", Some("a:b\\c")),
            ("db:5432:jobs:ann:a:b", Some("a:b")),
            ("# db:5432:jobs:ann:hunter2", None),
            ("db:5432:jobs:ann", None),
            ("", None),
        ];
        for (line, expected) in cases {
            assert_eq!(password(line, &wanted()).as_deref(), expected, "{line}");
        }
    }

    #[test]
    fn f1_a_password_file_that_others_may_read_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pgpass");
        fs::write(&file, "other:1:x:y:z\n*:*:*:*:hunter2\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
        assert_eq!(find(&file, &wanted()), None);
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
        assert_eq!(find(&file, &wanted()).as_deref(), Some("hunter2"));
        assert_eq!(find(&folder.path().join("none"), &wanted()), None);
    }
}
