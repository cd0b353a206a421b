//! The Sonar dialect and the Search API.

pub(crate) mod bench;

mod answers;
mod faults;
mod research;
mod results;
mod secrets;
mod simulated;
