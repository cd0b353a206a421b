//! Workers that crash or are taken for dead, by what they left behind (design: "what a kill -9 leaves").

use std::sync::Arc;

use outlast_core::{
    Checkpoint, Code, ProviderErrorKind, RescueBy, ResendPolicy, ResumePolicy, StateKind, Store,
};
use outlast_engine::{Options, WorkerRole};
use outlast_testkit::scripted::{Answer, Begin, Scripted};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::bench::{Bench, LEASE, deliver, millis, research, seconds, semantics_of, text};
use crate::moody::{Method, Mood};
use crate::overheard::Overheard;

/// A11: the upstream sees exactly one submit, and no attempt is spent.
#[tokio::test(start_paused = true)]
async fn a_dead_workers_run_is_resumed_when_its_lease_ends() {
    let log = Overheard::start();
    let bench = Bench::new();
    let first = bench.process().await;
    let id = first.under_way(&bench, 1).await;
    let second = bench.process().await;
    tokio::time::sleep(seconds(100)).await;
    assert!(log.lines_with("took over the jobs").is_empty());
    first.die().await;
    let dead_since = Instant::now();
    bench.until(|| bench.provider.resumes() == 1).await;
    assert!(dead_since.elapsed() <= LEASE + millis(5), "{:?}", dead_since.elapsed());
    bench.quiet().await;
    deliver(&bench, 1);
    let job = second.end(&id).await.job;
    assert_eq!(text(&job), "because");
    assert!(job.failures.is_empty());
    assert_eq!(bench.provider.keys().len(), 1);
    assert_eq!(log.lines_with("took over the jobs").len(), 1);
}

/// A clock that is set forward ends no lease of a live worker. If it leaps by more than live workers need to renew
/// their leases, it is not trusted for the time of a lease.
#[tokio::test(start_paused = true)]
async fn a_clock_that_leaps_costs_no_running_worker_its_job() {
    for (leap, is_doubted) in [(LEASE / 3, false), (LEASE / 3 + millis(1), true), (LEASE, true)] {
        let log = Overheard::start();
        let bench = Bench::new();
        let first = bench.process().await;
        first.under_way(&bench, 1).await;
        let second = bench.process_that_takes(WorkerRole::HeldCallsOnly, Options::default()).await;
        tokio::time::sleep(millis(500)).await;
        bench.store.clock.set_forward(leap);
        // A change makes the others look at the clock.
        second.start(research()).await;
        tokio::time::sleep(seconds(60)).await;
        assert_eq!(bench.provider.resumes(), 0, "{leap:?}");
        assert_eq!(!log.lines_with("set forward").is_empty(), is_doubted, "{leap:?}");
    }
}

/// A lease much shorter than any of our ticks still ends on time.
#[tokio::test(start_paused = true)]
async fn a_short_lease_is_noticed_when_it_ends() {
    let bench = Bench::new();
    let lease = millis(1_500);
    let first = bench.process_with(Options { lease, ..Options::default() }).await;
    first.under_way(&bench, 1).await;
    let _second = bench.process_with(Options { lease, ..Options::default() }).await;
    tokio::time::sleep(seconds(60)).await;
    assert_eq!(bench.provider.resumes(), 0, "kept alive");
    first.die().await;
    let dead_since = Instant::now();
    bench.until(|| bench.provider.resumes() == 1).await;
    assert!(dead_since.elapsed() <= lease + millis(5), "{:?}", dead_since.elapsed());
}

/// B9a: it cannot be known whether the request was accepted.
#[tokio::test(start_paused = true)]
async fn a_worker_that_died_while_beginning_leaves_a_paid_job_unknown() {
    let bench = Bench::new();
    let first = bench.process().await;
    bench.provider.next_begins([Begin::RunAfter(Arc::new(Notify::new()))]);
    let id = first.start(research()).await;
    bench.quiet().await;
    assert!(matches!(bench.job(&id).await.checkpoint, Checkpoint::Beginning { .. }));
    first.die().await;
    bench.first_claimant_ends().await;
    let second = bench.process().await;
    let job = second.end(&id).await.job;
    assert_eq!(job.state.kind(), StateKind::Failed);
    assert_eq!(job.failures[0].code, Code::SubmitUnknown);
    assert_eq!(bench.provider.keys().len(), 1, "not sent again");
}

