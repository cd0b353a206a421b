//! Any bytes, as a PDF of a library. A corpus to begin with: `crates/provider/tests/library/pdfs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    assert_eq!(outlast_provider::fuzzing::pdf(bytes), Ok(()));
});
