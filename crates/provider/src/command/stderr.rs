//! The standard error of a command: progress for the client, and the rest for the operator.

use outlast_core::Progress;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncReadExt};

/// A line of progress that is longer is cut.
const LONGEST_LINE: usize = 16 * 1024;
/// So much of the end is kept for the operator.
const TAIL: usize = 4 * 1024;
/// So much of a message is shown.
const MESSAGE: usize = 200;

/// Standard error as it comes.
#[derive(Default)]
pub(crate) struct Stderr {
    line: Vec<u8>,
    tail: Vec<u8>,
}

#[derive(Deserialize)]
struct Said {
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
    let Said { progress, total, message } = serde_json::from_slice(line).ok()?;
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

    #[tokio::test]
    async fn lines_of_progress_are_told_and_the_rest_is_kept_for_the_operator() {
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
