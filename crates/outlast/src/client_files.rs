//! Clients' own configuration files: their places and formats, and changes that leave every other byte as it is.
//! `outlast init` adds its entry by them, and `outlast wrap --install` changes the entry of another server.

pub(crate) mod clients;
pub(crate) mod document;

pub(crate) mod place;
pub(crate) mod json;
pub(crate) mod toml;
pub(crate) mod layout;

pub(crate) mod diff;
