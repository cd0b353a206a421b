//! The journal of a run (K2): steps that are recorded before they are sent, and the pages that were read.

use std::time::Duration;

use outlast_core::rules::{MAX_PAGE_TEXT, MAX_STEP_OUTPUT};
use outlast_core::{
    Fence, Insert, JobId, Lease, NanoUsd, NewJob, NewStep, Page, Profile, Prune, Resend,
    ResolveOutcome, Scope, StepDecision, StepEnd, StepResult, StepStart, StepState, StoreError,
};

use super::fixture::{Fixture, a_job, alice, an_insert, bob, fail, succeed, worker};
use crate::clock::START;

/// K2: a step is sent once, and its output is found by every later attempt.
pub async fn k2_a_recorded_step_is_never_sent_again(fixture: Fixture) {
    let lease = fixture.add_claimed().await.lease;
    let rev = fixture.store.rev().await.unwrap();
    assert_eq!(begin(&fixture, &lease, &a_step("read:1")).await, StepStart::New);
    let [open] = &steps(&fixture, &lease.job).await[..] else { panic!("one step") };
    assert_eq!((open.state, open.fence, open.ended_at), (StepState::Sending, lease.fence, None));
    fixture.clock.advance(Duration::from_secs(1));
    let end = StepEnd {
        result: StepResult::Done("found \u{f0000}0 it".to_owned()),
        spent: NanoUsd(7),
        tokens_in: 11,
        tokens_out: 13,
    };
    fixture.store.end_step(&lease, "read:1", &end).await.unwrap();
    let late = StepEnd::free(StepResult::Failed("late".to_owned()));
    fixture.store.end_step(&lease, "read:1", &late).await.unwrap();
    assert_eq!(begin(&fixture, &lease, &a_step("read:2")).await, StepStart::New);
    fixture.store.end_step(&lease, "read:2", &late).await.unwrap();
    assert_eq!(fixture.store.rev().await.unwrap(), rev, "a step is not a change");

    fixture.end_worker(&lease.worker).await;
    let lease = fixture.claim().await.lease;
    let found = StepStart::Done("found \u{f0000}0 it".to_owned());
    assert_eq!(begin(&fixture, &lease, &a_step("read:1")).await, found);
    let failed = StepStart::Failed("late".to_owned());
    assert_eq!(begin(&fixture, &lease, &again(a_step("read:2"))).await, failed);
    let other = NewStep { input_digest: [9; 32], ..a_step("read:1") };
    assert_eq!(begin(&fixture, &lease, &other).await, StepStart::Changed);
    let [one, two] = &steps(&fixture, &lease.job).await[..] else { panic!("two steps") };
    assert_eq!((one.state, two.state), (StepState::Done, StepState::Failed));
    assert_eq!((&*one.kind, one.bound, one.spent), ("read", NanoUsd(5), NanoUsd(7)));
    assert_eq!((one.tokens_in, one.tokens_out, one.resent), (11, 13, 0));
    assert_eq!(one.input_digest, [1; 32]);
    let (started, ended) = (START, Some(START.after(Duration::from_secs(1))));
    assert_eq!((one.started_at, one.ended_at), (started, ended));
}

/// K3: a step without an answer is reported, and sent again only if that is allowed.
pub async fn k3_an_open_step_is_begun_again_only_if_allowed(fixture: Fixture) {
    let first = fixture.add_claimed().await.lease;
    begin(&fixture, &first, &a_step("note:1")).await;
    fixture.end_worker(&first.worker).await;
    let second = fixture.claim().await.lease;
    let open = StepStart::Open { fence: first.fence };
    assert_eq!(begin(&fixture, &second, &a_step("note:1")).await, open);
    let done = StepEnd::free(StepResult::Done("late".to_owned()));
    let not_begun = fixture.store.end_step(&second, "note:1", &done).await;
    assert!(matches!(not_begun, Err(StoreError::NotFound)), "{not_begun:?}");
    assert_eq!(begin(&fixture, &second, &again(a_step("note:1"))).await, StepStart::New);
    let [step] = &steps(&fixture, &first.job).await[..] else { panic!("one step") };
    assert_eq!((step.resent, step.fence), (1, Fence(2)));
    fixture.store.end_step(&second, "note:1", &done).await.unwrap();
    let unknown = fixture.store.end_step(&second, "note:9", &done).await;
    assert!(matches!(unknown, Err(StoreError::NotFound)), "{unknown:?}");
}

