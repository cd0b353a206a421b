//! The Sonar dialect and the Search API over real HTTP.

#[cfg(test)]
mod bench;
#[cfg(test)]
mod server;

#[cfg(test)]
mod answers;
#[cfg(test)]
mod faults;
#[cfg(test)]
mod research;
#[cfg(test)]
mod results;
#[cfg(test)]
mod secrets;
#[cfg(test)]
mod simulated;
