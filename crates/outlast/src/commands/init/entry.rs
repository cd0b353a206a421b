//! What a client is told about this program, before it has a format.

use serde_json::Value;

/// Names and values, in the order people expect.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) fields: Vec<(&'static str, Field)>,
    /// The variable that was given on the command line: it replaces the one that is there.
    pub(super) given: Option<&'static str>,
}

#[derive(Clone, Debug)]
pub(super) enum Field {
    Text(String),
    List(Vec<String>),
    /// Values that are only added: what a person set otherwise stays, unless it is given anew.
    Map(Vec<(&'static str, String)>),
}

impl Field {
    /// What it says, as JSON.
    pub(super) fn value(&self) -> Value {
        match self {
            Self::Text(text) => text.as_str().into(),
            Self::List(items) => items.as_slice().into(),
            Self::Map(pairs) => pairs.iter().map(|(name, value)| (*name, value.as_str())).collect(),
        }
    }
}
