//! The ledger: reservations at the insert, refusals, and settlement at each end of an attempt (G6).

use std::sync::Arc;
use std::time::Duration;

use outlast_core::{
    BudgetLimit, Checkpoint, Code, ConversationId, Cost, Failure, Insert, InsertOutcome, Job,
    NewJob, Output, Prune, RemoteStop, Reservation, RunStatus, Scope, Settlement, SpendBy,
    SpendQuery, SpendSum, StoreError,
};

use super::fixture::{a_research_key, alice, bob, carol, fail, succeed};
use super::{Fixture, a_cost, a_failure, a_job, a_key, a_report, a_reservation, a_run, an_insert};

const DAY: Duration = Duration::from_secs(86_400);

fn paid(job: NewJob, reservation: Reservation) -> Insert {
    Insert { reservation: Some(reservation), ..an_insert(job) }
}

impl Fixture {
    /// Inserts a job that usually costs this many cents.
    async fn add_paid(&self, cents: u64) -> Job {
        self.insert_new(paid(a_job(), a_reservation(cents, None))).await
    }

    async fn insert_new(&self, insert: Insert) -> Job {
        match self.store.insert(insert).await.expect("the job is inserted") {
            InsertOutcome::New(job) => job,
            InsertOutcome::Existing { job, .. } => panic!("{} existed", job.id),
        }
    }

    /// Moves the next job to this checkpoint and settles it there.
    async fn end_at(&self, checkpoint: &Checkpoint, settlement: Settlement) -> Job {
        let claimed = self.claim().await;
        self.store.checkpoint(&claimed.lease, checkpoint).await.expect("the lease is fresh");
        self.store.settle(&claimed.lease, settlement).await.expect("the lease is fresh")
    }

    async fn spent_by(&self, scope: &Scope, by: SpendBy) -> Vec<SpendSum> {
        let query = SpendQuery { by, since: self.clock_now().before(1_000 * DAY).day() };
        self.store.spend(scope, &query).await.expect("reads never fail")
    }

    /// The cents spent, reserved and possibly spent, and the number of runs.
    pub(super) async fn cents(&self) -> (u64, u64, u64, u64) {
        let sums = self.spent_by(&Scope::Operator, SpendBy::Provider).await;
        let Some(SpendSum { spent, reserved, maybe, runs, .. }) = sums.first() else {
            return (0, 0, 0, 0);
        };
        let [spent, reserved, maybe] = [spent, reserved, maybe].map(|nanos| nanos.0 / 10_000_000);
        (spent, reserved, maybe, *runs)
    }
}

fn report(cents: u64) -> Settlement {
    let output = Output { cost: Cost::Reported(a_cost(cents)), ..a_report() };
    Settlement::Succeed { output: output.into(), raw: None }
}

fn beginning() -> Checkpoint {
    Checkpoint::Beginning { key: "k".to_owned() }
}

fn under_way() -> Checkpoint {
    Checkpoint::Running(a_run("run-1"))
}

fn failed(code: Code) -> Settlement {
    let failure = Failure { code, run_goes_on: false, ..a_failure("no") };
    Settlement::Fail { failure, raw: None }
}

fn retry(checkpoint: Checkpoint) -> Settlement {
    Settlement::Retry { failure: a_failure("down"), wait: Duration::ZERO, checkpoint }
}

/// Exact to the nano-dollar, under the model that did the work.
pub async fn g6_a_reservation_becomes_what_the_run_cost(fixture: Fixture) {
    let model = Some("expected".to_owned());
    let reservation = Reservation { model, ..a_reservation(50, None) };
    fixture.insert_new(paid(a_job(), reservation)).await;
    assert_eq!(fixture.cents().await, (0, 50, 0, 1));
    assert_eq!(fixture.spent_by(&Scope::Operator, SpendBy::Model).await[0].key, "expected");
    fixture.end_at(&under_way(), succeed()).await;
    let expected = SpendSum {
        key: "sonar-deep-research".to_owned(),
        spent: outlast_core::NanoUsd(795_000_001),
        runs: 1,
        ..SpendSum::default()
    };
    assert_eq!(fixture.spent_by(&Scope::Operator, SpendBy::Model).await, [expected]);
}

