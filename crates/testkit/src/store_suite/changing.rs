//! Wake-ups: nothing is missed, nothing is reported twice.

use std::time::Duration;

use outlast_core::{
    Change, ChangeWait, Checkpoint, Cost, HeldCallState, Progress, RemoteStop, Rev, Scope,
    Settlement, StateKind,
};

use super::fixture::{Fixture, LEASE, a_failure, a_job, a_run, succeed, worker};
use crate::clock::START;

/// A waiter sees changes of the same handle immediately.
pub async fn a_change_wakes_waiting_callers(fixture: Fixture) {
    let start = fixture.look(Rev::default()).await.rev;
    let hour = Duration::from_secs(3600);
    let mut waiting = fixture.store.changes(start, ChangeWait { at_most: hour, look_every: hour });
    let early = tokio::time::timeout(Duration::from_millis(100), &mut waiting).await;
    assert!(early.is_err(), "nothing has changed yet: {early:?}");
    let job = fixture.add(a_job()).await;
    let woken = tokio::time::timeout(Duration::from_secs(10), waiting).await;
    let changes = woken.expect("the wake-up was lost").unwrap();
    assert_eq!(
        changes.jobs,
        [Change {
            id: job.id,
            state: StateKind::Queued,
            uncarried: HeldCallState::NotWaiting,
            in_conversation: false
        }]
    );
    assert_eq!(changes.rev, job.rev);
}

/// Level-triggered: the start of the wait does not matter.
pub async fn a_change_before_the_call_is_not_missed(fixture: Fixture) {
    let start = fixture.look(Rev::default()).await.rev;
    let job = fixture.add(a_job()).await;
    assert_eq!(
        fixture.wait(start).await.jobs,
        [Change {
            id: job.id,
            state: StateKind::Queued,
            uncarried: HeldCallState::NotWaiting,
            in_conversation: false
        }]
    );
    assert_eq!(fixture.wait(start).await.rev, job.rev);
}

/// In order of their last change.
pub async fn each_job_is_reported_once_with_its_latest_state(fixture: Fixture) {
    let first = fixture.add(a_job()).await;
    let second = fixture.add(a_job()).await;
    let third = fixture.add(a_job()).await;
    fixture.end_next(succeed()).await;
    fixture.cancel(&second.id).await;
    let changes = fixture.look(Rev::default()).await;
    let expected = [
        Change {
            id: third.id,
            state: StateKind::Queued,
            uncarried: HeldCallState::NotWaiting,
            in_conversation: false,
        },
        Change {
            id: first.id,
            state: StateKind::Succeeded,
            uncarried: HeldCallState::NotWaiting,
            in_conversation: false,
        },
        Change {
            id: second.id,
            state: StateKind::Cancelled,
            uncarried: HeldCallState::NotWaiting,
            in_conversation: false,
        },
    ];
    assert_eq!(changes.jobs, expected);
}

/// The revision of the answer is where the next call continues; it returns only newer changes.
pub async fn nothing_is_reported_twice(fixture: Fixture) {
    fixture.add(a_job()).await;
    let rev = fixture.look(Rev::default()).await.rev;
    assert!(fixture.look(rev).await.jobs.is_empty());
    let second = fixture.add(a_job()).await;
    let changes = fixture.look(rev).await;
    assert_eq!(
        changes.jobs,
        [Change {
            id: second.id,
            state: StateKind::Queued,
            uncarried: HeldCallState::NotWaiting,
            in_conversation: false
        }]
    );
    assert!(fixture.look(changes.rev).await.jobs.is_empty());
}

/// Not an error, and the next call continues from the same revision.
pub async fn a_wait_without_changes_ends_empty(fixture: Fixture) {
    let job = fixture.add(a_job()).await;
    let wait =
        ChangeWait { at_most: Duration::from_millis(60), look_every: Duration::from_millis(25) };
    let waiting = fixture.store.changes(job.rev, wait);
    let limit = Duration::from_secs(10);
    let changes = tokio::time::timeout(limit, waiting).await.expect("the wait ends").unwrap();
    assert_eq!((changes.rev, changes.jobs), (job.rev, vec![]));
}

/// Readers want to see progress; renewals would wake every caller every ten seconds.
pub async fn progress_is_a_change_and_a_renewal_is_not(fixture: Fixture) {
    let claimed = fixture.add_claimed().await;
    fixture.store.renew(std::slice::from_ref(&claimed.lease), LEASE).await.unwrap();
    assert!(fixture.look(claimed.job.rev).await.jobs.is_empty());
    let progress = Progress { percent: None, message: "reading".to_owned() };
    fixture.store.show_progress(&claimed.lease, &progress).await.unwrap();
    let changes = fixture.wait(claimed.job.rev).await;
    assert_eq!(
        changes.jobs,
        [Change {
            id: claimed.job.id,
            state: StateKind::Running,
            uncarried: HeldCallState::NotWaiting,
            in_conversation: false
        }]
    );
}

