//! Reads the pages that a report cites, and compares its sentences with them.
//!
//! This crate knows neither jobs nor stores. Fetching follows the rules of J5, because the addresses come from
//! untrusted text; nothing in a page influences what is fetched next. The comparison is one of texts: it finds facts
//! in a source, and does not understand sentences.

mod check;
mod markdown;
mod tokens;
mod facts;
mod compare;
mod page;
mod stored;
mod text;
mod language;
mod fetch;
mod address;

pub use address::AddressRefusal;
pub use check::{
    Check, CheckedClaim, CheckedSource, CitationCheck, ClaimVerdict, FoundPassage, LocalReader,
    LocalSource, PreparedPage, Reason, SourceReaders, SourceStep, SourceVerdict, StepRecord,
    StepRecorder, Totals,
};
pub use fetch::{
    FetchError, FetchLimits, FetchOptions, FetchedPage, Fetcher, FetcherError, Lookup,
    system_lookup,
};
pub use markdown::{CitedSource, Claim, Report};
pub use page::{Block, BlockKind, Obstacle, Page, PdfReader, Unreadable};
pub use stored::Quotable;
pub use text::split_sentences;
