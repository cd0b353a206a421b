//! What a client is told about this program, before it has a format.

use serde_json::Value;

/// The entry of this program.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) value: Field,
    /// The variable that was given on the command line: it replaces the one that is there.
    pub(super) given: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub(in crate::commands) enum Field {
    Text(String),
    List(Vec<String>),
    /// Names and values, in the order people expect.
    Map(Vec<(&'static str, Field)>),
}

impl Field {
    /// What it says, as JSON.
    pub(super) fn value(&self) -> Value {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::List(items) => items.as_slice().into(),
            Self::Map(members) => members.iter().map(|(name, it)| (*name, it.value())).collect(),
        }
    }
}
