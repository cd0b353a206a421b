//! Metrics in Prometheus text format. Labels contain no ids, owners or questions. An owner sees only figures of their jobs;
//! the operator sees everything (E7).
//!
//! This does not use `prometheus-client`: that crate writes only OpenMetrics (other `HELP` and `TYPE` lines, another content
//! type), and it cannot show a part of one registry to each owner.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::sync::OnceLock;
use std::time::Duration;

use futures_util::future::BoxFuture;
use outlast_core::{Cost, NanoUsd, OwnerId, Scope, StateKind, StoreError};
use outlast_sources::CitationCheck;
use parking_lot::Mutex;
use tokio::time::Instant;

/// The time for which the store counts as unhealthy after a refused write, unless a later write succeeds.
const UNHEALTHY_AFTER_REFUSAL: Duration = Duration::from_secs(60);

/// The counts of this process since its start.
#[derive(Default)]
pub struct Metrics {
    started: Counter,
    ended: Counter,
    attempts: Counter,
    questions: Counter,
    spent_nanos: Counter,
    checked_claims: Counter,
    checked_sources: Counter,
    provider_calls: Counter,
    store_errors: Counter,
    requests: Counter,
    wakes: Mutex<Histogram>,
    queue_waits: ByWorkflow,
    runs: ByWorkflow,
    refused: Mutex<Option<RefusedWrite>>,
    database: OnceLock<Box<dyn Database>>,
}

/// A write that the store refused.
#[derive(Clone, Copy, Debug)]
struct RefusedWrite {
    at: Instant,
    /// True if the store could not be reached: this passes without a successful write.
    is_passing: bool,
}

/// The state of the store, as far as this process knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StoreHealth {
    Sound,
    /// The store refused the last write, recently.
    RefusesWrites,
    /// The database has not answered for a while.
    Silent,
}

/// The database that stores the jobs, if it is one that may not respond.
pub trait Database: Send + Sync {
    /// Checks that it responds, unless it did so a moment ago.
    fn check(&self) -> BoxFuture<'_, ()>;

    /// Returns the state of the connections as of the latest response.
    fn figures(&self) -> DatabaseFigures;
}

/// The state of the connections to the database that stores the jobs.
#[derive(Clone, Copy, Debug)]
pub struct DatabaseFigures {
    /// Open connections of the pool.
    pub open: usize,
    /// Idle connections.
    pub idle: usize,
    /// Operations that wait for a connection.
    pub waiting: usize,
    /// The delay until other processes learn about a change by this process.
    pub lag: Duration,
    /// True if the database notifies about changes; otherwise this process polls for them.
    pub is_told: bool,
    /// True if a request has had no answer for too long.
    pub is_silent: bool,
    /// The time since the database answered again after such a silence. Writes refused before that time failed because of
    /// the silence.
    pub sound_for: Option<Duration>,
}

impl Metrics {
    /// Sets the database to report on.
    pub fn with_database(&self, database: impl Database + 'static) {
        // Called only once, by the process that opened the store.
        drop(self.database.set(Box::new(database)));
    }

    /// Counts a new job.
    pub fn job_started(&self, owner: &OwnerId, workflow: &str) {
        self.started.add(Some(owner), &[("workflow", workflow)], 1);
    }

    /// Counts a job that ended in this process.
    pub fn job_ended(&self, owner: &OwnerId, workflow: &str, state: StateKind) {
        self.ended.add(Some(owner), &[("workflow", workflow), ("state", state.as_str())], 1);
    }

    /// Counts an attempt that ended; `outcome` is `succeeded`, `retried`, `failed` or `given_back`.
    pub fn count_attempt(&self, owner: &OwnerId, outcome: &'static str) {
        self.attempts.add(Some(owner), &[("outcome", outcome)], 1);
    }

    /// Counts an event of a question to an owner; `event` is `asked`, `answered` or `timed_out`.
    pub fn count_question(&self, owner: &OwnerId, workflow: &str, event: &'static str) {
        self.questions.add(Some(owner), &[("workflow", workflow), ("event", event)], 1);
    }

