//! Doors for the fuzz targets, for the test that runs their corpus, and for benchmarks. Not part of the library.

use outlast_http::{Decoder, MAX_EVENT};

pub use crate::perplexity::fuzzing::{event, followed, response, sonar};

/// Decodes the bytes whole, in pieces and one by one; says what differs, or is held beyond the limit.
pub fn sse(bytes: &[u8]) -> Result<(), String> {
    let whole = frames(bytes, bytes.len().max(1))?;
    for size in [1, 3, 17] {
        if frames(bytes, size)? != whole {
            return Err(format!("other events in pieces of {size}"));
        }
    }
    Ok(())
}

fn frames(bytes: &[u8], size: usize) -> Result<Vec<String>, String> {
    let mut decoder = Decoder::default();
    let mut frames = Vec::new();
    for piece in bytes.chunks(size) {
        if decoder.push(piece).is_err() {
            break;
        }
        frames.extend(std::iter::from_fn(|| decoder.next()).map(|frame| frame.data));
        if decoder.held() > 2 * MAX_EVENT + size {
            return Err(format!("{} bytes are held", decoder.held()));
        }
    }
    Ok(frames)
}
