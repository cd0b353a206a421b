//! The space that a job uses of its owner's storage limit: its request, its result, and the provider's final
//! response.

use std::io;

use serde::Serialize;

use crate::{NewJob, Settlement};

/// Returns the size of a job's request in bytes, as JSON.
pub fn request_bytes(new: &NewJob) -> u64 {
    json_bytes(&new.request)
}

/// Returns the number of bytes that the end of an attempt leaves behind.
pub fn settlement_bytes(settlement: &Settlement) -> u64 {
    let (output, raw) = match settlement {
        Settlement::Succeed { output, raw } => (json_bytes(&**output), raw),
        Settlement::Fail { failure: _, raw } => (0, raw),
        Settlement::Retry { .. } | Settlement::Release | Settlement::Wait => return 0,
    };
    output + raw.as_ref().map_or(0, |raw| raw.len() as u64)
}

/// Returns whether an owner who has `stored` bytes may add a job whose request has `more`.
pub(super) fn has_room(stored: u64, more: u64, max_bytes: u64) -> bool {
    stored.saturating_add(more) <= max_bytes
}

fn json_bytes(value: &impl Serialize) -> u64 {
    let mut count = Count(0);
    // A value that cannot be written as JSON cannot be stored either, and uses no space.
    match serde_json::to_writer(&mut count, value) {
        Ok(()) => count.0,
        Err(_) => 0,
    }
}

/// Counts the bytes that are written to it and stores nothing.
struct Count(u64);

impl io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use serde_json::json;

    use super::*;
    use crate::Checkpoint;
    use crate::rules::tests::{failure, output, queued};

    #[test]
    fn request_result_and_the_providers_last_word_take_room() {
        let mut new = queued().job.new;
        new.request = json!({ "query": "why" }).into();
        assert_eq!(request_bytes(&new), r#"{"query":"why"}"#.len() as u64);
        let raw = || Some(Arc::new(vec![0; 7]));
        let result = serde_json::to_string(&*output()).unwrap().len() as u64;
        let checkpoint = Checkpoint::NotBegun;
        let cases = [
            (Settlement::Succeed { output: output(), raw: raw() }, result + 7),
            (Settlement::Succeed { output: output(), raw: None }, result),
            (Settlement::Fail { failure: failure(), raw: raw() }, 7),
            (Settlement::Retry { failure: failure(), wait: Duration::ZERO, checkpoint }, 0),
            (Settlement::Release, 0),
        ];
        for (settlement, expected) in cases {
            assert_eq!(settlement_bytes(&settlement), expected, "{settlement:?}");
        }
    }

    #[test]
    fn an_owner_may_fill_the_room_and_not_more() {
        for (stored, more, expected) in
            [(0, 10, true), (9, 1, true), (9, 2, false), (u64::MAX, 1, false)]
        {
            assert_eq!(has_room(stored, more, 10), expected, "{stored} and {more}");
        }
    }
}