    /// Counts a call to a provider; `outcome` is `ok` or the kind of error.
    pub fn provider_called(&self, provider: &str, call: &'static str, outcome: &'static str) {
        let labels = [("provider", provider), ("call", call), ("outcome", outcome)];
        self.provider_calls.add(None, &labels, 1);
    }

    /// Counts the verdicts of a check of citations.
    pub fn count_citation_check(&self, owner: &OwnerId, check: &CitationCheck) {
        for claim in &check.claims {
            self.checked_claims.add(Some(owner), &[("verdict", claim.verdict.as_str())], 1);
        }
        for source in &check.sources {
            self.checked_sources.add(Some(owner), &[("verdict", source.verdict.as_str())], 1);
        }
    }

    /// Adds the cost of a paid result.
    pub fn count_spend(&self, owner: &OwnerId, provider: &str, cost: Cost) {
        let Some(NanoUsd(nanos)) = cost.amount() else { return };
        self.spent_nanos.add(Some(owner), &[("provider", provider), ("kind", cost.kind())], nanos);
    }

    /// Records a successful write.
    pub fn store_wrote(&self) {
        *self.refused.lock() = None;
    }

    /// Records a write that failed. Only some errors make the store unhealthy.
    pub fn store_refused(&self, error: &StoreError) {
        let kind = match error {
            StoreError::Full => "full",
            StoreError::Corrupt { .. } => "corrupt",
            StoreError::Newer { .. } => "newer",
            StoreError::Outdated { .. } => "outdated",
            StoreError::Unavailable(_)
            | StoreError::Unconfirmed(_)
            | StoreError::InsertUnconfirmed { .. }
            | StoreError::NotInserted(_) => "unavailable",
            StoreError::KeyConflict(_)
            | StoreError::ConversationBusy(_)
            | StoreError::TooManyJobs
            | StoreError::TooManyBytes
            | StoreError::BudgetExceeded(_)
            | StoreError::LeaseLost
            | StoreError::NotFound => return,
        };
        self.store_errors.add(None, &[("kind", kind)], 1);
        *self.refused.lock() =
            Some(RefusedWrite { at: Instant::now(), is_passing: kind == "unavailable" });
    }

    /// Checks that the store responds, and reports its state. An idle process does not check by itself.
    pub(crate) async fn check_store(&self) -> StoreHealth {
        if let Some(database) = self.database.get() {
            database.check().await;
        }
        self.store_health()
    }

    /// Reports the state of the store as of its latest response.
    fn store_health(&self) -> StoreHealth {
        let database = self.database.get().map(|database| database.figures());
        if database.is_some_and(|database| database.is_silent) {
            return StoreHealth::Silent;
        }
        let sound_for = database.and_then(|database| database.sound_for);
        let counts = |refused: &RefusedWrite| {
            let ago = refused.at.elapsed();
            let met_silence = refused.is_passing && sound_for.is_some_and(|sound| ago >= sound);
            ago < UNHEALTHY_AFTER_REFUSAL && !met_silence
        };
        match self.refused.lock().is_some_and(|refused| counts(&refused)) {
            true => StoreHealth::RefusesWrites,
            false => StoreHealth::Sound,
        }
    }

    /// Observes the time from the creation of a job to its first claim by a worker of this process.
    pub fn queue_waited(&self, workflow: &str, wait: Duration) {
        self.queue_waits.observe(workflow, wait);
    }

    /// Observes the time from a claim by this process to the end of the attempt.
    pub fn ran(&self, workflow: &str, time: Duration) {
        self.runs.observe(workflow, time);
    }

    /// Observes the delay with which a held call noticed the end of its job.
    pub(crate) fn woke(&self, late: Duration) {
        self.wakes.lock().observe(late);
    }

    /// Counts an answered HTTP request.
    pub(crate) fn count_answer(&self, route: &'static str, status: u16) {
        self.requests.add(None, &[("route", route), ("status", &status.to_string())], 1);
    }

