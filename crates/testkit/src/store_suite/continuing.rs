//! Runs that a new job takes over from an ended one, with their steps, their pages and their row of the ledger (K3).

use std::time::Duration;

use outlast_core::{
    Checkpoint, Code, Failure, Fence, Insert, InsertOutcome, Job, JobId, Key, Lease, NewJob,
    NewStep, Page, Profile, Resend, Scope, Settlement, StepEnd, StepResult, StepStart, StoreError,
    Takeover,
};

use serde_json::json;

use super::fixture::{
    Fixture, a_cost, a_failure, a_job, a_research_key, a_reservation, a_run, alice, an_insert, bob,
};
use super::journaling::{a_page, a_step};
use crate::clock::START;

/// K3: run, steps, outputs, pages and their bytes move to the new job, and nothing of them is left.
pub async fn k3_a_new_job_takes_over_the_run_of_a_failed_one(fixture: Fixture) {
    let old = fixture.fail_with_journal(an_insert(a_research()), Code::ServiceUnavailable).await;
    let new = fixture.take_over(&old, Resend::Refuse).await;
    assert_eq!(new.checkpoint, Checkpoint::Running(a_run("run-1")));
    assert!(steps(&fixture, &old).await.is_empty());
    let before = fixture.read(&old).await;
    assert_eq!((before.journaled_run(), before.run_left()), (None, None));

    let lease = fixture.claim_research().await;
    assert_eq!(lease.job, new.id);
    let done = StepStart::Done("read it".to_owned());
    assert_eq!(fixture.begin(&lease, a_step("done")).await, done);
    let open = StepStart::Open { fence: Fence(1) };
    assert_eq!(fixture.begin(&lease, a_step("open")).await, open, "no consent was given");
    let page = fixture.store.page(&alice(), &[1; 32]).await.unwrap();
    assert_eq!(page, Some(a_page(1)));
    let known: Page = a_page(1);
    fixture.store.save_page(&lease, &known, 1).await.expect("it is the job's own page");

    // The pages and the steps are removed with the new job, not with the old one.
    fixture.store.settle(&lease, super::fixture::succeed()).await.unwrap();
    let later = START.after(Duration::from_secs(60));
    let all = outlast_core::Prune::EndedBefore(later);
    assert_eq!(fixture.store.prune(&Scope::Operator, &all).await.unwrap().jobs, 2);
    assert_eq!(fixture.store.page(&alice(), &[1; 32]).await.unwrap(), None);
    let small = Insert { max_bytes: 1_000, ..an_insert(a_research()) };
    fixture.store.insert(small).await.expect("all bytes are free again");
}

/// K3: `--again` is the consent for the step whose answer is missing.
pub async fn k3_an_open_step_is_sent_once_more_with_consent(fixture: Fixture) {
    let old = fixture.fail_with_journal(an_insert(a_research()), Code::SubmitUnknown).await;
    fixture.take_over(&old, Resend::Allow).await;
    let lease = fixture.claim_research().await;
    assert_eq!(fixture.begin(&lease, a_step("open")).await, StepStart::New);
    let open = StepStart::Open { fence: lease.fence };
    assert_eq!(fixture.begin(&lease, a_step("open")).await, open, "once");
    let steps = steps(&fixture, &lease.job).await;
    let resent: Vec<_> = steps.iter().map(|step| (&*step.key, step.resent)).collect();
    assert!(resent.contains(&("open", 1)) && resent.contains(&("done", 0)), "{resent:?}");
    assert_eq!(fixture.begin(&lease, a_step("new")).await, StepStart::New);
}

/// K3: of many concurrent starts one continues the run; another owner or other settings never do.
pub async fn k3_a_run_is_taken_over_once_by_its_owner_with_the_same_settings(fixture: Fixture) {
    let old = fixture.fail_with_journal(an_insert(a_research()), Code::ServiceUnavailable).await;
    let takeover = Some(Takeover { job: old, open_steps: Resend::Refuse });
    let others = [
        NewJob { owner: bob(), ..a_research() },
        NewJob { profile: Profile::new("researcher other"), ..a_research() },
    ];
    for other in others {
        let insert = Insert { takeover, ..an_insert(other) };
        assert_eq!(fixture.start(insert).await.checkpoint, Checkpoint::NotBegun);
    }
    let unknown = Takeover { job: JobId::new(uuid::Uuid::from_u128(7)), open_steps: Resend::Allow };
    let insert = Insert { takeover: Some(unknown), ..an_insert(a_research()) };
    assert_eq!(fixture.start(insert).await.checkpoint, Checkpoint::NotBegun);
    let starts: Vec<_> = (0..6)
        .map(|_| {
            let store = fixture.store.clone();
            let insert = Insert { takeover, ..an_insert(a_research()) };
            tokio::spawn(async move { store.insert(insert).await.unwrap() })
        })
        .collect();
    let mut continued = 0;
    for start in starts {
        let InsertOutcome::New(job) = start.await.unwrap() else { panic!("it has no key") };
        let is_continued = job.checkpoint == Checkpoint::Running(a_run("run-1"));
        assert_eq!(steps(&fixture, &job.id).await.len(), if is_continued { 2 } else { 0 });
        continued += usize::from(is_continued);
    }
    assert_eq!(continued, 1);
}