/// K12: the decision about a step is one write without a lease, on a job that no worker has.
pub async fn k12_an_interrupted_step_is_resolved_by_its_owner(fixture: Fixture) {
    use ResolveOutcome::{JobRuns, NotOpen, Recorded};
    use StepDecision::{Done, Rerun};
    let first = fixture.add_claimed().await.lease;
    for key in ["one", "two", "three"] {
        begin(&fixture, &first, &a_step(key)).await;
    }
    let done = StepEnd::free(StepResult::Done("out".to_owned()));
    fixture.store.end_step(&first, "three", &done).await.unwrap();
    let (own, job) = (Scope::Owner(alice()), first.job);
    let resolve = async |scope: &Scope, key: &str, decision| {
        fixture.store.resolve_step(scope, &job, key, decision).await
    };
    assert_eq!(resolve(&own, "one", Done).await.unwrap(), JobRuns);
    fixture.end_worker(&first.worker).await;
    let rev = fixture.store.rev().await.unwrap();
    let strangers = resolve(&Scope::Owner(bob()), "one", Done).await;
    assert!(matches!(strangers, Err(StoreError::NotFound)), "{strangers:?}");
    let unknown = JobId::new(uuid::Uuid::from_u128(7));
    let unknown = fixture.store.resolve_step(&Scope::Operator, &unknown, "one", Done).await;
    assert!(matches!(unknown, Err(StoreError::NotFound)), "{unknown:?}");
    assert_eq!(resolve(&own, "four", Done).await.unwrap(), NotOpen);
    assert_eq!(resolve(&own, "three", Rerun).await.unwrap(), NotOpen);
    assert_eq!(resolve(&own, "one", Done).await.unwrap(), Recorded);
    assert_eq!(resolve(&own, "one", Rerun).await.unwrap(), NotOpen);
    assert_eq!(resolve(&own, "two", Rerun).await.unwrap(), Recorded);
    assert_eq!(fixture.store.rev().await.unwrap(), rev, "a step is not a change");

    let second = fixture.claim().await.lease;
    let found = StepStart::Done(String::new());
    assert_eq!(begin(&fixture, &second, &a_step("one")).await, found);
    assert_eq!(begin(&fixture, &second, &a_step("two")).await, StepStart::New);
    let open = StepStart::Open { fence: second.fence };
    assert_eq!(begin(&fixture, &second, &a_step("two")).await, open, "once");
    let found = StepStart::Done("out".to_owned());
    assert_eq!(begin(&fixture, &second, &a_step("three")).await, found);
}

/// K2: a worker whose lease is lost records nothing.
pub async fn k2_a_stale_lease_records_no_step_and_no_page(fixture: Fixture) {
    let stale = fixture.add_claimed().await.lease;
    begin(&fixture, &stale, &a_step("open")).await;
    fixture.end_worker(&stale.worker).await;
    let lease = fixture.claim().await.lease;
    let other = Lease { worker: worker("other"), ..lease.clone() };
    let unknown = Lease { job: JobId::new(uuid::Uuid::from_u128(7)), ..lease.clone() };
    refuse_all(&fixture, &[&stale, &other, &unknown]).await;
    fixture.cancel(&lease.job).await;
    refuse_all(&fixture, &[&lease]).await;
    assert_eq!(steps(&fixture, &lease.job).await.len(), 1);
}

async fn refuse_all(fixture: &Fixture, leases: &[&Lease]) {
    let done = StepEnd::free(StepResult::Done(String::new()));
    for lease in leases {
        let refused = [
            fixture.store.begin_step(lease, &a_step("new")).await.map(drop),
            fixture.store.begin_step(lease, &again(a_step("open"))).await.map(drop),
            fixture.store.end_step(lease, "open", &done).await,
            fixture.store.save_page(lease, &a_page(1), u64::MAX).await,
        ];
        for refused in refused {
            assert!(matches!(refused, Err(StoreError::LeaseLost)), "{refused:?}");
        }
        assert_eq!(fixture.store.page(&alice(), &[1; 32]).await.unwrap(), None);
    }
}