    /// Renders the figures that `reader` may see in Prometheus text format. `now` is the content of the store, if it could
    /// be read.
    pub(crate) fn text(&self, reader: &Scope, now: Option<&Snapshot>, calls: usize) -> String {
        let mut text = MetricsText(String::new());
        if let Some(now) = now {
            text.snapshot(now);
        }
        text.counter("outlast_jobs_started_total", "jobs made here", &self.started, reader);
        text.counter("outlast_jobs_ended_total", "jobs that ended here", &self.ended, reader);
        text.counter("outlast_attempts_total", "tries that ended here", &self.attempts, reader);
        let help = "questions of jobs to their owners, by what happened to them here";
        text.counter("outlast_questions_total", help, &self.questions, reader);
        text.head("outlast_spend_usd_total", "counter", "what results cost");
        for (labels, nanos) in self.spent_nanos.visible_to(reader) {
            text.line("outlast_spend_usd_total", &labels, nanos as f64 / 1e9);
        }
        let (claims, sources) = (&self.checked_claims, &self.checked_sources);
        text.counter("outlast_citation_claims_total", "claims checked here", claims, reader);
        text.counter("outlast_citation_sources_total", "sources of checks here", sources, reader);
        if let Scope::Owner(_) = reader {
            return text.0;
        }
        let is_up = now.is_some() && self.store_health() == StoreHealth::Sound;
        let help = "1 while the store answers and takes writes";
        text.gauge("outlast_store_up", help, u8::from(is_up));
        text.gauge("outlast_calls_under_way", "tool calls that wait or work", calls);
        let calls = &self.provider_calls;
        text.counter("outlast_provider_calls_total", "calls to providers", calls, reader);
        let errors = &self.store_errors;
        text.counter("outlast_store_errors_total", "writes the store refused", errors, reader);
        text.counter(
            "outlast_http_requests_total",
            "HTTP requests answered",
            &self.requests,
            reader,
        );
        if let Some(database) = self.database.get() {
            text.database(&database.figures());
        }
        self.wakes.lock().write(
            "outlast_poll_wake_seconds",
            "from the end of a job to the answer of a call that waited for it",
            &mut text,
        );
        let help = "from the start of a job to its first claim from the queue by this process";
        self.queue_waits.write("outlast_queue_wait_seconds", help, &mut text);
        let help = "from a claim of a job by this process to the end of the try";
        self.runs.write("outlast_run_seconds", help, &mut text);
        text.0
    }
}

/// The current content of the store.
pub(crate) struct Snapshot {
    /// Unfinished jobs by workflow and state.
    pub(crate) unfinished: BTreeMap<(String, &'static str), u64>,
    pub(crate) oldest_queued: Option<Duration>,
}

/// Counts by labels, and by owner if they belong to one.
#[derive(Default)]
struct Counter(Mutex<BTreeMap<(Option<OwnerId>, String), u64>>);

impl Counter {
    fn add(&self, owner: Option<&OwnerId>, names: &[(&str, &str)], amount: u64) {
        *self.0.lock().entry((owner.cloned(), labels(names))).or_default() += amount;
    }

    /// Returns the sums by labels over the owners that `reader` sees.
    fn visible_to(&self, reader: &Scope) -> BTreeMap<String, u64> {
        let mut sums = BTreeMap::new();
        for ((owner, labels), count) in self.0.lock().iter() {
            if owner.as_ref().is_none_or(|owner| reader.sees(owner)) {
                *sums.entry(labels.clone()).or_default() += count;
            }
        }
        sums
    }
}

fn labels(names: &[(&str, &str)]) -> String {
    let pairs = names.iter().map(|(name, value)| {
        let value = value.replace('\\', r"\\").replace('"', "\\\"").replace('\n', r"\n");
        format!("{name}=\"{value}\"")
    });
    pairs.collect::<Vec<_>>().join(",")
}

/// Bucket bounds that distinguish a notification from a timed poll.
const WAKES: &[f64] = &[0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 5.0];

/// Bucket bounds for jobs, which take from a moment to hours.
const JOBS: &[f64] = &[
    0.1, 0.5, 1.0, 5.0, 15.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1200.0, 1800.0, 3600.0, 7200.0,
    14400.0, 28800.0,
];

/// The maximum number of workflows with separate figures; the others share one entry.
const MAX_WORKFLOWS: usize = 50;
const OTHER_WORKFLOWS: &str = "other";

/// Durations in buckets.
struct Histogram {
    bounds: &'static [f64],
    buckets: Vec<u64>,
    count: u64,
    sum: f64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new(WAKES)
    }
}