/// B9a: if the provider honours a key, or its work may be done twice, it is asked again under the same key.
#[tokio::test(start_paused = true)]
async fn a_worker_that_died_while_beginning_leaves_a_safe_job_to_be_begun_again() {
    for again in [ResendPolicy::WithKey, ResendPolicy::Idempotent] {
        let bench =
            Bench::over(Scripted::with_semantics(semantics_of(again, ResumePolicy::Always)));
        let first = bench.process().await;
        bench.provider.next_begins([Begin::RunAfter(Arc::new(Notify::new()))]);
        let id = first.start(research()).await;
        bench.quiet().await;
        first.die().await;
        bench.first_claimant_ends().await;
        let second = bench.process().await;
        tokio::time::sleep(LEASE + seconds(1)).await;
        deliver(&bench, 2);
        let job = second.end(&id).await.job;
        assert_eq!(text(&job), "because");
        assert!(job.failures.is_empty());
        let keys = bench.provider.keys();
        assert_eq!(keys[0], keys[1], "{again:?}");
    }
}

/// A job that was claimed, with nothing sent, is simply run again.
#[tokio::test(start_paused = true)]
async fn a_worker_that_died_before_beginning_leaves_nothing_behind() {
    let bench = Bench::new();
    let first = bench.process().await;
    bench.store.next(Method::Checkpoint, [Mood::After(Arc::new(Notify::new()))]);
    let id = first.start(research()).await;
    bench.quiet().await;
    first.die().await;
    assert_eq!(bench.job(&id).await.checkpoint, Checkpoint::NotBegun);
    let second = bench.process().await;
    tokio::time::sleep(LEASE + seconds(1)).await;
    deliver(&bench, 1);
    assert_eq!(text(&second.end(&id).await.job), "because");
    assert_eq!(bench.provider.keys().len(), 1);
}

/// B9: a run that cannot be resumed is begun again only if that does no harm.
#[tokio::test(start_paused = true)]
async fn a_run_that_cannot_be_resumed_is_repeated_only_if_that_is_safe() {
    for (again, begins) in [(ResendPolicy::Idempotent, 2), (ResendPolicy::Never, 1)] {
        let bench = Bench::over(Scripted::with_semantics(semantics_of(again, ResumePolicy::Never)));
        let first = bench.process().await;
        let id = first.under_way(&bench, 1).await;
        first.die().await;
        let second = bench.process().await;
        tokio::time::sleep(LEASE + seconds(1)).await;
        assert_eq!(bench.provider.keys().len(), begins, "{again:?}");
        if again == ResendPolicy::Idempotent {
            deliver(&bench, 2);
            assert_eq!(text(&second.end(&id).await.job), "because");
        } else {
            assert_eq!(second.end(&id).await.job.failures[0].code, Code::SubmitUnknown);
        }
    }
}

