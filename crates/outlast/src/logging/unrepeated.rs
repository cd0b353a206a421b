//! Reports an error that is repeated at every attempt as one line per interval with a count. Lines about one job are
//! never suppressed: its history has no gaps.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::time::{FormatTime as _, SystemTime};
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::json;
use crate::config::LogFormat;

/// The time within which the same error is not logged again.
const QUIET: Duration = Duration::from_secs(10);
/// The number of lines that are remembered.
const REMEMBERED: usize = 64;

/// A formatter that suppresses lines that were just written. The inner formatter must not write the time itself.
#[derive(Debug)]
pub(super) struct DeduplicatingFormat<F> {
    lines: F,
    format: LogFormat,
    said: Mutex<VecDeque<SaidLine>>,
}

#[derive(Debug)]
struct SaidLine {
    line: String,
    at: Instant,
    /// The number of times it was suppressed since.
    unsaid: u32,
}

impl<F> DeduplicatingFormat<F> {
    pub(super) fn new(lines: F, format: LogFormat) -> Self {
        Self { lines, format, said: Mutex::default() }
    }

    /// Returns `Some` if the line is to be logged now, with the number of times that it was suppressed before.
    fn says(&self, line: &str, now: Instant) -> Option<u32> {
        let mut said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let known = said.iter().position(|said| said.line == line);
        if let Some(known) = known.and_then(|place| said.get_mut(place))
            && now.duration_since(known.at) < QUIET
        {
            known.unsaid += 1;
            return None;
        }
        let unsaid = known.and_then(|place| said.remove(place)).map_or(0, |known| known.unsaid);
        if said.len() == REMEMBERED {
            said.pop_front();
        }
        said.push_back(SaidLine { line: line.to_owned(), at: now, unsaid: 0 });
        Some(unsaid)
    }
}

impl<S, N, F> FormatEvent<S, N> for DeduplicatingFormat<F>
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
    F: FormatEvent<S, N>,
{
    fn format_event(
        &self,
        context: &FmtContext<'_, S, N>,
        mut writer: Writer<'_>,
        event: &Event<'_>,
    ) -> fmt::Result {
        let mut line = String::new();
        let object = match self.format {
            LogFormat::Text => {
                self.lines.format_event(context, Writer::new(&mut line), event)?;
                None
            }
            LogFormat::Json => {
                let object = json::object(event);
                line = Value::Object(object.clone()).to_string();
                Some(object)
            }
        };
        let line = line.trim_end();
        let about_a_job = event.metadata().fields().field("job.id").is_some();
        let is_limited = *event.metadata().level() <= Level::WARN && !about_a_job;
        let unsaid = match is_limited.then(|| self.says(line, Instant::now())) {
            Some(None) => return Ok(()),
            Some(Some(unsaid)) => unsaid,
            None => 0,
        };
        if let Some(mut object) = object {
            if unsaid > 0 {
                object.insert("repeated".to_owned(), unsaid.into());
            }
            return writeln!(writer, "{}", Value::Object(json::with_time(object)));
        }
        SystemTime.format_time(&mut writer)?;
        write!(writer, " {line}")?;
        if unsaid > 0 {
            write!(writer, " (and {unsaid} times before)")?;
        }
        writeln!(writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_error_is_logged_once_in_a_while_with_a_count() {
        let (log, start) = (DeduplicatingFormat::new((), LogFormat::Text), Instant::now());
        let at = |millis| start + Duration::from_millis(millis);
        assert_eq!(log.says("no disk", at(0)), Some(0));
        assert_eq!(log.says("no disk", at(1)), None);
        assert_eq!(log.says("no net", at(2)), Some(0), "another one");
        assert_eq!(log.says("no disk", at(9_999)), None);
        assert_eq!(log.says("no disk", at(10_000)), Some(2));
        assert_eq!(log.says("no disk", at(19_999)), None);
    }

    #[test]
    fn it_forgets_the_oldest() {
        let (log, now) = (DeduplicatingFormat::new((), LogFormat::Text), Instant::now());
        for number in 0..=REMEMBERED {
            assert_eq!(log.says(&number.to_string(), now), Some(0));
        }
        assert_eq!(log.says(&REMEMBERED.to_string(), now), None);
        assert_eq!(log.says("0", now), Some(0), "said again sooner than it should be, but said");
        assert_eq!(log.said.lock().unwrap().len(), REMEMBERED);
    }
}
