//! `outlast wrap` before a small server in Python (H3-H7, H9): the real binary, real pipes, real kills.

mod harness;

mod relaying;
mod handing_off;
mod surviving;
mod clients;
mod limits;
mod tool_changes;
mod web;
mod odd_servers;
mod data_directory;

use harness::{Wrapped, Wrapping, call, text};
