//! The output of a command: the result made of standard output; progress for the client, and the rest for the operator, from
//! standard error.

use outlast_core::{Body, Cost, Output, Progress, Usage};
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt};

/// Longer results are cut: a job's result is kept whole in the store and in memory.
const LONGEST: usize = 16 * 1024 * 1024;

/// Output as it comes.
#[derive(Default)]
pub(super) struct Stdout {
    kept: Vec<u8>,
    dropped: u64,
}

impl Stdout {
    /// Reads to the end. Beyond the limit it goes on reading, so that the child is not held up, and keeps nothing.
    pub(super) async fn collect(&mut self, mut pipe: impl AsyncRead + Unpin) {
        let mut piece = vec![0; 64 * 1024];
        // A broken pipe is an end like any other; the end of the child says more.
        while let Ok(read @ 1..) = pipe.read(&mut piece).await {
            let room = LONGEST.saturating_sub(self.kept.len()).min(read);
            self.kept.extend_from_slice(&piece[..room]);
            self.dropped += (read - room) as u64;
        }
    }

    /// The result of a command that ended well.
    pub(super) fn into_output(self) -> Output {
        let Self { kept, dropped } = self;
        let (mut text, bytes) = match String::from_utf8(kept) {
            Ok(text) => (text, None),
            Err(error) => {
                let bytes = error.as_bytes();
                (String::from_utf8_lossy(bytes).into_owned(), Some(as_characters(bytes)))
            }
        };
        let structured = if dropped == 0 { object(&text) } else { None };
        if dropped > 0 {
            text.push_str(&format!(
                "\n[outlast: the output was cut here; {dropped} more bytes were not kept, {LONGEST} are the limit]\n"
            ));
        }
        let mut block = json!({ "type": "text", "text": text });
        if let Some(bytes) = bytes.filter(|_| dropped == 0) {
            block["_meta"] = json!({ BYTES: bytes });
        }
        Output {
            body: Body::Tool { content: vec![block], structured, is_error: false },
            model: None,
            usage: Usage::default(),
            cost: Cost::Unknown,
        }
    }
}

/// The key under which a block keeps output that is not UTF-8: each byte as the character with its number.
const BYTES: &str = "outlast/bytes";

