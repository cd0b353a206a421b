//! Any bytes, as a PDF of a library. A corpus to begin with: `crates/library/tests/it/pdfs`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    assert_eq!(outlast_library::fuzzing::pdf(bytes), Ok(()));
});
