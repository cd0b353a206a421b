//! The reasons files are left out, as stored in the index and as shown in a report.

use std::collections::BTreeMap;

/// The maximum number of files without a converter that a report names.
const NAMED: usize = 3;

/// The reason a file is left out. The index stores the number; 0 means that the file is not left out.
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
    /// The reasons that are found while reading and stored in the index.
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

    /// Converts the number that the index stores.
    pub(super) fn from_code(code: u8) -> Self {
        Self::STORED.into_iter().find(|skip| *skip as u8 == code).unwrap_or(Self::Unreadable)
    }

    /// Describes the files for the closing note of a report.
    fn describe(self, names: &[String]) -> String {
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
            Self::OtherKind => format!("{count} of a kind that is not readable text"),
            Self::OutsideLink => plural(
                "link to a target outside the library's folders",
                "links to targets outside the library's folders",
            ),
            Self::BrokenLink => plural("broken link", "broken links"),
            Self::UnreadLink => plural(
                "link to a file or folder that is not read",
                "links to files or folders that are not read",
            ),
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
    /// Adds a file and logs its name at debug level.
    pub(super) fn add(&mut self, skip: Skip, name: String) {
        let reason = skip.describe(std::slice::from_ref(&name));
        let reason = reason.strip_prefix("1 ").unwrap_or(&reason);
        tracing::debug!(file = name, reason, "left a file out of the library");
        self.0.entry(skip).or_default().push(name);
    }

    pub(super) fn count(&self) -> usize {
        self.0.values().map(Vec::len).sum()
    }

    /// Returns each reason with the number of files it applies to.
    pub(super) fn reasons(&self) -> Vec<String> {
        self.0.iter().map(|(skip, names)| skip.describe(names)).collect()
    }
}
