//! Tests of the library provider through its public interface: its answers, the files it leaves out, and the
//! failures it survives.

#[cfg(test)]
mod bench;

#[cfg(test)]
mod answers;
#[cfg(test)]
mod cache;
#[cfg(test)]
mod convert;
#[cfg(test)]
mod exact;
#[cfg(test)]
mod files;
#[cfg(test)]
mod hostile;
#[cfg(test)]
mod pdf;
#[cfg(test)]
mod races;
#[cfg(test)]
mod reports;
#[cfg(test)]
mod running;
#[cfg(test)]
mod speed;