/// K2: of concurrent attempts to begin a step, one sends it.
pub async fn k2_a_step_is_begun_by_one_of_many(fixture: Fixture) {
    let lease = fixture.add_claimed().await.lease;
    let tasks: Vec<_> = (0..8)
        .map(|_| {
            let (store, lease) = (fixture.store.clone(), lease.clone());
            tokio::spawn(async move { store.begin_step(&lease, &a_step("once")).await.unwrap() })
        })
        .collect();
    let mut new = 0;
    for task in tasks {
        match task.await.unwrap() {
            StepStart::New => new += 1,
            other => assert_eq!(other, StepStart::Open { fence: lease.fence }),
        }
    }
    assert_eq!(new, 1);
}

/// K2: steps, outputs and pages count toward the bytes of their owner, and an answer is recorded in any case.
pub async fn k2_a_journal_counts_toward_the_bytes_of_its_owner(fixture: Fixture) {
    let lease = fixture.add_claimed().await.lease;
    let limited = |max_bytes| NewStep { max_bytes, ..a_step("one") };
    let refused = fixture.store.begin_step(&lease, &limited(200)).await;
    assert!(matches!(refused, Err(StoreError::TooManyBytes)), "{refused:?}");
    assert_eq!(begin(&fixture, &lease, &limited(2_000)).await, StepStart::New);
    let end = StepEnd::free(StepResult::Done("x".repeat(4_000)));
    fixture.store.end_step(&lease, "one", &end).await.unwrap();
    let more = NewStep { key: "two".to_owned(), ..limited(4_000) };
    let refused = fixture.store.begin_step(&lease, &more).await;
    assert!(matches!(refused, Err(StoreError::TooManyBytes)), "{refused:?}");
    let refused = fixture.store.save_page(&lease, &a_page(1), 4_000).await;
    assert!(matches!(refused, Err(StoreError::TooManyBytes)), "{refused:?}");
    fixture.store.save_page(&lease, &a_page(1), 100_000).await.unwrap();
    let insert = |owner| {
        let insert = an_insert(NewJob { owner, ..a_job() });
        fixture.store.insert(Insert { max_bytes: 4_000, ..insert })
    };
    assert!(matches!(insert(alice()).await, Err(StoreError::TooManyBytes)));
    insert(bob()).await.unwrap();
    fixture.store.settle(&lease, succeed()).await.unwrap();
    let later = START.after(Duration::from_secs(60));
    fixture.store.prune(&Scope::Operator, &Prune::EndedBefore(later)).await.unwrap();
    insert(alice()).await.unwrap();
}

/// K2: texts are bounded, and contain no U+0000.
pub async fn k2_outputs_and_pages_are_cut_and_cleaned(fixture: Fixture) {
    let lease = fixture.add_claimed().await.lease;
    begin(&fixture, &lease, &a_step("long")).await;
    let end = StepEnd::free(StepResult::Done("\0\u{e9}".repeat(MAX_STEP_OUTPUT)));
    fixture.store.end_step(&lease, "long", &end).await.unwrap();
    let StepStart::Done(output) = begin(&fixture, &lease, &a_step("long")).await else {
        panic!("it is done")
    };
    assert_eq!(output, "\u{e9}".repeat(MAX_STEP_OUTPUT / 2));
    let url = "https://a.example/\0x".to_owned();
    let long = Page { url, text: "\0y".repeat(MAX_PAGE_TEXT + 1), ..a_page(1) };
    fixture.store.save_page(&lease, &long, u64::MAX).await.unwrap();
    let page = fixture.store.page(&alice(), &[1; 32]).await.unwrap().unwrap();
    assert_eq!((page.text.len(), page.truncated), (MAX_PAGE_TEXT, true));
    assert_eq!(page.url, "https://a.example/x");
}

