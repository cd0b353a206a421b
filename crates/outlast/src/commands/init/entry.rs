//! What a client is told about this program, before it has a format.

/// Names and values, in the order people expect.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) fields: Vec<(&'static str, Field)>,
}

#[derive(Clone, Debug)]
pub(super) enum Field {
    Text(String),
    List(Vec<String>),
    /// Values that are only added: what somebody set otherwise stays.
    Map(Vec<(&'static str, String)>),
}
