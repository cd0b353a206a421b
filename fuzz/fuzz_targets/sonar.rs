//! Any bytes, as what the Sonar and the Search endpoints answer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    assert_eq!(outlast_provider::fuzzing::sonar(bytes), Ok(()));
});