/// The limit itself can be reached, and each owner has one; if one is set, an unknown cost is refused.
pub async fn g6_a_start_over_the_days_limit_is_refused_and_leaves_nothing(fixture: Fixture) {
    let insert = |owner, cents| {
        let job = NewJob { owner, ..a_job() };
        fixture.store.insert(paid(job, a_reservation(cents, Some(100))))
    };
    insert(alice(), 60).await.unwrap();
    insert(alice(), 40).await.unwrap();
    match insert(alice(), 1).await {
        Err(StoreError::BudgetExceeded(refused)) => {
            assert_eq!(refused.limit, BudgetLimit::Day);
            assert_eq!((refused.counted, refused.typical), (a_cost(100), Some(a_cost(1))));
            assert!(refused.next_day.is_some());
        }
        other => panic!("{other:?}"),
    }
    insert(bob(), 100).await.unwrap();
    let mut unknown = a_reservation(0, Some(100));
    unknown.terms.typical = None;
    let refused = fixture.store.insert(paid(NewJob { owner: carol(), ..a_job() }, unknown)).await;
    assert!(matches!(refused, Err(StoreError::BudgetExceeded(_))), "{refused:?}");
    assert_eq!(fixture.cents().await, (0, 200, 0, 3));
    let query = outlast_core::JobQuery { limit: 10, ..Default::default() };
    assert_eq!(fixture.store.list(&Scope::Operator, &query).await.unwrap().jobs.len(), 3);
}

/// Refusal and reservation are one step.
pub async fn g6_concurrent_starts_never_exceed_the_limit(fixture: Fixture) {
    let fixture = Arc::new(fixture);
    let tasks: Vec<_> = (0..40)
        .map(|_| {
            let fixture = fixture.clone();
            let insert = paid(a_job(), a_reservation(10, Some(105)));
            tokio::spawn(async move { fixture.store.insert(insert).await })
        })
        .collect();
    let mut made = 0;
    for task in tasks {
        match task.await.unwrap() {
            Ok(InsertOutcome::New(_)) => made += 1,
            Err(StoreError::BudgetExceeded(_)) => {}
            other => panic!("{other:?}"),
        }
    }
    assert_eq!((made, fixture.cents().await), (10, (0, 100, 0, 10)));
}

/// The other refusals come first; an existing job is found whatever the limit.
pub async fn g6_money_is_refused_last_and_a_repeated_start_reserves_nothing(fixture: Fixture) {
    let keyed = |input, cents, per_day| Insert {
        key: Some(a_key("k", input)),
        ..paid(a_job(), a_reservation(cents, Some(per_day)))
    };
    let first = fixture.insert_new(keyed(1, 50, 100)).await;
    match fixture.store.insert(keyed(1, 50, 0)).await {
        Ok(InsertOutcome::Existing { job, .. }) => assert_eq!(job.id, first.id),
        other => panic!("{other:?}"),
    }
    assert_eq!(fixture.cents().await, (0, 50, 0, 1));
    let conflict = fixture.store.insert(keyed(2, 50, 0)).await;
    assert!(matches!(conflict, Err(StoreError::KeyConflict(_))), "{conflict:?}");
    let too_many = Insert { max_unfinished: 1, ..paid(a_job(), a_reservation(50, Some(0))) };
    let refused = fixture.store.insert(too_many).await;
    assert!(matches!(refused, Err(StoreError::TooManyJobs)), "{refused:?}");
    let too_long = Insert { max_bytes: 1, ..paid(a_job(), a_reservation(50, Some(0))) };
    let refused = fixture.store.insert(too_long).await;
    assert!(matches!(refused, Err(StoreError::TooManyBytes)), "{refused:?}");
    let refused = fixture.store.insert(paid(a_job(), a_reservation(50, Some(0)))).await;
    assert!(matches!(refused, Err(StoreError::BudgetExceeded(_))), "{refused:?}");
}

/// A failure with this status of the run.
fn ended_at(run: RunStatus) -> Settlement {
    let failure = Failure { run, run_goes_on: false, ..a_failure("no") };
    let failure = Failure { code: Code::ExecutionError, ..failure };
    Settlement::Fail { failure, raw: None }
}

