//! Arbitrary bytes, read as what the Sonar endpoints answer.

use outlast_core::{Body, Output};

use super::answer::JoinedAnswer;
use super::report;
use super::wire::{Completion, Job};
use crate::vendor::object;

/// Reads the bytes as a job, as an answer, and as chunks, one per line.
pub(in crate::perplexity) fn fuzz(bytes: &[u8]) -> Result<Vec<Output>, String> {
    let job = object::<Job>(bytes).and_then(|job| job.response.0).and_then(report::output);
    let answer = object::<Completion>(bytes).and_then(report::output);
    let mut joined = JoinedAnswer::default();
    let mut deltas = String::new();
    for line in String::from_utf8_lossy(bytes).lines() {
        match object::<Completion>(line.as_bytes()) {
            Some(chunk) => {
                deltas.push_str(chunk.delta().unwrap_or_default());
                joined.add(chunk, line).map_err(|error| error.to_string())?;
            }
            None => joined.add_unreadable(),
        }
    }
    let streamed = joined.output().map(|(output, _)| output);
    // Only thoughts are removed from a text.
    if let Some(Body::Report { text, .. }) = streamed.as_ref().map(|output| &output.body)
        && text.len() < deltas.len()
        && !String::from_utf8_lossy(bytes).contains("think")
    {
        return Err(format!("text is lost: {text:?} of {deltas:?}"));
    }
    Ok([job, answer, streamed].into_iter().flatten().map(|output| *output).collect())
}
