//! Arbitrary bytes: the committed corpus of the fuzz targets and mutations of it, by fixed seeds.

use std::path::PathBuf;

use outlast_provider::fuzzing;

#[path = "../../../../fuzz/sse_check.rs"]
mod sse_check;

/// Mutations of each corpus.
const ROUNDS: usize = 1_000;

/// Mutations that make a valid text invalid.
const TOKENS: [&str; 12] = [
    "null",
    "{}",
    "[]",
    "\"",
    "\\u",
    "\u{1f600}",
    "-1",
    "1e999",
    "18446744073709551616",
    "\r",
    "\n\n",
    "data: ",
];

fn corpus(target: &str) -> Vec<Vec<u8>> {
    let path =
        PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus")).join(target);
    let mut files: Vec<_> =
        std::fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 3, "{} has too little to begin with", path.display());
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

fn mutated(random: &mut fastrand::Rng, corpus: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = random.choice(corpus).unwrap().clone();
    for _ in 0..random.usize(1..6) {
        let at = random.usize(0..=bytes.len());
        let end = (at + random.usize(0..40)).min(bytes.len());
        match random.u8(0..6) {
            0 => drop(bytes.drain(at..end)),
            1 => bytes.extend_from_within(at..end),
            2 => bytes.truncate(at),
            3 => drop(bytes.splice(at..end, random.choice(TOKENS).unwrap().bytes())),
            4 => {
                let other = random.choice(corpus).unwrap();
                let part = &other[random.usize(0..=other.len())..];
                drop(bytes.splice(at..end, part.iter().copied()));
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = random.u8(..);
                }
            }
        }
    }
    bytes
}

fn each(target: &str, check: impl Fn(&[u8])) {
    let corpus = corpus(target);
    corpus.iter().for_each(|bytes| check(bytes));
    let mut random = fastrand::Rng::with_seed(2026);
    for _ in 0..ROUNDS {
        check(&mutated(&mut random, &corpus));
    }
}

#[test]
fn events_are_the_same_however_odd_bytes_are_cut_and_little_is_held() {
    each("sse", |bytes| assert_eq!(sse_check::check(bytes), Ok(())));
}

#[test]
fn no_event_is_too_odd() {
    each("event", |bytes| assert_eq!(fuzzing::event(bytes), Ok(())));
}

#[test]
fn no_body_is_too_odd_and_every_source_has_its_own_number() {
    each("response", |bytes| assert_eq!(fuzzing::response(bytes), Ok(())));
}

#[test]
fn no_answer_of_sonar_or_of_a_search_is_too_odd() {
    each("sonar", |bytes| assert_eq!(fuzzing::sonar(bytes), Ok(())));
}

/// Depth is refused, not followed until the stack ends.
#[test]
fn nesting_without_end_is_refused() {
    for open in ["[", "{\"output\":", "{\"output\":[{\"content\":["] {
        let bytes = open.repeat(50_000);
        assert_eq!(fuzzing::response(bytes.as_bytes()), Ok(()));
        assert_eq!(fuzzing::event(bytes.as_bytes()), Ok(()));
        assert_eq!(fuzzing::sonar(bytes.as_bytes()), Ok(()));
    }
}