/// Refused, never sent, or cancelled before it was sent.
pub async fn g6_a_reservation_that_was_certainly_not_spent_is_released(fixture: Fixture) {
    fixture.add_paid(50).await;
    fixture.end_at(&beginning(), retry(Checkpoint::NotBegun)).await;
    assert_eq!(fixture.cents().await, (0, 50, 0, 1), "another try follows");
    fixture.end_at(&beginning(), failed(Code::Unauthorized)).await;
    let queued = fixture.add_paid(50).await;
    fixture.cancel(&queued.id).await;
    let sending = fixture.add_paid(50).await;
    let claimed = fixture.claim().await;
    fixture.store.checkpoint(&claimed.lease, &beginning()).await.unwrap();
    fixture.cancel(&sending.id).await;
    assert_eq!(fixture.cents().await, (0, 0, 50, 1), "a run may come of it");
    fixture.store.record_stop(&sending.id, RemoteStop::NotNeeded, Cost::Unknown).await.unwrap();
    assert_eq!(fixture.cents().await, (0, 0, 0, 0));
}

/// Unknown, lost, failed, cancelled while it ran, or done at an unknown cost.
pub async fn g6_a_reservation_that_may_have_been_spent_is_kept(fixture: Fixture) {
    let cost = Cost::Unknown;
    let output = Output { cost, ..a_report() };
    let unpriced = Settlement::Succeed { output: output.into(), raw: None };
    let ends = [
        (beginning(), failed(Code::SubmitUnknown)),
        (under_way(), failed(Code::RunLost)),
        (under_way(), failed(Code::ExecutionError)),
        (under_way(), unpriced),
    ];
    for (checkpoint, settlement) in ends {
        fixture.add_paid(10).await;
        fixture.end_at(&checkpoint, settlement).await;
    }
    assert_eq!(fixture.cents().await, (0, 0, 40, 4));
    let running = fixture.add_paid(10).await;
    let claimed = fixture.claim().await;
    fixture.store.checkpoint(&claimed.lease, &under_way()).await.unwrap();
    fixture.cancel(&running.id).await;
    fixture.store.record_stop(&running.id, RemoteStop::Ended, Cost::Unknown).await.unwrap();
    assert_eq!(fixture.cents().await, (0, 0, 50, 5));
    let refused = fixture.store.insert(paid(a_job(), a_reservation(10, Some(59)))).await;
    assert!(matches!(refused, Err(StoreError::BudgetExceeded(_))), "it counts: {refused:?}");
}

/// The failed run may have been paid for; the next one has its own reservation.
pub async fn g6_another_run_of_a_job_is_another_row(fixture: Fixture) {
    fixture.add_paid(50).await;
    fixture.end_at(&under_way(), retry(Checkpoint::NotBegun)).await;
    assert_eq!(fixture.cents().await, (0, 50, 50, 2));
    fixture.end_at(&under_way(), retry(under_way())).await;
    assert_eq!(fixture.cents().await, (0, 50, 50, 2), "the same run is resumed");
    fixture.end_at(&under_way(), report(41)).await;
    assert_eq!(fixture.cents().await, (41, 0, 50, 2));
}

/// A person or the same call may resume it, whatever the limit is by then.
pub async fn g6_a_resumed_run_is_counted_once(fixture: Fixture) {
    let key = a_research_key("k", 1);
    let call =
        |per_day| Insert { key: Some(key.clone()), ..paid(a_job(), a_reservation(50, per_day)) };
    let first = fixture.insert_new(call(None)).await;
    fixture.end_at(&under_way(), fail()).await;
    fixture.store.record_answer(&first.id).await.unwrap();
    assert_eq!(fixture.cents().await, (0, 0, 50, 1));
    let second = fixture.insert_new(call(Some(0))).await;
    assert_eq!(second.checkpoint, under_way());
    assert_eq!(fixture.cents().await, (0, 50, 0, 1));
    fixture.end_at(&under_way(), fail()).await;
    let by_hand =
        Insert { resumed_run: Some(a_run("run-1")), ..paid(a_job(), a_reservation(50, Some(0))) };
    fixture.insert_new(by_hand).await;
    fixture.end_at(&under_way(), report(41)).await;
    assert_eq!(fixture.cents().await, (41, 0, 0, 1));
}

