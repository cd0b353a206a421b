//! Why files are left out: as the index stores it, and as a report says it.

use std::collections::BTreeMap;

/// Of many files without their converter, as many are named in a report.
const NAMED: usize = 3;

/// Why a file is left out. The number is what the index stores; 0 there is a file that is not left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum Skip {
    Binary = 1,
    TooLarge,
    TooLargeDocument,
    Unreadable,
    DamagedPdf,
    EncryptedPdf,
    PdfWithoutText,
    TooMuchText,
    TooSlow,
    NoPdftotext,
    NoPandoc,
    OtherKind,
    OutsideLink,
    BrokenLink,
    UnreadLink,
}

impl Skip {
    /// Those that are found while reading, which are in the index.
    const STORED: [Self; 9] = [
        Self::Binary,
        Self::Unreadable,
        Self::DamagedPdf,
        Self::EncryptedPdf,
        Self::PdfWithoutText,
        Self::TooMuchText,
        Self::TooSlow,
        Self::NoPdftotext,
        Self::NoPandoc,
    ];

    /// From the index.
    pub(super) fn from_code(code: u8) -> Self {
        Self::STORED.into_iter().find(|skip| *skip as u8 == code).unwrap_or(Self::Unreadable)
    }

    /// As the closing note of a report says it.
    fn counted(self, names: &[String]) -> String {
        let count = names.len();
        let plural =
            |one: &str, many: &str| format!("{count} {}", if count == 1 { one } else { many });
        match self {
            Self::Binary => format!("{count} binary"),
            Self::TooLarge => format!("{count} over 8 MiB"),
            Self::TooLargeDocument => format!("{} over 64 MiB", plural("document", "documents")),
            Self::Unreadable => format!("{count} that could not be read"),
            Self::DamagedPdf => format!("{} that could not be read", plural("PDF", "PDFs")),
            Self::EncryptedPdf => plural("PDF that is encrypted", "PDFs that are encrypted"),
            Self::PdfWithoutText => format!("{} without text (scanned?)", plural("PDF", "PDFs")),
            Self::TooMuchText => format!("{count} with more than 16 MiB of text"),
            Self::TooSlow => format!("{count} that took too long to convert"),
            Self::NoPdftotext => {
                let files = plural("PDF", "PDFs");
                format!("{files} ({}; install poppler-utils for pdftotext)", some(names))
            }
            Self::NoPandoc => {
                let files = plural("office file", "office files");
                format!("{files} ({}; install pandoc)", some(names))
            }
            Self::OtherKind => format!("{count} of a kind that is not text to read"),
            Self::OutsideLink => {
                format!("{} to outside of the library's folders", plural("link", "links"))
            }
            Self::BrokenLink => plural("broken link", "broken links"),
            Self::UnreadLink => format!("{} to what is not read itself", plural("link", "links")),
        }
    }
}

fn some(names: &[String]) -> String {
    let named = names.iter().take(NAMED).cloned().collect::<Vec<_>>().join(", ");
    match names.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

/// The names of files that are left out, by reason.
#[derive(Clone, Debug, Default)]
pub(super) struct LeftOut(BTreeMap<Skip, Vec<String>>);

impl LeftOut {
    /// Adds a file; the log at debug level names it.
    pub(super) fn add(&mut self, skip: Skip, name: String) {
        let reason = skip.counted(std::slice::from_ref(&name));
        let reason = reason.strip_prefix("1 ").unwrap_or(&reason);
        tracing::debug!(file = name, reason, "left out of the library");
        self.0.entry(skip).or_default().push(name);
    }

    pub(super) fn count(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// Each reason with how many files it has left out.
    pub(super) fn reasons(&self) -> Vec<String> {
        self.0.iter().map(|(skip, names)| skip.counted(names)).collect()
    }
}
