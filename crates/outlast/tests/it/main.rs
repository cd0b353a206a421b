//! The real binary: over real pipes, on real files, killed for real.

mod support;

mod cli;
mod crash;
mod demo;
mod requirements;
mod research_jobs;