/// A3: a run that completed nevertheless, and was paid for, counts as spent; the job that fetches its report
/// changes nothing, whatever its result.
pub async fn g6_the_cost_of_a_cancelled_or_failed_run_is_spent_once_it_is_known(fixture: Fixture) {
    let cancelled = fixture.add_paid(50).await;
    let claimed = fixture.claim().await;
    fixture.store.checkpoint(&claimed.lease, &under_way()).await.unwrap();
    fixture.cancel(&cancelled.id).await;
    assert_eq!(fixture.cents().await, (0, 0, 50, 1));
    let cost = Cost::Reported(a_cost(41));
    fixture.store.record_stop(&cancelled.id, RemoteStop::Completed, cost).await.unwrap();
    assert_eq!(fixture.cents().await, (41, 0, 0, 1));
    let fetch = || Insert {
        resumed_run: Some(a_run("run-1")),
        ..paid(a_job(), a_reservation(50, Some(0)))
    };
    fixture.insert_new(fetch()).await;
    assert_eq!(fixture.cents().await, (41, 0, 0, 1));
    fixture.end_at(&under_way(), fail()).await;
    assert_eq!(fixture.cents().await, (41, 0, 0, 1), "it is known all the same");
    fixture.insert_new(fetch()).await;
    fixture.end_at(&under_way(), report(41)).await;
    assert_eq!(fixture.cents().await, (41, 0, 0, 1));
    fixture.add_paid(50).await;
    fixture.end_at(&under_way(), ended_at(RunStatus::Ended(Cost::Reported(a_cost(7))))).await;
    assert_eq!(fixture.cents().await, (48, 0, 0, 2), "a failed run whose cost is known");
    fixture.add_paid(50).await;
    fixture.end_at(&under_way(), ended_at(RunStatus::Ended(Cost::Estimate(a_cost(7))))).await;
    assert_eq!(fixture.cents().await, (48, 0, 50, 3), "a guess is not known");
}

/// A free session was created, and the question that costs money was refused in it.
pub async fn g6_a_refusal_inside_a_free_run_is_released(fixture: Fixture) {
    fixture.add_paid(50).await;
    fixture.end_at(&under_way(), ended_at(RunStatus::NotCharged)).await;
    assert_eq!(fixture.cents().await, (0, 0, 0, 0));
}

/// The runs of a job are distinguishable.
pub async fn g6_each_run_of_a_job_has_its_id_and_its_cost(fixture: Fixture) {
    let job = fixture.add_paid(50).await;
    fixture.end_at(&under_way(), retry(Checkpoint::NotBegun)).await;
    fixture.end_at(&Checkpoint::Running(a_run("run-2")), report(41)).await;
    let own = Scope::Owner(job.new.owner.clone());
    let rows = fixture.store.ledger_rows(&own, &job.id).await.unwrap();
    let shown: Vec<_> =
        rows.iter().map(|row| (row.run, row.run_id.as_deref(), row.counts())).collect();
    assert_eq!(shown, [(1, Some("run-1"), a_cost(50)), (2, Some("run-2"), a_cost(41))]);
    let stranger = Scope::Owner(outlast_core::OwnerId::new("mallory"));
    assert!(fixture.store.ledger_rows(&stranger, &job.id).await.unwrap().is_empty());
}

/// Days are the store's, in UTC; yesterday's unfinished jobs count as yesterday's money.
pub async fn g6_a_run_counts_on_the_day_it_was_reserved(fixture: Fixture) {
    let today = fixture.clock_now().day();
    let midnight = today.next().begins();
    fixture.clock.advance(midnight.since(fixture.clock_now()) - Duration::from_millis(1));
    let insert = || fixture.store.insert(paid(a_job(), a_reservation(50, Some(60))));
    insert().await.unwrap();
    let refused = insert().await;
    let Err(StoreError::BudgetExceeded(refused)) = refused else { panic!("{refused:?}") };
    assert_eq!(refused.next_day, Some(Duration::from_millis(1)));
    fixture.clock.advance(Duration::from_millis(1));
    insert().await.unwrap();
    fixture.end_at(&under_way(), report(41)).await;
    let days = fixture.spent_by(&Scope::Operator, SpendBy::Day).await;
    let days: Vec<_> = days.iter().map(|day| (day.key.as_str(), day.spent, day.reserved)).collect();
    let [first, second] = [today, today.next()].map(|day| day.to_string());
    assert_eq!(
        days,
        [(first.as_str(), a_cost(41), a_cost(0)), (second.as_str(), a_cost(0), a_cost(50))]
    );
    let since = SpendQuery { by: SpendBy::Day, since: today.next() };
    assert_eq!(fixture.store.spend(&Scope::Operator, &since).await.unwrap().len(), 1);
}