fn as_characters(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

/// The bytes that a command wrote, from a block of text in its result.
pub fn output_bytes(block: &Value) -> Option<Vec<u8>> {
    let text = block["text"].as_str().filter(|_| block["type"] == "text")?;
    let bytes = block["_meta"][BYTES].as_str();
    let bytes = bytes.and_then(|bytes| bytes.chars().map(|byte| u8::try_from(byte).ok()).collect());
    Some(bytes.unwrap_or_else(|| text.as_bytes().to_vec()))
}

/// The output as one JSON object, if that is what it is.
fn object(text: &str) -> Option<Value> {
    if !text.trim_start().starts_with('{') {
        return None;
    }
    serde_json::from_str(text).ok().filter(Value::is_object)
}

/// A line of progress that is longer is cut.
const LONGEST_LINE: usize = 16 * 1024;
/// The size of the end that is kept for the operator.
const TAIL: usize = 4 * 1024;
/// The number of characters shown of a message.
const MESSAGE: usize = 200;

/// Standard error as it comes.
#[derive(Default)]
pub(crate) struct Stderr {
    line: Vec<u8>,
    tail: Vec<u8>,
}

#[derive(Deserialize)]
struct ProgressLine {
    progress: f64,
    #[serde(default)]
    total: Option<f64>,
    #[serde(default)]
    message: Option<String>,
}

impl Stderr {
    /// Reads to the end and reports progress as it comes.
    pub(crate) async fn collect(
        &mut self,
        mut pipe: impl AsyncRead + Unpin,
        mut tell: impl FnMut(Progress),
    ) {
        let mut piece = vec![0; 8 * 1024];
        while let Ok(read @ 1..) = pipe.read(&mut piece).await {
            for byte in &piece[..read] {
                match byte {
                    b'\n' => self.end_line(&mut tell),
                    _ if self.line.len() < LONGEST_LINE => self.line.push(*byte),
                    _ => {}
                }
            }
        }
        self.end_line(&mut tell);
    }

    /// The end of the text, without progress lines.
    pub(crate) fn tail(&self) -> Option<String> {
        let text = String::from_utf8_lossy(&self.tail);
        let text = text.trim();
        (!text.is_empty()).then(|| text.to_owned())
    }

    fn end_line(&mut self, tell: &mut impl FnMut(Progress)) {
        let line = std::mem::take(&mut self.line);
        if let Some(progress) = progress(&line) {
            return tell(progress);
        }
        self.tail.extend_from_slice(&line);
        self.tail.push(b'\n');
        let much = self.tail.len().saturating_sub(TAIL);
        self.tail.drain(..much);
    }
}

/// A line such as `{"progress": 40, "message": "scanning"}`, with or without a `total`.
fn progress(line: &[u8]) -> Option<Progress> {
    if line.trim_ascii_start().first() != Some(&b'{') {
        return None;
    }
    let ProgressLine { progress, total, message } = serde_json::from_slice(line).ok()?;
    let hundredths = match total {
        Some(total) if total > 0.0 => progress / total * 100.0,
        Some(_) | None => progress,
    };
    let message: String = message.unwrap_or_default().chars().take(MESSAGE).collect();
    Some(Progress { percent: Some(hundredths.clamp(0.0, 100.0) as u8), message })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn result(bytes: &[u8]) -> (String, Option<Value>) {
        let stdout = Stdout { kept: bytes.to_vec(), dropped: 0 };
        match stdout.into_output().body {
            Body::Tool { content, structured, is_error: false } => {
                (content[0]["text"].as_str().unwrap().to_owned(), structured)
            }
            other => panic!("{other:?}"),
        }
    }

    /// E10: structured content when, and only when, the output is one JSON object.
    #[test]
    fn e10_one_json_object_is_structured_content_as_well() {
        let cases = [
            ("plain", None),
            ("", None),
            (" {\"a\": 1}\n", Some(json!({ "a": 1 }))),
            ("{\"a\": 1} {\"b\": 2}", None),
            ("[1]", None),
            ("{\"a\": ", None),
        ];
        for (given, expected) in cases {
            assert_eq!(result(given.as_bytes()), (given.to_owned(), expected), "{given}");
        }
        assert_eq!(result(b"a\xffb").0, "a\u{fffd}b");
    }

    #[test]
    fn e10_bytes_that_are_not_utf8_are_kept() {
        let all: Vec<u8> = (0..=255).collect();
        for bytes in [&b""[..], b"text\n", b"a\xffb", &all[..]] {
            let stdout = Stdout { kept: bytes.to_vec(), dropped: 0 };
            let Body::Tool { content, .. } = stdout.into_output().body else { panic!("a report") };
            assert_eq!(output_bytes(&content[0]).as_deref(), Some(bytes));
        }
    }

    #[tokio::test]
    async fn endless_output_is_read_to_its_end_and_cut_with_a_note() {
        let mut stdout = Stdout::default();
        stdout.collect(tokio::io::repeat(b'x').take(LONGEST as u64 + 5)).await;
        assert_eq!((stdout.kept.len(), stdout.dropped), (LONGEST, 5));
        let Body::Tool { content, .. } = stdout.into_output().body else { panic!("a report") };
        let text = content[0]["text"].as_str().unwrap();
        assert!(text.ends_with("5 more bytes were not kept, 16777216 are the limit]\n"));
    }

    #[tokio::test]
    async fn lines_of_progress_are_reported_and_the_rest_is_kept_for_the_operator() {
        let said = "starting\n{\"progress\": 40, \"message\": \"scanning\"}\n{\"progress\": 3, \"total\": 4}\n\
                    {\"progress\": \"much\"}\n{\"progress\": 900}\n{\"other\": 1}\nlast words";
        let mut stderr = Stderr::default();
        let mut told = Vec::new();
        stderr.collect(said.as_bytes(), |progress| told.push(progress)).await;
        let told: Vec<_> = told.iter().map(|p| (p.percent.unwrap(), p.message.as_str())).collect();
        assert_eq!(told, [(40, "scanning"), (75, ""), (100, "")]);
        let tail = "starting\n{\"progress\": \"much\"}\n{\"other\": 1}\nlast words";
        assert_eq!(stderr.tail().as_deref(), Some(tail));
    }

    #[tokio::test]
    async fn endless_lines_and_endless_errors_stay_small() {
        let mut stderr = Stderr::default();
        stderr.collect(tokio::io::repeat(b'x').take(1_000_000), |_| {}).await;
        assert_eq!(stderr.tail().unwrap().len(), TAIL - 1);
    }
}
