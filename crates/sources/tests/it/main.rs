//! Tests of the crate through its public interface, over real sockets.

#[cfg(test)]
mod hostile;
#[cfg(test)]
mod memory;
#[cfg(test)]
mod checks;
