//! The start of every case: an empty store, a manual clock, and sample jobs.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    Body, CancelOutcome, ChangeWait, Changes, ClaimedJob, Clock, Code, Cost, Failure, Insert,
    InsertOutcome, Job, JobId, Key, KeyLife, NanoUsd, NewJob, Output, OwnerId, Profile, RemoteRun,
    RescueBy, RescueOutcome, Reservation, Rev, Scope, Settlement, Source, SpendLimits, SpendTerms,
    Store, StoreError, Timestamp, Usage, Visibility, WorkerId,
};
use serde_json::json;
use tempfile::TempDir;

use crate::clock::{ManualClock, START};

/// The duration of leases in the suite.
pub const LEASE: Duration = Duration::from_secs(30);

/// The maximum time of every wait in the suite; a case that reaches it has missed a wake-up.
const MAX_WAIT: Duration = Duration::from_secs(10);

/// An empty store and its clock.
pub struct Fixture {
    /// The store under test.
    pub store: Arc<dyn Store>,
    /// Its clock.
    pub clock: Arc<ManualClock>,
    _dir: TempDir,
}

impl Fixture {
    /// Creates the store with `make`.
    pub fn new(make: impl FnOnce(Arc<dyn Clock>, &Path) -> Arc<dyn Store>) -> Self {
        let clock = Arc::new(ManualClock::default());
        let dir = TempDir::new().expect("a temporary directory");
        let store = make(clock.clone(), dir.path());
        Self { store, clock, _dir: dir }
    }

    /// Inserts without a key and with room for many.
    pub async fn try_add(&self, job: NewJob) -> Result<InsertOutcome, StoreError> {
        self.store.insert(an_insert(job)).await
    }

    /// Inserts a job that must be new.
    pub async fn add(&self, job: NewJob) -> Job {
        match self.try_add(job).await.expect("the job is inserted") {
            InsertOutcome::New(job) => job,
            InsertOutcome::Existing { job, .. } => panic!("{} existed", job.id),
        }
    }

    /// Inserts under a key.
    pub async fn add_keyed(&self, job: NewJob, key: Key) -> Result<InsertOutcome, StoreError> {
        self.store.insert(Insert { key: Some(key), ..an_insert(job) }).await
    }

    /// Claims the next job for `worker`, if there is one.
    pub async fn try_claim(&self, worker: &WorkerId) -> Option<ClaimedJob> {
        self.store.claim(worker, &profiles(), LEASE).await.expect("claims never fail")
    }

    /// Claims the next job, which must exist.
    pub async fn claim(&self) -> ClaimedJob {
        self.try_claim(&worker("w1")).await.expect("a job is claimable")
    }

    /// Inserts the plain job and claims it.
    pub async fn add_claimed(&self) -> ClaimedJob {
        self.add(a_job()).await;
        self.claim().await
    }

    /// Inserts the plain job, which then succeeds.
    pub async fn add_succeeded(&self) -> Job {
        self.add(a_job()).await;
        self.end_next(succeed()).await
    }

    /// Claims the next job and settles it.
    pub async fn end_next(&self, settlement: Settlement) -> Job {
        let claimed = self.claim().await;
        self.store.settle(&claimed.lease, settlement).await.expect("the lease is fresh")
    }

    /// Claims this job by its id for a worker, if possible.
    pub async fn take(&self, worker: &WorkerId, id: &JobId) -> Option<ClaimedJob> {
        self.store.claim_by_id(worker, &profiles(), id, LEASE).await.expect("takes never fail")
    }

    /// Cancels a job as the operator.
    pub async fn cancel(&self, id: &JobId) -> CancelOutcome {
        self.store.cancel(&Scope::Operator, id).await.expect("the job is there")
    }

    /// Ends `worker` as the end of its process would, and rescues its jobs.
    pub async fn end_worker(&self, worker: &WorkerId) -> RescueOutcome {
        self.store.deregister_worker(worker).await.expect("a worker can be deregistered");
        self.store.rescue(&RescueBy::DeadProcess).await.expect("a rescue never fails")
    }

    /// The time on the fixture's clock.
    pub fn clock_now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Reads an existing job as the operator.
    pub async fn read(&self, id: &JobId) -> Job {
        let found = self.store.job(&Scope::Operator, id).await.expect("reads never fail");
        found.expect("the job is there")
    }

    /// The changes after `after`, without waiting.
    pub async fn look(&self, after: Rev) -> Changes {
        let wait = ChangeWait { at_most: Duration::ZERO, look_every: Duration::from_millis(25) };
        self.store.changes(after, wait).await.expect("reads never fail")
    }

    /// Waits for a change after `after`, which must happen.
    pub async fn wait(&self, after: Rev) -> Changes {
        let wait = ChangeWait { at_most: MAX_WAIT, look_every: Duration::from_millis(25) };
        let changes = self.store.changes(after, wait).await.expect("reads never fail");
        assert!(!changes.jobs.is_empty(), "the wake-up was lost");
        changes
    }
}