/// K3: a start that is refused changes nothing of the ended job.
pub async fn k3_a_refused_start_leaves_the_run_with_its_job(fixture: Fixture) {
    let paid = Insert { reservation: Some(a_reservation(50, None)), ..an_insert(a_research()) };
    let old = fixture.fail_with_journal(paid, Code::ServiceUnavailable).await;
    let takeover = Some(Takeover { job: old, open_steps: Resend::Allow });
    let insert = || Insert { takeover, ..an_insert(a_research()) };
    let limited = a_reservation(50, Some(10));
    let refused = fixture.store.insert(Insert { reservation: Some(limited), ..insert() }).await;
    assert!(matches!(refused, Err(StoreError::BudgetExceeded(_))), "{refused:?}");
    let refused = fixture.store.insert(Insert { max_bytes: 10, ..insert() }).await;
    assert!(matches!(refused, Err(StoreError::TooManyBytes)), "{refused:?}");
    let before = fixture.read(&old).await;
    assert!(before.journaled_run().is_some());
    assert_eq!(steps(&fixture, &old).await.len(), 2);
    assert_eq!(fixture.cents().await, (0, 0, 11, 1));
}

/// K3, promise 2: the same research call goes on where the failure was, if that needs no consent.
pub async fn k3_a_repeated_call_continues_the_run_that_its_failure_left(fixture: Fixture) {
    let key: Key = a_research_key("k", 1);
    let call = || Insert { key: Some(key.clone()), ..an_insert(a_research()) };
    let old = fixture.fail_with_journal(call(), Code::ServiceUnavailable).await;
    fixture.store.record_answer(&old).await.unwrap();
    let new = fixture.start(call()).await;
    assert_eq!(new.checkpoint, Checkpoint::Running(a_run("run-1")));
    assert_eq!(steps(&fixture, &new.id).await.len(), 2);
}

/// K3: only the open steps of a run may have been spent. A step that was sent again counts for each time.
pub async fn k3_a_failed_or_cancelled_run_is_charged_the_sum_of_its_steps(fixture: Fixture) {
    let paid = || Insert { reservation: Some(a_reservation(50, None)), ..an_insert(a_research()) };
    let failed = fixture.begin_research(paid()).await;
    fixture.take_step(&failed, "done", Some(4)).await;
    fixture.fail(&failed, Code::ServiceUnavailable).await;
    assert_eq!(fixture.cents().await, (4, 0, 0, 1), "all steps have ended");

    let open = fixture.begin_research(paid()).await;
    fixture.take_step(&open, "done", Some(4)).await;
    fixture.take_step(&open, "open", None).await;
    fixture.store.cancel(&Scope::Operator, &open.job).await.unwrap();
    assert_eq!(fixture.cents().await, (4, 0, 4 + 7, 2), "the open step counts at its bound");

    let resent = fixture.begin_research(paid()).await;
    fixture.take_step(&resent, "twice", None).await;
    let again = NewStep { resend: Resend::Allow, ..a_paid_step("twice") };
    fixture.begin(&resent, again).await;
    fixture.store.end_step(&resent, "twice", &end(Some(2))).await.unwrap();
    fixture.fail(&resent, Code::ServiceUnavailable).await;
    assert_eq!(fixture.cents().await, (4 + 7 + 2, 0, 11, 3), "the first send counts as spent");

    let nothing = fixture.begin_research(paid()).await;
    fixture.fail(&nothing, Code::ServiceUnavailable).await;
    assert_eq!(fixture.cents().await, (13, 0, 11, 3), "no step was paid for");
}

/// K3: the new job's row replaces the old one, and is decided by the limits like any other.
pub async fn k3_the_row_of_a_continued_run_counts_once(fixture: Fixture) {
    let paid = |per_day| Insert {
        reservation: Some(a_reservation(50, per_day)),
        ..an_insert(a_research())
    };
    let old = fixture.fail_with_journal(paid(None), Code::SubmitUnknown).await;
    assert_eq!(fixture.cents().await, (0, 0, 11, 1));
    let takeover = Some(Takeover { job: old, open_steps: Resend::Allow });
    // What the run counted for before is not added to what it may cost.
    let new = fixture.start(Insert { takeover, ..paid(Some(50)) }).await;
    assert_eq!(fixture.cents().await, (0, 50, 0, 1));
    let rows = |id| {
        let store = fixture.store.clone();
        async move { store.ledger_rows(&Scope::Operator, &id).await.unwrap().len() }
    };
    assert_eq!((rows(old).await, rows(new.id).await), (0, 1));
    let lease = fixture.claim_research().await;
    fixture.begin(&lease, a_paid_step("open")).await;
    fixture.store.end_step(&lease, "open", &end(Some(3))).await.unwrap();
    fixture.fail(&lease, Code::ServiceUnavailable).await;
    assert_eq!(fixture.cents().await, (4 + 7 + 3, 0, 0, 1), "the whole run, in one row");
}