/// K2: a page is kept once for each owner, and as long as a job that has read it.
pub async fn k2_a_page_stays_as_long_as_a_job_that_has_read_it(fixture: Fixture) {
    let mut jobs = Vec::new();
    for owner in [alice(), alice(), bob()] {
        fixture.add(NewJob { owner, ..a_job() }).await;
        let claimed = fixture.claim().await;
        let (page, other) = (a_page(1), Page { text: "other".to_owned(), ..a_page(1) });
        for page in [page, other] {
            fixture.store.save_page(&claimed.lease, &page, u64::MAX).await.unwrap();
        }
        jobs.push(claimed);
    }
    let page = |owner| fixture.store.page(owner, &[1; 32]);
    let (alice, bob) = (&alice(), &bob());
    assert_eq!(page(alice).await.unwrap(), Some(a_page(1)), "the first one is kept");
    assert_eq!(fixture.store.page(alice, &[2; 32]).await.unwrap(), None);
    let mut ends = jobs.into_iter();
    for (alices, bobs) in [(true, true), (false, true), (false, false)] {
        fixture.store.settle(&ends.next().unwrap().lease, succeed()).await.unwrap();
        fixture.clock.advance(Duration::from_secs(1));
        let all = Prune::EndedBefore(fixture.clock_now());
        assert_eq!(fixture.store.prune(&Scope::Operator, &all).await.unwrap().jobs, 1);
        let left = (page(alice).await.unwrap().is_some(), page(bob).await.unwrap().is_some());
        assert_eq!(left, (alices, bobs));
    }
}

/// K2: steps are seen by their owner, and removed with their job.
pub async fn k2_a_journal_belongs_to_its_job(fixture: Fixture) {
    let lease = fixture.add_claimed().await.lease;
    for key in ["b", "a", "c"] {
        begin(&fixture, &lease, &a_step(key)).await;
    }
    fixture.clock.advance(Duration::from_secs(1));
    begin(&fixture, &lease, &again(a_step("a"))).await;
    let keys = |scope| {
        let store = fixture.store.clone();
        async move {
            let steps = store.steps(&scope, &lease.job).await.unwrap();
            steps.into_iter().map(|step| step.key).collect::<Vec<_>>()
        }
    };
    assert_eq!(keys(Scope::Owner(alice())).await, ["b", "c", "a"], "in the order of their start");
    assert_eq!(keys(Scope::Operator).await, ["b", "c", "a"]);
    assert!(keys(Scope::Owner(bob())).await.is_empty());
    let other = fixture.add(a_job()).await;
    let other = fixture.take(&worker("w2"), &other.id).await.unwrap();
    assert_eq!(begin(&fixture, &other.lease, &a_step("a")).await, StepStart::New);
    fixture.store.settle(&lease, succeed()).await.unwrap();
    let later = START.after(Duration::from_secs(60));
    fixture.store.prune(&Scope::Operator, &Prune::EndedBefore(later)).await.unwrap();
    assert!(keys(Scope::Operator).await.is_empty());
    assert_eq!(steps(&fixture, &other.lease.job).await.len(), 1);
}

/// K10: the outputs of steps are read by their kinds and by their owner alone; an open step has none.
pub async fn k10_outputs_of_steps_are_read_by_kind(fixture: Fixture) {
    let lease = fixture.add_claimed().await.lease;
    let kinds = ["search", "read", "note", "read", "read"];
    for (number, kind) in kinds.iter().enumerate() {
        let key = format!("{}:{}", kind, 9 - number);
        begin(&fixture, &lease, &NewStep { kind: (*kind).to_owned(), ..a_step(&key) }).await;
        let text = format!("\u{f0000} {key}");
        let result = if number == 3 { StepResult::Failed(text) } else { StepResult::Done(text) };
        if number < 4 {
            fixture.store.end_step(&lease, &key, &StepEnd::free(result)).await.unwrap();
        }
        fixture.clock.advance(Duration::from_secs(1));
    }
    let read = async |scope: Scope, job: &JobId, kinds: &[&str]| {
        let outputs = fixture.store.step_outputs(&scope, job, kinds).await.unwrap();
        outputs.into_iter().map(|it| (it.key, it.kind, it.output)).collect::<Vec<_>>()
    };
    let row = |kind: &str, number: u8| {
        let key = format!("{kind}:{number}");
        (key.clone(), kind.to_owned(), format!("\u{f0000} {key}"))
    };
    let own = || Scope::Owner(alice());
    let expected = vec![row("search", 9), row("read", 8), row("read", 6)];
    assert_eq!(read(own(), &lease.job, &["read", "search", "none"]).await, expected);
    assert_eq!(read(Scope::Operator, &lease.job, &["note"]).await, [row("note", 7)]);
    assert!(read(own(), &lease.job, &[]).await.is_empty());
    assert!(read(Scope::Owner(bob()), &lease.job, &kinds).await.is_empty());
    assert!(read(own(), &JobId::new(uuid::Uuid::from_u128(7)), &kinds).await.is_empty());
}

