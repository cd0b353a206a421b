//! The events in strace's recording: writes, flushes and names of files in one folder, and the lines on standard
//! output, in their order.
//!
//! A write counts from its beginning, a flush from its end, and a flush covers the writes that had begun before it did.

use std::collections::HashMap;
use std::path::Path;

#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Event {
    /// The file exists, and is empty if `emptied`.
    Opened {
        file: String,
        emptied: bool,
    },
    Wrote {
        file: String,
        at: u64,
        bytes: Vec<u8>,
    },
    Appended {
        file: String,
        bytes: Vec<u8>,
    },
    Shortened {
        file: String,
        to: u64,
    },
    /// The disk has every write before the event `covers`.
    Flushed {
        file: String,
        covers: usize,
    },
    /// The disk has all names.
    NamesFlushed,
    Renamed {
        from: String,
        to: String,
    },
    Removed {
        file: String,
    },
    Said(String),
}

/// Parses a recording of `strace -f -y -xx`.
pub(crate) fn read(text: &[u8], folder: &Path) -> Vec<Event> {
    let text = std::str::from_utf8(text).expect("strace writes ASCII with -xx");
    let folder = folder.to_str().expect("a plain path").to_owned();
    let mut events = Vec::new();
    let mut begun: HashMap<&str, (String, usize)> = HashMap::new();
    for line in text.lines() {
        let Some((process, call)) = line.trim().split_once(char::is_whitespace) else { continue };
        let call = call.trim_start();
        if let Some(resumed) = call.strip_prefix("<... ") {
            let Some((start, covers)) = begun.remove(process) else { continue };
            let rest = resumed.split_once("resumed>").map_or("", |(_, rest)| rest);
            // A write was recorded at its beginning.
            if !is_write(&start) {
                take(&mut events, &folder, &format!("{start}{rest}"), covers);
            }
        } else if let Some(start) = call.strip_suffix("<unfinished ...>") {
            if is_write(start) {
                let covers = events.len();
                take(&mut events, &folder, start, covers);
            }
            begun.insert(process, (start.trim_end().to_owned(), events.len()));
        } else {
            let covers = events.len();
            take(&mut events, &folder, call, covers);
        }
    }
    events
}

fn is_write(call: &str) -> bool {
    ["pwrite64(", "write(", "ftruncate("].iter().any(|name| call.starts_with(name))
}

fn take(events: &mut Vec<Event>, folder: &str, call: &str, covers: usize) {
    let failed = call.rsplit_once(") = ").is_some_and(|(_, result)| result.starts_with('-'));
    let Some((name, rest)) = call.split_once('(') else { return };
    if failed {
        return;
    }
    let inside = |path: &str| {
        let rest = path.strip_prefix(folder)?.strip_prefix('/')?;
        Some(rest.to_owned())
    };
    // The file behind a descriptor: `5<\x2f...>` or `5</...>`.
    let opened = rest
        .split_once('<')
        .and_then(|(_, rest)| rest.split_once('>'))
        .map(|(path, _)| plain(path));
    let file = opened.as_deref().and_then(inside);
    let texts = || rest.split('"').skip(1).step_by(2);
    let number = |back: usize| {
        let arguments = rest.rsplit_once(')').map_or(rest, |(arguments, _)| arguments);
        let last = arguments.trim_end().trim_end_matches(',').rsplit(", ").nth(back);
        last.and_then(|number| number.trim().parse::<u64>().ok())
    };
    match name {
        "write" if rest.starts_with("1<") || rest.starts_with("1,") => {
            let said = texts().next().map(bytes).unwrap_or_default();
            events.push(Event::Said(
                String::from_utf8(said).expect("plain text").trim_end().to_owned(),
            ));
        }
        "pwrite64" => {
            if let (Some(file), Some(at)) = (file, number(0)) {
                events.push(Event::Wrote {
                    file,
                    at,
                    bytes: texts().next().map(bytes).unwrap_or_default(),
                });
            }
        }
        "write" => {
            if let Some(file) = file {
                events.push(Event::Appended {
                    file,
                    bytes: texts().next().map(bytes).unwrap_or_default(),
                });
            }
        }
        "ftruncate" => {
            if let (Some(file), Some(to)) = (file, number(0)) {
                events.push(Event::Shortened { file, to });
            }
        }
        "fsync" | "fdatasync" => match file {
            Some(file) => events.push(Event::Flushed { file, covers }),
            None if opened.as_deref() == Some(folder) => events.push(Event::NamesFlushed),
            None => {}
        },
        "open" | "openat" => {
            let path = texts().next().map(plain);
            if let Some(file) = path.as_deref().and_then(inside)
                && rest.contains("O_CREAT")
            {
                events.push(Event::Opened { file, emptied: rest.contains("O_TRUNC") });
            }
        }
        "rename" | "renameat" | "renameat2" => {
            let mut paths = texts().map(plain);
            if let (Some(from), Some(to)) = (paths.next(), paths.next())
                && let (Some(from), Some(to)) = (inside(&from), inside(&to))
            {
                events.push(Event::Renamed { from, to });
            }
        }
        "unlink" | "unlinkat" => {
            if let Some(file) = texts().next().map(plain).as_deref().and_then(inside) {
                events.push(Event::Removed { file });
            }
        }
        other => panic!("a call that is not understood: {other}"),
    }
}

/// Parses bytes as strace writes them with -xx: `\x2f\x00`.
fn bytes(text: &str) -> Vec<u8> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => digit - b'0',
        b'a'..=b'f' => digit - b'a' + 10,
        other => panic!("no hexadecimal digit: {other}"),
    };
    text.as_bytes()
        .chunks(4)
        .map(|four| match four {
            [b'\\', b'x', high, low] => digit(*high) * 16 + digit(*low),
            other => panic!("not as -xx writes it: {other:?}"),
        })
        .collect()
}

fn plain(text: &str) -> String {
    if text.starts_with("\\x") {
        return String::from_utf8(bytes(text)).expect("a plain path");
    }
    text.to_owned()
}