impl Histogram {
    fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, buckets: vec![0; bounds.len()], count: 0, sum: 0.0 }
    }

    fn observe(&mut self, time: Duration) {
        let time = time.as_secs_f64();
        self.count += 1;
        self.sum += time;
        for (bucket, bound) in self.buckets.iter_mut().zip(self.bounds) {
            *bucket += u64::from(time <= *bound);
        }
    }

    fn write(&self, name: &str, help: &str, text: &mut MetricsText) {
        text.head(name, "histogram", help);
        self.write_lines(name, "", text);
    }

    fn write_lines(&self, name: &str, labels: &str, text: &mut MetricsText) {
        let separator = if labels.is_empty() { "" } else { "," };
        for (bucket, bound) in self.buckets.iter().zip(self.bounds) {
            let labels = format!("{labels}{separator}le=\"{bound}\"");
            text.line(&format!("{name}_bucket"), &labels, bucket);
        }
        let infinite = format!("{labels}{separator}le=\"+Inf\"");
        text.line(&format!("{name}_bucket"), &infinite, self.count);
        text.line(&format!("{name}_sum"), labels, self.sum);
        text.line(&format!("{name}_count"), labels, self.count);
    }
}

/// One histogram per workflow.
#[derive(Default)]
struct ByWorkflow(Mutex<BTreeMap<String, Histogram>>);

impl ByWorkflow {
    fn observe(&self, workflow: &str, time: Duration) {
        let mut all = self.0.lock();
        let has_room = all.len() < MAX_WORKFLOWS || all.contains_key(workflow);
        let name = if has_room { workflow } else { OTHER_WORKFLOWS };
        all.entry(name.to_owned()).or_insert_with(|| Histogram::new(JOBS)).observe(time);
    }

    fn write(&self, name: &str, help: &str, text: &mut MetricsText) {
        text.head(name, "histogram", help);
        for (workflow, histogram) in self.0.lock().iter() {
            histogram.write_lines(name, &labels(&[("workflow", workflow)]), text);
        }
    }
}

/// The text of the response.
struct MetricsText(String);

impl MetricsText {
    fn head(&mut self, name: &str, kind: &str, help: &str) {
        self.0.push_str(&format!("# HELP {name} {help}\n# TYPE {name} {kind}\n"));
    }