/// K10: the journals of expired runs of a provider are removed, with the pages that no other job has read; the jobs stay, and a
/// new job continues nothing of them.
pub async fn k10_old_journals_are_removed_and_their_jobs_stay(fixture: Fixture) {
    let research = || NewJob { profile: Profile::new("search"), ..a_job() };
    let mut runs = Vec::new();
    for new in [research(), research(), a_job(), research()] {
        fixture.add(new).await;
        let claimed = fixture.claim().await;
        begin(&fixture, &claimed.lease, &a_step("one")).await;
        let end = StepEnd::free(StepResult::Done("x".repeat(500)));
        fixture.store.end_step(&claimed.lease, "one", &end).await.unwrap();
        for page in [a_page(1), a_page(10 + runs.len() as u8)] {
            fixture.store.save_page(&claimed.lease, &page, u64::MAX).await.unwrap();
        }
        runs.push(claimed.lease);
    }
    let page = async |digest: u8| fixture.store.page(&alice(), &[digest; 32]).await.unwrap();
    fixture.store.settle(&runs[0], succeed()).await.unwrap();
    fixture.store.settle(&runs[1], fail()).await.unwrap();
    fixture.store.settle(&runs[2], succeed()).await.unwrap();
    fixture.clock.advance(Duration::from_secs(60));
    let moment = fixture.clock_now();
    let (rev, before) = (fixture.store.rev().await.unwrap(), fixture.read(&runs[0].job).await);
    let forget = async |before| fixture.store.forget_runs("search", before).await.unwrap();
    assert_eq!(forget(START).await, 0);
    assert_eq!(forget(moment).await, 2, "the ended ones of the provider");
    assert_eq!(forget(moment).await, 0);
    assert_eq!(fixture.store.rev().await.unwrap(), rev);
    assert_eq!(fixture.read(&runs[0].job).await, before);
    for (run, has_journal) in runs.iter().zip([false, false, true, true]) {
        assert_eq!(!steps(&fixture, &run.job).await.is_empty(), has_journal);
        let scope = Scope::Owner(alice());
        let outputs = fixture.store.step_outputs(&scope, &run.job, &["read"]).await.unwrap();
        assert_eq!(!outputs.is_empty(), has_journal);
    }
    let left = [page(1).await, page(10).await, page(11).await, page(12).await, page(13).await];
    assert_eq!(left.map(|page| page.is_some()), [true, false, false, true, true]);
    // A job that runs goes on.
    let found = StepStart::Done("x".repeat(500));
    assert_eq!(begin(&fixture, &runs[3], &a_step("one")).await, found);
    // The bytes of the owner are those that are left.
    let room = |max_bytes| Insert { max_bytes, ..an_insert(a_job()) };
    fixture.store.settle(&runs[3], succeed()).await.unwrap();
    let later = fixture.clock_now().after(Duration::from_secs(60));
    let all = Prune::EndedBefore(later);
    assert_eq!(fixture.store.prune(&Scope::Operator, &all).await.unwrap().jobs, 4);
    fixture.store.insert(room(1_000)).await.expect("everything is removed");
}

pub(super) fn a_step(key: &str) -> NewStep {
    NewStep {
        key: key.to_owned(),
        kind: "read".to_owned(),
        input_digest: [1; 32],
        bound: NanoUsd(5),
        resend: Resend::Refuse,
        max_bytes: u64::MAX,
    }
}

fn again(step: NewStep) -> NewStep {
    NewStep { resend: Resend::Allow, ..step }
}

pub(super) fn a_page(digest: u8) -> Page {
    Page {
        digest: [digest; 32],
        url: "https://a.example/x".to_owned(),
        final_url: "https://a.example/y".to_owned(),
        status: 200,
        media_type: Some("text/html".to_owned()),
        fetched_at: START,
        truncated: false,
        text: "Leases end. \u{f0000}1 \u{65e5}\u{672c}".to_owned(),
    }
}

async fn begin(fixture: &Fixture, lease: &Lease, step: &NewStep) -> StepStart {
    fixture.store.begin_step(lease, step).await.expect("the lease is fresh and there is room")
}

async fn steps(fixture: &Fixture, job: &JobId) -> Vec<outlast_core::JournalStep> {
    fixture.store.steps(&Scope::Operator, job).await.expect("reads never fail")
}
