//! What the fuzz target `sse` and the test that runs its corpus check.

use outlast_http::{SseDecoder, SseEvent};

/// The limit that providers' streams have.
const MAX_EVENT: usize = 8 * 1024 * 1024;

/// Decodes the bytes whole, in pieces and one by one; says what differs, or is held beyond the limit.
pub(super) fn check(bytes: &[u8]) -> Result<(), String> {
    let whole = events(bytes, bytes.len().max(1))?;
    for size in [1, 3, 17] {
        if events(bytes, size)? != whole {
            return Err(format!("other events in pieces of {size}"));
        }
    }
    Ok(())
}

fn events(bytes: &[u8], size: usize) -> Result<Vec<SseEvent>, String> {
    let mut decoder = SseDecoder::new(MAX_EVENT);
    let mut events = Vec::new();
    for piece in bytes.chunks(size) {
        if decoder.push(piece).is_err() {
            break;
        }
        events.extend(std::iter::from_fn(|| decoder.next_event()));
        if decoder.buffered_bytes() > 2 * MAX_EVENT + size {
            return Err(format!("{} bytes are held", decoder.buffered_bytes()));
        }
    }
    Ok(events)
}