/// Only the prune by its own age removes it.
pub async fn g6_the_ledger_outlives_its_jobs_for_400_days(fixture: Fixture) {
    let keep = Some(Duration::from_secs(10));
    let conversation = ConversationId::new("talk");
    let turn = NewJob { conversation: Some(conversation.clone()), ..a_job() };
    for job in [NewJob { keep, ..a_job() }, a_job(), turn] {
        fixture.insert_new(paid(job, a_reservation(50, None))).await;
        fixture.end_at(&under_way(), report(10)).await;
    }
    fixture.clock.advance(Duration::from_secs(11));
    let now = fixture.clock_now();
    let all = [Prune::Expired, Prune::EndedBefore(now), Prune::Conversation(conversation)];
    for prune in &all {
        assert_eq!(fixture.store.prune(&Scope::Operator, prune).await.unwrap().jobs, 1);
    }
    assert_eq!(fixture.cents().await, (30, 0, 0, 3));
    fixture.clock.advance(400 * DAY - Duration::from_secs(11));
    for day in 1..8 {
        fixture.store.prune(&Scope::Operator, &Prune::Expired).await.unwrap();
        fixture.store.prune(&Scope::Operator, &Prune::EndedBefore(now)).await.unwrap();
        assert_eq!(fixture.cents().await, (30, 0, 0, 3), "day {day}");
        fixture.clock.advance(DAY);
    }
    fixture.store.prune(&Scope::Owner(bob()), &Prune::Expired).await.unwrap();
    assert_eq!(fixture.cents().await, (30, 0, 0, 3));
    fixture.store.prune(&Scope::Operator, &Prune::Expired).await.unwrap();
    assert_eq!(fixture.cents().await, (0, 0, 0, 0));
}

/// A clock that is far ahead at a start, or at several within a day, erases nothing; a missed day restarts the
/// count.
pub async fn g6_a_wrong_clock_does_not_erase_the_ledger(fixture: Fixture) {
    fixture.add_paid(50).await;
    fixture.end_at(&under_way(), report(10)).await;
    let sweep = async || {
        fixture.store.prune(&Scope::Operator, &Prune::Expired).await.unwrap();
    };
    fixture.clock.advance(401 * DAY);
    for _ in 0..20 {
        sweep().await;
    }
    assert_eq!(fixture.cents().await, (10, 0, 0, 1), "one day");
    for _ in 0..6 {
        fixture.clock.advance(DAY);
        sweep().await;
    }
    fixture.clock.advance(2 * DAY);
    for day in 0..7 {
        sweep().await;
        assert_eq!(fixture.cents().await, (10, 0, 0, 1), "day {day} after a gap");
        fixture.clock.advance(DAY);
    }
    sweep().await;
    assert_eq!(fixture.cents().await, (0, 0, 0, 0), "eight days in a row");
}

/// A reservation at a provider that stops a run at a cap: usually $1, $2 by default.
fn a_capped_reservation(per_job: Option<u64>, per_day: Option<u64>) -> Reservation {
    let mut reservation = a_reservation(100, per_day);
    reservation.terms.default_cap = Some(a_cost(200));
    reservation.terms.limits.per_job = per_job.map(a_cost);
    reservation
}

fn cap(job: &Job) -> Option<u64> {
    job.allowance.and_then(|allowance| allowance.cap).map(|cap| cap.0 / 10_000_000)
}

/// The caps of a day add up to no more than its limit; each is stored with its job and reserved in full.
pub async fn g6_caps_are_decided_with_the_insert_and_stay_within_the_limits(fixture: Fixture) {
    let start = || fixture.store.insert(paid(a_job(), a_capped_reservation(None, Some(500))));
    let mut caps = Vec::new();
    for _ in 0..3 {
        let Ok(InsertOutcome::New(job)) = start().await else { panic!("there is room") };
        caps.push(cap(&job));
        assert_eq!(cap(&fixture.read(&job.id).await), cap(&job), "it is stored");
        assert_eq!(cap(&fixture.claim().await.job), cap(&job), "a worker gets it");
    }
    assert_eq!(caps, [Some(200), Some(200), Some(100)]);
    assert_eq!(fixture.cents().await, (0, 500, 0, 3));
    let refused = start().await;
    assert!(matches!(refused, Err(StoreError::BudgetExceeded(_))), "{refused:?}");
    let bobs = NewJob { owner: bob(), ..a_job() };
    let of_job = fixture.insert_new(paid(bobs, a_capped_reservation(Some(120), None))).await;
    assert_eq!(cap(&of_job), Some(120));
}