    fn line(&mut self, name: &str, labels: &str, value: impl Display) {
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        self.0.push_str(&format!("{name}{labels} {value}\n"));
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, "gauge", help);
        self.line(name, "", value);
    }

    fn snapshot(&mut self, now: &Snapshot) {
        self.head("outlast_jobs", "gauge", "unfinished jobs in the store");
        for ((workflow, state), jobs) in &now.unfinished {
            let labels = labels(&[("workflow", workflow), ("state", state)]);
            self.line("outlast_jobs", &labels, jobs);
        }
        let oldest = now.oldest_queued.map_or(0.0, |age| age.as_secs_f64());
        let waiting = StateKind::Waiting.as_str();
        let open = now.unfinished.iter().filter(|((_, state), _)| *state == waiting);
        let open: u64 = open.map(|(_, jobs)| jobs).sum();
        self.gauge("outlast_questions_open", "jobs that wait for an answer", open);
        self.gauge("outlast_queue_oldest_seconds", "age of the oldest queued job", oldest);
    }

    fn database(&mut self, figures: &DatabaseFigures) {
        let DatabaseFigures { open, idle, waiting, lag, is_told, .. } = *figures;
        let name = "outlast_database_connections";
        self.head(name, "gauge", "connections of the pool to the database");
        self.line(name, "state=\"busy\"", open.saturating_sub(idle));
        self.line(name, "state=\"idle\"", idle);
        self.gauge("outlast_database_waiting", "steps that wait for a connection", waiting);
        self.gauge(
            "outlast_database_lag_seconds",
            "delay until other processes see a change of this one",
            lag.as_secs_f64(),
        );
        self.gauge(
            "outlast_database_told",
            "1 if the database reports changes, 0 if they are looked for",
            u8::from(is_told),
        );
    }

    fn counter(&mut self, name: &str, help: &str, counter: &Counter, reader: &Scope) {
        self.head(name, "counter", help);
        for (labels, value) in counter.visible_to(reader) {
            self.line(name, &labels, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_written_as_prometheus_reads_them() {
        let metrics = Metrics::default();
        let (ann, bob) = (OwnerId::new("ann"), OwnerId::new("bob"));
        metrics.job_started(&ann, "say \"hi\"\n");
        metrics.count_spend(&ann, "perplexity", Cost::Reported(NanoUsd(1_000_000_000)));
        metrics.count_spend(&bob, "perplexity", Cost::Reported(NanoUsd(500_000_000)));
        metrics.count_spend(&bob, "perplexity", Cost::Unknown);
        metrics.woke(Duration::from_millis(20));
        metrics.woke(Duration::from_secs(60));
        metrics.count_question(&ann, "deploy", "asked");
        let unfinished = BTreeMap::from([
            (("deep_research".to_owned(), "queued"), 2),
            (("deploy".to_owned(), "waiting"), 3),
        ]);
        let now = Snapshot { unfinished, oldest_queued: Some(Duration::from_millis(1500)) };
        let text = metrics.text(&Scope::Operator, Some(&now), 3);
        for line in [
            "# TYPE outlast_jobs gauge",
            "outlast_jobs{workflow=\"deep_research\",state=\"queued\"} 2",
            "outlast_questions_open 3",
            "outlast_queue_oldest_seconds 1.5",
            r#"outlast_questions_total{workflow="deploy",event="asked"} 1"#,
            "outlast_calls_under_way 3",
            r#"outlast_jobs_started_total{workflow="say \"hi\"\n"} 1"#,
            "outlast_spend_usd_total{provider=\"perplexity\",kind=\"reported\"} 1.5",
            "outlast_poll_wake_seconds_bucket{le=\"0.01\"} 0",
            "outlast_poll_wake_seconds_bucket{le=\"0.025\"} 1",
            "outlast_poll_wake_seconds_bucket{le=\"5\"} 1",
            "outlast_poll_wake_seconds_bucket{le=\"+Inf\"} 2",
            "outlast_poll_wake_seconds_count 2",
        ] {
            assert!(text.lines().any(|written| written == line), "{line}:\n{text}");
        }
        let text = metrics.text(&Scope::Owner(bob), Some(&now), 3);
        let spent = r#"outlast_spend_usd_total{provider="perplexity",kind="reported"} 0.5"#;
        assert!(text.contains(spent), "{text}");
        for hidden in ["say", "outlast_calls_under_way", "outlast_poll_wake", "outlast_http"] {
            assert!(!text.contains(hidden), "E7: {hidden} is not one owner's:\n{text}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_refused_write_makes_the_store_unhealthy_until_one_is_taken_or_it_is_long_ago() {
        let metrics = Metrics::default();
        metrics.store_refused(&StoreError::TooManyJobs);
        assert_eq!(metrics.store_health(), StoreHealth::Sound, "that was the caller");
        metrics.store_refused(&StoreError::Full);
        assert_eq!(metrics.store_health(), StoreHealth::RefusesWrites);
        metrics.store_wrote();
        assert_eq!(metrics.store_health(), StoreHealth::Sound);
        metrics.store_refused(&StoreError::Full);
        tokio::time::advance(UNHEALTHY_AFTER_REFUSAL).await;
        assert_eq!(metrics.store_health(), StoreHealth::Sound);
    }
}
