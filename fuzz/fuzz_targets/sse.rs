//! Any bytes, as the event stream's decoder.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    assert_eq!(outlast_provider::fuzzing::sse(bytes), Ok(()));
});
