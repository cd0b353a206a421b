//! Any bytes, as the event stream's decoder.

#![no_main]

#[path = "../sse_check.rs"]
mod sse_check;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    assert_eq!(sse_check::check(bytes), Ok(()));
});