/// E6, B9a: a run that its provider has lost is repeated at once if that does no harm, and no attempt is spent on it.
/// Otherwise the job fails with RUN_LOST, and nothing is begun without consent.
#[tokio::test(start_paused = true)]
async fn b9a_a_lost_run_is_repeated_only_if_that_is_safe() {
    for (again, begins) in [(ResendPolicy::Idempotent, 2), (ResendPolicy::Never, 1)] {
        let bench =
            Bench::over(Scripted::with_semantics(semantics_of(again, ResumePolicy::Always)));
        let first = bench.process().await;
        let id = first.under_way(&bench, 1).await;
        first.die().await;
        bench.provider.next_resumes([Answer::Fail(ProviderErrorKind::RunLost)]);
        let second = bench.process().await;
        bench.until(|| bench.provider.resumes() == 1).await;
        if again == ResendPolicy::Idempotent {
            bench.until(|| bench.provider.keys().len() == begins).await;
            deliver(&bench, 2);
            let job = second.end(&id).await.job;
            assert_eq!(text(&job), "because");
            assert!(job.failures.is_empty(), "{:?}", job.failures);
        } else {
            let job = second.end(&id).await.job;
            assert_eq!(job.failures[0].code, Code::RunLost);
            assert!(job.failures[0].message.contains("--again"), "{:?}", job.failures);
            tokio::time::sleep(seconds(600)).await;
            assert_eq!(bench.provider.keys().len(), begins);
        }
    }
}

/// A worker taken for dead learns it at its next renewal; its attempt is void, and the new one resumes.
#[tokio::test(start_paused = true)]
async fn a_lost_lease_voids_the_old_attempt_and_the_new_one_resumes() {
    let bench = Bench::new();
    let first = bench.process_with(Options { concurrency: 1, ..Options::default() }).await;
    let id = first.under_way(&bench, 1).await;
    let blocker = first.start(research()).await;
    let second = bench.process().await;
    bench.quiet().await;
    bench.first_claimant_ends().await;
    bench.store.rescue(&RescueBy::DeadProcess).await.unwrap();
    bench.quiet().await;
    assert_eq!(bench.provider.resumes(), 1);
    assert_eq!(bench.provider.followers(), 3, "the old attempt does not know yet");
    tokio::time::sleep(LEASE / 3 + millis(5)).await;
    assert_eq!(bench.provider.followers(), 2, "now it does");
    deliver(&bench, 1);
    let job = second.end(&id).await.job;
    assert_eq!(text(&job), "because");
    assert!(job.failures.is_empty());
    assert_eq!(bench.kind(&blocker).await, StateKind::Running);
    assert_eq!(bench.provider.keys().len(), 2, "one begin for each job");
}

/// The old attempt's result is refused, even if it arrives first and the new attempt is still running.
#[tokio::test(start_paused = true)]
async fn a_late_result_of_a_lost_lease_is_void() {
    let log = Overheard::start();
    let bench = Bench::new();
    let first = bench.process().await;
    let id = first.under_way(&bench, 1).await;
    let settling = Arc::new(Notify::new());
    bench.store.next(Method::Settle, [Mood::After(settling.clone())]);
    deliver(&bench, 1);
    bench.quiet().await;
    bench.provider.next_resumes([outlast_testkit::scripted::Answer::Never]);
    bench.first_claimant_ends().await;
    bench.store.rescue(&RescueBy::DeadProcess).await.unwrap();
    bench.quiet().await;
    settling.notify_one();
    bench.quiet().await;
    let job = bench.job(&id).await;
    assert_eq!(job.state.kind(), StateKind::Running, "the new attempt has it");
    assert_eq!(job.fence.0, 2);
    assert_eq!(log.lines_with("the job was taken or cancelled").len(), 1);
    assert!(log.lines_with("will try again").is_empty(), "the old attempt does not insist");
}

/// A machine that slept: the worker rescues and claims its own job. The old attempt stops, the new one stays.
#[tokio::test(start_paused = true)]
async fn a_worker_that_takes_over_its_own_job_follows_it_once() {
    let bench = Bench::new();
    let process = bench.process().await;
    let id = process.under_way(&bench, 1).await;
    // Its renewal is on its way while the lease ends and the same worker claims the job again.
    let renewing = Arc::new(Notify::new());
    bench.store.next(Method::Renew, [Mood::After(renewing.clone())]);
    tokio::time::sleep(LEASE / 3).await;
    bench.first_claimant_ends().await;
    bench.store.rescue(&RescueBy::DeadProcess).await.unwrap();
    bench.quiet().await;
    assert_eq!(bench.provider.resumes(), 1);
    assert_eq!(bench.provider.followers(), 1, "the old attempt is notified at once");
    renewing.notify_one();
    tokio::time::sleep(LEASE * 3).await;
    assert_eq!(bench.provider.resumes(), 1, "and the new one is not notified");
    assert_eq!(bench.provider.followers(), 1);
    deliver(&bench, 1);
    assert_eq!(text(&process.end(&id).await.job), "because");
}

