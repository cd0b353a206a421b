//! Any bytes, as the body of an answer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    assert_eq!(outlast_provider::fuzzing::response(bytes), Ok(()));
});