/// Another run of the same job gets the rest of the job's limit; if that is too little, the job ends.
pub async fn g6_another_run_of_a_job_stays_within_the_limits(fixture: Fixture) {
    fixture.insert_new(paid(a_job(), a_capped_reservation(Some(350), None))).await;
    let second = fixture.end_at(&under_way(), retry(Checkpoint::NotBegun)).await;
    assert_eq!((second.ended_at(), cap(&second)), (None, Some(150)));
    assert_eq!(cap(&fixture.read(&second.id).await), Some(150), "it is stored");
    assert_eq!(fixture.cents().await, (0, 150, 200, 2));
    let ended = fixture.end_at(&under_way(), retry(Checkpoint::NotBegun)).await;
    assert!(matches!(ended.state, outlast_core::JobState::Failed { .. }), "{ended:?}");
    let message = &ended.failures.last().unwrap().message;
    assert!(message.contains("$3.50 of the $3.50 that one job may cost"), "{message}");
    assert_eq!(fixture.read(&ended.id).await.failures, ended.failures);
    assert_eq!(fixture.cents().await, (0, 0, 350, 2));
}

/// A sum that overflows is the largest number, not an error.
pub async fn g6_sums_of_absurd_amounts_are_the_largest_number(fixture: Fixture) {
    let largest = outlast_core::NanoUsd::MAX_SUM;
    let mut absurd = a_reservation(0, None);
    absurd.terms.typical = Some(largest);
    for _ in 0..3 {
        fixture.insert_new(paid(a_job(), absurd.clone())).await;
    }
    let sums = fixture.spent_by(&Scope::Operator, SpendBy::Provider).await;
    assert_eq!((sums[0].reserved, sums[0].runs), (largest, 3));
    let refused = fixture.store.insert(paid(a_job(), a_reservation(1, Some(1_000)))).await;
    assert!(matches!(refused, Err(StoreError::BudgetExceeded(_))), "{refused:?}");
    let ended = fixture.end_at(&under_way(), retry(Checkpoint::NotBegun)).await;
    let query = outlast_core::JobQuery { limit: 10, ..Default::default() };
    let jobs = fixture.store.list(&Scope::Operator, &query).await.unwrap().jobs;
    let listed = jobs.iter().find(|listed| listed.id == ended.id).unwrap();
    assert_eq!(listed.charge.as_ref().unwrap().amount, largest, "of two runs");
}

/// As in lists of jobs.
pub async fn g6_an_owner_sees_their_own_and_the_operator_everything(fixture: Fixture) {
    fixture.add_paid(50).await;
    let bobs = NewJob { owner: bob(), ..a_job() };
    fixture.insert_new(paid(bobs, a_reservation(7, None))).await;
    let sum = |key: &str, cents| SpendSum {
        key: key.to_owned(),
        reserved: a_cost(cents),
        runs: 1,
        ..SpendSum::default()
    };
    let own = fixture.spent_by(&Scope::Owner(bob()), SpendBy::Owner).await;
    assert_eq!(own, [sum("bob", 7)]);
    let all = fixture.spent_by(&Scope::Operator, SpendBy::Owner).await;
    assert_eq!(all, [sum("alice", 50), sum("bob", 7)]);
    assert!(fixture.spent_by(&Scope::Owner(carol()), SpendBy::Day).await.is_empty());
    let models = fixture.spent_by(&Scope::Owner(bob()), SpendBy::Model).await;
    assert_eq!(models, [sum(SpendSum::UNKNOWN_MODEL, 7)]);
}

/// Even if it ends with a cost, as a job from before the ledger does.
pub async fn g6_a_free_job_has_no_row(fixture: Fixture) {
    fixture.add(a_job()).await;
    fixture.end_at(&under_way(), retry(Checkpoint::NotBegun)).await;
    fixture.end_at(&under_way(), report(10)).await;
    assert_eq!(fixture.cents().await, (0, 0, 0, 0));
}