/// Promise 6: while the store takes no writes, no worker can renew, so leases that ran out meanwhile prove nothing.
#[tokio::test(start_paused = true)]
async fn a_store_that_took_no_writes_costs_no_running_worker_its_job() {
    let bench = Bench::new();
    let first = bench.process().await;
    let id = first.under_way(&bench, 1).await;
    let second = bench.process().await;
    tokio::time::sleep(seconds(25)).await;
    // The lease was renewed at 20 s, so it ends at 50 s. Both workers look once a second, so no look succeeds before
    // 65 s. The next successful renewal is at 80 s.
    bench.store.next(Method::Renew, std::iter::repeat_n(Mood::Full, 5));
    bench.store.next(Method::Rescue, std::iter::repeat_n(Mood::Full, 30));
    tokio::time::sleep(LEASE * 4).await;
    assert_eq!(bench.provider.resumes(), 0, "no other worker took it");
    assert_eq!(bench.store.claimants().len(), 1);
    deliver(&bench, 1);
    assert_eq!(text(&second.end(&id).await.job), "because");
    second.leave().await;
    first.leave().await;
}

/// F3: a process that was suspended for longer than its lease continues a job that no other worker has claimed, even
/// one that could be run a second time elsewhere.
#[tokio::test(start_paused = true)]
async fn f3_a_suspended_process_goes_on_with_what_no_one_has_taken() {
    for suspended in [LEASE + millis(500), LEASE * 3 / 2, LEASE * 10] {
        let semantics = semantics_of(ResendPolicy::Never, ResumePolicy::Never);
        let bench = Bench::over(Scripted::with_semantics(semantics));
        let process = bench.process().await;
        let id = process.under_way(&bench, 1).await;
        tokio::time::sleep(millis(100)).await;
        let renewing = Arc::new(Notify::new());
        bench.store.next(Method::Renew, [Mood::After(renewing.clone())]);
        // No task runs while time passes; then all of them run, and the renewal takes its time.
        tokio::time::advance(suspended).await;
        tokio::time::sleep(millis(300)).await;
        renewing.notify_one();
        tokio::time::sleep(seconds(70)).await;
        deliver(&bench, 1);
        let job = process.end(&id).await.job;
        assert_eq!(text(&job), "because", "{suspended:?}");
        assert_eq!(bench.provider.keys().len(), 1, "{suspended:?}");
    }
}

/// F6: after a failover the store may record a job with a live worker that does not run it. The job is freed when its
/// lease has ended, and its outcome is unknown.
#[tokio::test(start_paused = true)]
async fn f6_a_job_that_a_live_worker_is_wrongly_recorded_with_is_freed() {
    let bench = Bench::new();
    let first = bench.process_with(Options { concurrency: 1, ..Options::default() }).await;
    first.under_way(&bench, 1).await;
    let lost = first.start(research()).await;
    let worker = bench.store.claimants()[0].clone();
    let claimed = bench.store.claim(&worker, &[Scripted::profile()], LEASE).await.unwrap().unwrap();
    assert_eq!(claimed.job.id, lost);
    let beginning = Checkpoint::Beginning { key: "k".to_owned() };
    bench.store.checkpoint(&claimed.lease, &beginning).await.unwrap();
    let second = bench.process().await;
    let job = tokio::time::timeout(LEASE * 3, second.end(&lost)).await.expect("it is freed").job;
    assert_eq!(job.failures.last().unwrap().code, Code::SubmitUnknown);
    assert_eq!(bench.provider.keys().len(), 1, "nothing was sent for it");
}
