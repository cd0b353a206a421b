//! The simulator over real HTTP, as a provider adapter uses it.
#![expect(clippy::disallowed_methods, reason = "tests build their own client")]

#[cfg(test)]
mod client;
#[cfg(test)]
mod control;
#[cfg(test)]
mod dialect;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod oddities;
#[cfg(test)]
mod openai;
#[cfg(test)]
mod patience;
#[cfg(test)]
mod streams;
#[cfg(test)]
mod search;
#[cfg(test)]
mod sonar;
#[cfg(test)]
mod gemini;
#[cfg(test)]
mod researcher;
