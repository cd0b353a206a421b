//! The real binary: over real pipes, on real files, killed for real.

mod support;

mod crash;
mod research_jobs;