/// An insert without a key and with room for many.
pub fn an_insert(job: NewJob) -> Insert {
    Insert {
        job,
        key: None,
        max_unfinished: 100_000,
        max_bytes: u64::MAX,
        resumed_run: None,
        takeover: None,
        reservation: None,
        initial_worker: None,
    }
}

/// A reservation of `cents` with a daily limit.
pub fn a_reservation(cents: u64, per_day: Option<u64>) -> Reservation {
    Reservation {
        provider: "perplexity".to_owned(),
        model: None,
        terms: SpendTerms {
            typical: Some(a_cost(cents)),
            budget: None,
            default_cap: None,
            limits: SpendLimits { per_job: None, per_day: per_day.map(a_cost) },
        },
    }
}

/// An amount in cents.
pub fn a_cost(cents: u64) -> NanoUsd {
    NanoUsd(cents * 10_000_000)
}

/// The plain job: alice's, without a conversation or limits.
pub fn a_job() -> NewJob {
    NewJob {
        owner: alice(),
        conversation: None,
        subject: None,
        profile: Profile::new("research"),
        workflow: "deep_research".to_owned(),
        title: "What is a lease?".to_owned(),
        request: json!({ "messages": [{ "role": "user", "content": "What is a lease?" }], "weight": 0.1 }).into(),
        priority: 0,
        visibility: Visibility::Promised,
        max_failures: 2,
        attempt_timeout: Duration::from_secs(3600),
        life: None,
        keep: None,
    }
}

/// A caller's own key for the input with this number; it is valid for a minute.
pub fn a_key(text: &str, input: u8) -> Key {
    let life = KeyLife::For(Duration::from_secs(60));
    Key { text: text.to_owned(), input_hash: [input; 32], life, identity: None }
}

/// The key of a held call for the input with this number; it is valid for a minute after the end.
pub fn a_held_key(text: &str, input: u8) -> Key {
    let life = KeyLife::UntilAnswered { after_end: Duration::from_secs(60) };
    Key { life, ..a_key(text, input) }
}

/// The key of a held research call: valid for a minute after the end, or for ten seconds once a call was
/// answered.
pub(super) fn a_research_key(text: &str, input: u8) -> Key {
    let life =
        KeyLife::Replays { unanswered: Duration::from_secs(60), answered: Duration::from_secs(10) };
    Key { life, ..a_key(text, input) }
}

/// The provider's run with this name.
pub fn a_run(id: &str) -> RemoteRun {
    RemoteRun {
        provider: "perplexity".to_owned(),
        id: id.to_owned(),
        cursor: Some("7".to_owned()),
        begun_at: START,
    }
}

/// A failure with this message.
pub fn a_failure(message: &str) -> Failure {
    Failure {
        code: Code::ServiceUnavailable,
        message: message.to_owned(),
        detail: Some("upstream said 503".to_owned()),
        at: START,
        run_goes_on: true,
        run: outlast_core::RunStatus::Unknown,
    }
}

/// A report with awkward text in it.
pub fn a_report() -> Output {
    let text = "# Líne one\r\n\u{0}\t\"quoted\" \\ 日本語 \u{1F600} [1]\n\n".repeat(500);
    let source = Source {
        number: 1,
        url: "https://example.org/?a=1&b=%20".to_owned(),
        title: Some("An <example>".to_owned()),
        ..Source::default()
    };
    Output {
        body: Body::report(text, vec![source]),
        model: Some("sonar-deep-research".to_owned()),
        usage: Usage { input_tokens: 7, output_tokens: 11, total_tokens: 18, ..Usage::default() },
        cost: Cost::Reported(NanoUsd(795_000_001)),
    }
}

/// The settlement of a success, with [`a_report`].
pub(super) fn succeed() -> Settlement {
    Settlement::Succeed {
        output: a_report().into(),
        raw: Some(b"{\"as\":\"it came\"}".to_vec().into()),
    }
}

/// The settlement of a failure.
pub(super) fn fail() -> Settlement {
    Settlement::Fail { failure: a_failure("no luck"), raw: None }
}

/// The plain job's owner.
pub(super) fn alice() -> OwnerId {
    OwnerId::new("alice")
}

/// Another owner.
pub(super) fn bob() -> OwnerId {
    OwnerId::new("bob")
}

/// An owner who has no jobs.
pub(super) fn carol() -> OwnerId {
    OwnerId::new("carol")
}

/// The worker with this name.
pub fn worker(name: &str) -> WorkerId {
    WorkerId::new(name)
}

/// The profiles of the suite's workers.
pub fn profiles() -> Vec<Profile> {
    vec![Profile::new("research"), Profile::new("search")]
}
