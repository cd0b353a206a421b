//! Reads the pages that a report cites, and compares its sentences with them.
//!
//! This crate knows neither jobs nor stores. Fetching follows the rules of J5, because the addresses come from
//! untrusted text; nothing in a page influences what is fetched next.

mod address;
mod fetch;

pub use address::Refusal;
pub use fetch::{
    FetchError, FetchLimits, FetchOptions, Fetched, Fetcher, FetcherError, Lookup, system_lookup,
};
