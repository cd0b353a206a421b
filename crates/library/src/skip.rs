//! Why files are left out: as the index stores it, and as a report counts it.

/// Why a file is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Skip {
    Binary,
    TooLarge,
    LargePdf,
    Unreadable,
    DamagedPdf,
    EncryptedPdf,
    PdfWithoutText,
    OtherKind,
    OutsideLink,
    BrokenLink,
    UnreadLink,
}

impl Skip {
    const ALL: [Self; 11] = [
        Self::Binary,
        Self::TooLarge,
        Self::LargePdf,
        Self::Unreadable,
        Self::DamagedPdf,
        Self::EncryptedPdf,
        Self::PdfWithoutText,
        Self::OtherKind,
        Self::OutsideLink,
        Self::BrokenLink,
        Self::UnreadLink,
    ];

    /// As the index stores it; 0 there is a file that is not left out.
    pub(super) fn code(self) -> u8 {
        match self {
            Self::Binary => 1,
            Self::Unreadable => 2,
            Self::DamagedPdf => 3,
            Self::EncryptedPdf => 4,
            Self::PdfWithoutText => 5,
            Self::TooLarge => 6,
            Self::LargePdf => 7,
            Self::OtherKind => 8,
            Self::OutsideLink => 9,
            Self::BrokenLink => 10,
            Self::UnreadLink => 11,
        }
    }

    /// From the index.
    pub(super) fn from_code(code: u8) -> Self {
        Self::ALL.into_iter().find(|skip| skip.code() == code).unwrap_or(Self::Unreadable)
    }

    /// Names a file that is left out, for those who ask for it with `-v`.
    pub(super) fn log(self, file: &str) {
        let reason = self.counted(1);
        let reason = reason.strip_prefix("1 ").unwrap_or(&reason);
        tracing::debug!(file, reason, "left out of the library");
    }

    /// As the closing note of a report counts it.
    pub(super) fn counted(self, count: usize) -> String {
        let pdf = if count == 1 { "PDF" } else { "PDFs" };
        let link = if count == 1 { "link" } else { "links" };
        match self {
            Self::Binary => format!("{count} binary"),
            Self::TooLarge => format!("{count} over 8 MiB"),
            Self::LargePdf => format!("{count} {pdf} over 64 MiB"),
            Self::Unreadable => format!("{count} that could not be read"),
            Self::DamagedPdf => format!("{count} {pdf} that could not be read"),
            Self::EncryptedPdf if count == 1 => "1 PDF that is encrypted".to_owned(),
            Self::EncryptedPdf => format!("{count} PDFs that are encrypted"),
            Self::PdfWithoutText => format!("{count} {pdf} without text (scanned?)"),
            Self::OtherKind => format!("{count} of a kind that is not text to read"),
            Self::OutsideLink => format!("{count} {link} to outside of the library's folders"),
            Self::BrokenLink => format!("{count} broken {link}"),
            Self::UnreadLink => format!("{count} {link} to what is not read itself"),
        }
    }
}