/// K12: the new job of a failed or cancelled command begins again and takes over the steps, as it was asked.
pub async fn k12_a_repeated_command_takes_over_its_steps(fixture: Fixture) {
    for open_steps in [Resend::Refuse, Resend::Allow] {
        fixture.add(a_command()).await;
        let lease = fixture.claim().await.lease;
        let run = Checkpoint::Running(a_run("group"));
        fixture.store.checkpoint(&lease, &run).await.expect("the lease is fresh");
        fixture.take_step(&lease, "done", Some(0)).await;
        fixture.take_step(&lease, "open", None).await;
        match open_steps {
            Resend::Refuse => fixture.fail(&lease, Code::ExecutionError).await,
            Resend::Allow => drop(fixture.cancel(&lease.job).await),
        }
        let takeover = Some(Takeover { job: lease.job, open_steps });
        let new = fixture.start(Insert { takeover, ..an_insert(a_command()) }).await;
        assert_eq!(new.checkpoint, Checkpoint::NotBegun, "it begins again");
        assert_eq!(fixture.read(&lease.job).await.checkpoint, run, "the ended job keeps its run");
        assert_eq!(steps(&fixture, &lease.job).await.len(), 0);
        let lease = fixture.claim().await.lease;
        assert_eq!(lease.job, new.id);
        let done = StepStart::Done("read it".to_owned());
        assert_eq!(fixture.begin(&lease, a_step("done")).await, done);
        let open = match open_steps {
            Resend::Refuse => StepStart::Open { fence: Fence(1) },
            Resend::Allow => StepStart::New,
        };
        assert_eq!(fixture.begin(&lease, a_step("open")).await, open);
        fixture.store.settle(&lease, super::fixture::succeed()).await.unwrap();
    }
}

impl Fixture {
    /// Starts a research job, and claims it with a run under way.
    async fn begin_research(&self, insert: Insert) -> Lease {
        self.start(insert).await;
        let lease = self.claim_research().await;
        let running = Checkpoint::Running(a_run("run-1"));
        self.store.checkpoint(&lease, &running).await.expect("the lease is fresh");
        lease
    }

    /// Runs a research job that fails after a step, a page and the beginning of another step.
    async fn fail_with_journal(&self, insert: Insert, code: Code) -> JobId {
        let lease = self.begin_research(insert).await;
        self.take_step(&lease, "done", Some(4)).await;
        self.store.save_page(&lease, &a_page(1), u64::MAX).await.expect("there is room");
        self.take_step(&lease, "open", None).await;
        self.fail(&lease, code).await;
        lease.job
    }

    async fn claim_research(&self) -> Lease {
        let profiles = [a_research().profile];
        let worker = super::fixture::worker("researcher");
        let claimed = self.store.claim(&worker, &profiles, Duration::from_secs(30)).await;
        claimed.expect("claims never fail").expect("a job waits").lease
    }

    async fn begin(&self, lease: &Lease, step: NewStep) -> StepStart {
        self.store.begin_step(lease, &step).await.expect("the lease is fresh")
    }

    /// Takes a step that may cost 7 cents, and ends it at this cost.
    async fn take_step(&self, lease: &Lease, key: &str, cents: Option<u64>) {
        self.begin(lease, a_paid_step(key)).await;
        if cents.is_some() {
            self.store.end_step(lease, key, &end(cents)).await.expect("the lease is fresh");
        }
    }

    async fn fail(&self, lease: &Lease, code: Code) {
        let failure = Failure { code, run_goes_on: true, ..a_failure("down") };
        let settlement = Settlement::Fail { failure, raw: None };
        self.store.settle(lease, settlement).await.expect("the lease is fresh");
    }

    async fn start(&self, insert: Insert) -> Job {
        match self.store.insert(insert).await.expect("the job is inserted") {
            InsertOutcome::New(job) => job,
            InsertOutcome::Existing { job, .. } => panic!("{} existed", job.id),
        }
    }

    async fn take_over(&self, job: &JobId, open_steps: Resend) -> Job {
        let takeover = Some(Takeover { job: *job, open_steps });
        self.start(Insert { takeover, ..an_insert(a_research()) }).await
    }
}

fn a_research() -> NewJob {
    NewJob { profile: Profile::new("researcher https://models.example m"), ..a_job() }
}

fn a_command() -> NewJob {
    NewJob { request: json!({ "arguments": {} }).into(), ..a_job() }
}

fn a_paid_step(key: &str) -> NewStep {
    NewStep { bound: a_cost(7), ..a_step(key) }
}

fn end(cents: Option<u64>) -> StepEnd {
    let spent = a_cost(cents.unwrap_or_default());
    StepEnd { spent, ..StepEnd::free(StepResult::Done("read it".to_owned())) }
}

async fn steps(fixture: &Fixture, job: &JobId) -> Vec<outlast_core::JournalStep> {
    fixture.store.steps(&Scope::Operator, job).await.expect("reads never fail")
}
