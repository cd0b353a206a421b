use std::fmt;

use serde_json::Value;

/// A progress notification of a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Progress {
    /// The amount done so far. The protocol requires it to increase; values of a server that breaks this rule
    /// are passed on unchanged.
    pub value: f64,
    /// The value at the end, if it is known.
    pub total: Option<f64>,
    /// The server's message.
    pub message: Option<String>,
    /// Additional metadata, such as the id of a job.
    pub meta: Option<Value>,
}

impl Progress {
    /// The percentage that is done, from 0 to 100, if the total is known.
    pub fn percent(&self) -> Option<f64> {
        let total = self.total.filter(|total| *total > 0.0)?;
        Some((self.value / total * 100.0).clamp(0.0, 100.0))
    }
}

impl fmt::Display for Progress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.percent(), &self.message) {
            (Some(percent), Some(message)) => write!(f, "{percent:.0} %: {message}"),
            (Some(percent), None) => write!(f, "{percent:.0} %"),
            (None, Some(message)) => f.write_str(message),
            (None, None) => write!(f, "{}", self.value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percent_needs_a_total_and_stays_in_bounds() {
        let at = |value, total| Progress { value, total, message: None, meta: None }.percent();
        assert_eq!(at(3.0, None), None);
        assert_eq!(at(3.0, Some(0.0)), None);
        assert_eq!(at(3.0, Some(12.0)), Some(25.0));
        assert_eq!(at(30.0, Some(12.0)), Some(100.0));
        assert_eq!(at(-1.0, Some(12.0)), Some(0.0));
    }
}