/// A10: what was paid for is found behind, and among, more items than any honest answer has.
#[test]
fn a_report_is_found_however_many_items_come_before_it() {
    const MANY: usize = 20_000;
    let message = |parts: &str| format!(r#"{{"type":"message","content":[{parts}]}}"#);
    let (part, last) = (r#"{"text":"a"}"#, r#"{"text":"The report."}"#);
    let cases = [
        (format!("{}{}", "{},".repeat(MANY), message(last)), "The report.".to_owned()),
        (format!("{}{}", "7,".repeat(MANY), message(last)), "The report.".to_owned()),
        (
            format!("{}{}", format!("{},", message(part)).repeat(MANY), message(last)),
            format!("{}The report.", "a\n\n".repeat(MANY)),
        ),
        (
            message(&format!("{}{last}", format!("{part},").repeat(MANY))),
            format!("{}The report.", "a".repeat(MANY)),
        ),
    ];
    for (output, expected) in cases {
        let response = format!(r#"{{"status":"completed","output":[{output}]}}"#);
        let event = format!(r#"{{"type":"response.completed","response":{response}}}"#);
        let text = fuzzing::follow(format!("data: {event}\n\n").as_bytes(), event.len());
        assert!(text == Some(expected), "{}...", &output[..40]);
    }
}

/// The most memory this process has held, in bytes.
#[cfg(target_os = "linux")]
fn most_held() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<usize>().unwrap() * 1024
}

/// Set in the process that measures: other tests of this binary hold their own memory.
#[cfg(target_os = "linux")]
const MEASURES: &str = "OUTLAST_TEST_MEASURES_MEMORY";

/// Runs itself again, alone in a process.
#[cfg(target_os = "linux")]
#[test]
#[expect(clippy::disallowed_methods, reason = "this is how the two processes are distinguished")]
fn megabytes_of_nothing_take_little_more_memory_than_they_are() {
    if std::env::var_os(MEASURES).is_some() {
        return measure_megabytes_of_nothing();
    }
    let this = "fuzzed::megabytes_of_nothing_take_little_more_memory_than_they_are";
    let child = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", this, "--nocapture"])
        .env(MEASURES, "1")
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&child.stdout);
    let errors = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success() && said.contains("1 passed"), "{said}{errors}");
}

/// Bodies that may be read, full of items too small to be anything: what is made of them must not be many times
/// their text.
#[cfg(target_os = "linux")]
fn measure_megabytes_of_nothing() {
    const MEGABYTE: usize = 1 << 20;
    let full = |before: &str, item: &str, after: &str| {
        let items = format!("{item},").repeat(6 * MEGABYTE / (item.len() + 1));
        format!("{before}{items}{item}{after}")
    };
    type Target = fn(&[u8]) -> Result<(), String>;
    let cases: [(Target, String); 12] = [
        (fuzzing::response, full(r#"{"id":"r","output":["#, "1", "]}")),
        (
            fuzzing::response,
            full(r#"{"output":["#, r#"{"type":"message","content":[{"text":"a"}]}"#, "]}"),
        ),
        (
            fuzzing::response,
            full(r#"{"output":[{"type":"message","content":["#, r#"{"text":"a"}"#, "]}]}"),
        ),
        (
            fuzzing::response,
            full(r#"{"output":[{"type":"search_results","results":["#, "{}", "]}]}"),
        ),
        (fuzzing::response, full(r#"{"usage":{"tool_calls_details":["#, "[]", "]}}")),
        (fuzzing::response, full(r#"{"status":"failed","error":{"code":["#, "1", "]}}")),
        (
            fuzzing::event,
            full(r#"{"type":"response.completed","response":{"output":["#, "{}", "]}}"),
        ),
        (fuzzing::sonar, full(r#"{"choices":["#, "{}", "]}")),
        (
            fuzzing::sonar,
            full(r#"{"choices":[{"message":{"content":"x"}}],"citations":["#, "[]", "]}"),
        ),
        (fuzzing::sonar, full(r#"{"choices":[],"search_results":["#, "{}", "]}")),
        (fuzzing::sonar, full(r#"{"choices":[],"error":["#, "1", "]}")),
        (fuzzing::sonar, full(r#"{"results":["#, "{}", "]}")),
    ];
    let before = most_held();
    for (target, body) in &cases {
        assert_eq!(target(body.as_bytes()), Ok(()));
        let more = most_held() - before;
        // The text itself is copied if it is kept as it came.
        assert!(more < 32 * MEGABYTE, "{} MB for {}...", more / MEGABYTE, &body[..40]);
    }
}
