//! The effort of a run: it determines the length of the report, the sources and the model.

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Effort {
    Fast,
    Low,
    Medium,
    High,
    Xhigh,
}

impl Effort {
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        Some(match name {
            "fast" => Self::Fast,
            "low" | "pro-search" => Self::Low,
            "medium" | "deep-research" => Self::Medium,
            "high" | "advanced-deep-research" => Self::High,
            "xhigh" | "wide-research" => Self::Xhigh,
            _ => return None,
        })
    }

    /// The number of words and sources, and the model.
    pub(crate) fn scale(self) -> (usize, usize, &'static str) {
        match self {
            Self::Fast | Self::Low => (150, 4, "openai/gpt-6-luna"),
            Self::Medium => (600, 8, "openai/gpt-6-luna"),
            Self::High => (1_500, 16, "openai/gpt-6-sol"),
            Self::Xhigh => (4_000, 32, "anthropic/claude-opus-5-5"),
        }
    }
}
