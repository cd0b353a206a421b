//! Any bytes, as one event of a stream.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    assert_eq!(outlast_provider::fuzzing::event(bytes), Ok(()));
});
