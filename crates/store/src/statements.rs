//! SQL statements in `.sql` files. A line `-- name: x` precedes each statement.

/// The statement of this name in the `.sql` file next to the Rust file of a database: `sql!(sqlite::notices::add)`. A name that
/// does not exist fails the build.
macro_rules! sql {
    ($database:ident :: $file:ident :: $name:ident) => {
        const {
            $crate::statements::find_named(
                include_str!(concat!(
                    env!("CARGO_MANIFEST_DIR"),
                    "/src/",
                    stringify!($database),
                    "/",
                    stringify!($file),
                    ".sql"
                )),
                stringify!($name),
            )
        }
    };
}

const MARK: &[u8] = b"-- name: ";

/// Returns the statement of this name in the text of a file.
#[expect(clippy::panic, reason = "it runs only while the program is compiled")]
pub(crate) const fn find_named<'a>(file: &'a str, name: &str) -> &'a str {
    let bytes = file.as_bytes();
    let mut at = 0;
    while at < bytes.len() {
        let begin = next_line(bytes, at);
        if has(bytes, at, MARK)
            && begin == at + MARK.len() + name.len() + 1
            && has(bytes, at + MARK.len(), name.as_bytes())
        {
            let mut end = begin;
            while end < bytes.len() && !has(bytes, end, MARK) {
                end = next_line(bytes, end);
            }
            return file.split_at(end).0.split_at(begin).1.trim_ascii();
        }
        at = begin;
    }
    panic!("the file has no statement of this name")
}

const fn next_line(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && bytes[at] != b'\n' {
        at += 1;
    }
    if at < bytes.len() { at + 1 } else { at }
}

const fn has(bytes: &[u8], at: usize, part: &[u8]) -> bool {
    let mut n = 0;
    while n < part.len() {
        if at + n >= bytes.len() || bytes[at + n] != part[n] {
            return false;
        }
        n += 1;
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_statement_ends_where_the_next_begins() {
        let file = "-- name: one\nselect 1\n\n-- name: one_more\n-- Why.\nselect 2,\n  3\n";
        assert_eq!(find_named(file, "one"), "select 1");
        assert_eq!(find_named(file, "one_more"), "-- Why.\nselect 2,\n  3");
    }
}
