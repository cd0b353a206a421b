//! How hard a run works: its length, its sources and its model.

#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Effort {
    Fast,
    Low,
    Medium,
    High,
    Xhigh,
}

impl Effort {
    pub(crate) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "fast" => Self::Fast,
            "low" | "pro-search" => Self::Low,
            "medium" | "deep-research" => Self::Medium,
            "high" | "advanced-deep-research" => Self::High,
            "xhigh" | "wide-research" => Self::Xhigh,
            _ => return None,
        })
    }

    pub(crate) fn words(self) -> usize {
        match self {
            Self::Fast | Self::Low => 150,
            Self::Medium => 600,
            Self::High => 1_500,
            Self::Xhigh => 4_000,
        }
    }

    pub(crate) fn sources(self) -> usize {
        match self {
            Self::Fast | Self::Low => 4,
            Self::Medium => 8,
            Self::High => 16,
            Self::Xhigh => 32,
        }
    }

    pub(crate) fn model(self) -> &'static str {
        match self {
            Self::Fast | Self::Low | Self::Medium => "openai/gpt-6-luna",
            Self::High => "openai/gpt-6-sol",
            Self::Xhigh => "anthropic/claude-opus-5-5",
        }
    }
}
