//! The values a PDF is written in.

use std::ops::Range;

/// One value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Object {
    Null,
    Number(f64),
    Name(String),
    Text(Vec<u8>),
    Array(Vec<Self>),
    Dict(Dict),
    /// With the place of its bytes in the file.
    Stream(Dict, Range<usize>),
    /// The number of an object; generations are of no use to a reader.
    Ref(u32),
    /// Any other word: an operator, `true`, `endobj`.
    Word(String),
}

impl Object {
    pub(super) fn number(&self) -> Option<f64> {
        if let Self::Number(number) = self { Some(*number) } else { None }
    }

    /// A whole number that is not negative.
    pub(super) fn count(&self) -> Option<usize> {
        self.number().filter(|number| (0.0..=4e9).contains(number)).map(|number| number as usize)
    }

    pub(super) fn name(&self) -> Option<&str> {
        if let Self::Name(name) = self { Some(name) } else { None }
    }

    pub(super) fn array(&self) -> &[Self] {
        if let Self::Array(items) = self { items } else { &[] }
    }

    /// A dictionary, also that of a stream.
    pub(super) fn dict(&self) -> Option<&Dict> {
        match self {
            Self::Dict(dict) | Self::Stream(dict, _) => Some(dict),
            _ => None,
        }
    }
}

/// A dictionary, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Dict(pub(super) Vec<(String, Object)>);

impl Dict {
    /// As it stands there; nothing is null.
    pub(super) fn get(&self, key: &str) -> &Object {
        self.0.iter().find(|(name, _)| name == key).map_or(&Object::Null, |(_, value)| value)
    }

    /// Whether it says that it is of a kind.
    pub(super) fn is(&self, kind: &str) -> bool {
        self.get("Type").name() == Some(kind)
    }
}