/// Each write reports its job again, once.
pub async fn every_kind_of_write_is_seen(fixture: Fixture) {
    let mut rev = fixture.look(Rev::default()).await.rev;
    let mut seen = async |id, state| {
        let changes = fixture.wait(rev).await;
        assert_eq!(
            changes.jobs,
            [Change { id, state, uncarried: HeldCallState::NotWaiting, in_conversation: false }]
        );
        assert!(changes.rev > rev);
        rev = changes.rev;
    };
    let store = &fixture.store;
    let id = fixture.add(a_job()).await.id;
    seen(id, StateKind::Queued).await;
    let lease = fixture.claim().await.lease;
    seen(id, StateKind::Running).await;
    store.checkpoint(&lease, &Checkpoint::Running(a_run("run-1"))).await.unwrap();
    seen(id, StateKind::Running).await;
    store.settle(&lease, Settlement::Release).await.unwrap();
    seen(id, StateKind::Queued).await;
    fixture.claim().await;
    seen(id, StateKind::Running).await;
    fixture.end_worker(&worker("w1")).await;
    seen(id, StateKind::Queued).await;
    store.cancel(&Scope::Operator, &id).await.unwrap();
    seen(id, StateKind::Cancelled).await;
    store.record_stop(&id, RemoteStop::Ended, Cost::Unknown).await.unwrap();
    seen(id, StateKind::Cancelled).await;
    store.record_late_run(&id, &a_run("run-2")).await.unwrap();
    seen(id, StateKind::Cancelled).await;
}

/// The start time of a queued job if it is in the future, and the end of a lease; nothing else.
pub async fn the_next_due_time_is_the_nearest(fixture: Fixture) {
    assert_eq!(fixture.look(Rev::default()).await.next_due, None);
    fixture.add(a_job()).await;
    assert_eq!(fixture.look(Rev::default()).await.next_due, None, "it can be claimed now");
    let first = fixture.claim().await;
    let end = START.after(LEASE);
    assert_eq!(fixture.look(Rev::default()).await.next_due, Some(end));
    let second = fixture.add_claimed().await;
    let retry = |seconds| Settlement::Retry {
        failure: a_failure("down"),
        wait: Duration::from_secs(seconds),
        checkpoint: Checkpoint::NotBegun,
    };
    fixture.store.settle(&second.lease, retry(5)).await.unwrap();
    let due = START.after(Duration::from_secs(5));
    assert_eq!(fixture.look(Rev::default()).await.next_due, Some(due));
    fixture.clock.set(due);
    assert_eq!(fixture.look(Rev::default()).await.next_due, Some(end));
    fixture.store.settle(&first.lease, retry(3600)).await.unwrap();
    let far = due.after(Duration::from_secs(3600));
    assert_eq!(fixture.look(Rev::default()).await.next_due, Some(far));
    fixture.cancel(&first.job.id).await;
    assert_eq!(fixture.look(Rev::default()).await.next_due, None);
}

/// A reader with a revision of another store, or of a later state of this one, does not wait forever.
pub async fn a_rev_of_another_store_is_reset_to_the_current_one(fixture: Fixture) {
    let job = fixture.add(a_job()).await;
    for elsewhere in [Rev(job.rev.0 + 1_000), Rev(u64::MAX)] {
        let changes = fixture.look(elsewhere).await;
        assert_eq!((changes.rev, changes.jobs), (job.rev, vec![]));
    }
}

/// A reader can distinguish an older copy from a newer one.
pub async fn revs_grow_with_every_change_of_a_job(fixture: Fixture) {
    let queued = fixture.add(a_job()).await;
    let claimed = fixture.claim().await;
    let settled = fixture.store.settle(&claimed.lease, succeed()).await.unwrap();
    assert!(queued.rev < claimed.job.rev && claimed.job.rev < settled.rev);
    assert_eq!(fixture.look(settled.rev).await.rev, settled.rev);
}

/// The revision is where following the changes starts: after everything earlier, before everything later.
pub async fn changes_continue_from_the_current_rev(fixture: Fixture) {
    fixture.add(a_job()).await;
    let rev = fixture.store.rev().await.unwrap();
    assert_eq!(fixture.look(rev).await.jobs, []);
    let after = fixture.add(a_job()).await;
    let changes = fixture.look(rev).await;
    assert_eq!(
        changes.jobs,
        [Change {
            id: after.id,
            state: StateKind::Queued,
            uncarried: HeldCallState::NotWaiting,
            in_conversation: false
        }]
    );
    assert_eq!(changes.rev, fixture.store.rev().await.unwrap());
}
