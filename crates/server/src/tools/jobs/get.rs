//! Asking after a job, which waits for its end, and cancelling it.

use std::time::Duration;

use outlast_engine::Reading;
use rmcp::model::JsonObject;
use serde::Deserialize;
use serde_json::Number;

use super::Jobs;
use super::answer::JobAnswer;
use crate::arguments;
use crate::caller::Caller;
use crate::job_by_id;
use crate::reply::{Refusal, ToolResult, structured};

/// How long before the wait is over the answer leaves, so that it arrives in time (E3).
const SENT_BEFORE_END: Duration = Duration::from_millis(500);
const MAX_WAIT_SECONDS: f64 = 300.0;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct GetArguments {
    job_id: String,
    #[serde(default)]
    wait_seconds: Option<Number>,
    #[serde(default)]
    offset: u64,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CancelArguments {
    job_id: String,
}

impl Jobs {
    pub(super) async fn get(&self, caller: &mut Caller, given: JsonObject) -> ToolResult {
        let GetArguments { job_id, wait_seconds, offset } = arguments::read(given)?;
        let wait = wait_seconds.map(|number| wait(&number)).transpose()?;
        let budget = wait.unwrap_or(self.options.wait).saturating_sub(SENT_BEFORE_END);
        let reading = job_by_id::poll(&self.engine, caller, &job_id, budget).await?;
        self.answer(&job_id, reading, offset)
    }

    pub(super) async fn cancel(&self, caller: &Caller, given: JsonObject) -> ToolResult {
        let CancelArguments { job_id } = arguments::read(given)?;
        let reading = job_by_id::cancel(&self.engine, caller, &job_id).await?;
        self.answer(&job_id, reading, 0)
    }

    fn answer(&self, given: &str, reading: Option<Reading>, offset: u64) -> ToolResult {
        structured(&match reading {
            Some(reading) => JobAnswer::about(&reading, &self.options, offset)?,
            None => JobAnswer::expired(given, &self.options),
        })
    }
}

/// Any whole number: none is at once, others are brought into bounds.
fn wait(seconds: &Number) -> Result<Duration, Refusal> {
    let number = seconds.as_f64().filter(|number| number.fract() == 0.0).ok_or_else(|| {
        Refusal::validation(format!("wait_seconds must be a whole number, not {seconds}"))
    })?;
    let whole = if number == 0.0 { 0.0 } else { number.clamp(1.0, MAX_WAIT_SECONDS) };
    Ok(Duration::from_secs_f64(whole))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// E3: any integer is taken.
    #[test]
    fn e3_a_wait_is_any_whole_number_brought_into_bounds() {
        let seconds = |given: Value| match given {
            Value::Number(number) => wait(&number).ok().map(|wait| wait.as_secs()),
            other => panic!("{other}"),
        };
        let cases = [
            (json!(0), Some(0)),
            (json!(1), Some(1)),
            (json!(59), Some(59)),
            (json!(300), Some(300)),
            (json!(301), Some(300)),
            (json!(-7), Some(1)),
            (json!(u64::MAX), Some(300)),
            (json!(i64::MIN), Some(1)),
            (json!(5.0), Some(5)),
            (json!(1e300), Some(300)),
            (json!(0.5), None),
        ];
        for (given, expected) in cases {
            assert_eq!(seconds(given.clone()), expected, "{given}");
        }
    }
}
