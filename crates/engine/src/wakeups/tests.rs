//! The signals and their receivers.

use outlast_core::{Change, OwnerId, Rev};

use super::*;

const FREE: PollLimits =
    PollLimits { in_all: usize::MAX, per_job: usize::MAX, sharing: Sharing::OneOwner };

/// E8: in total, and for each job; a caller that leaves makes room.
#[test]
fn the_number_of_waiting_calls_is_limited() {
    let wakeups = Arc::new(Wakeups::default());
    let limits = PollLimits { in_all: 3, per_job: 2, sharing: Sharing::OneOwner };
    let first = wakeups.watch(&ann(), job(1), limits);
    let second = wakeups.watch(&ann(), job(1), limits);
    assert!(first.is_some() && second.is_some());
    assert!(wakeups.watch(&ann(), job(1), limits).is_none(), "two wait for this job");
    let third = wakeups.watch(&ann(), job(2), limits);
    assert!(third.is_some());
    assert!(wakeups.watch(&ann(), job(3), limits).is_none(), "three wait in all");
    drop(first);
    assert!(wakeups.watch(&ann(), job(1), limits).is_some());
}

/// F10: one owner's polls leave room for another's.
#[test]
fn f10_an_owner_who_parks_all_they_can_leaves_room_for_others() {
    let wakeups = Arc::new(Wakeups::default());
    let limits = PollLimits { in_all: 8, per_job: 100, sharing: Sharing::SeveralOwners };
    let park = |owner: &str| {
        let scope = Scope::Owner(OwnerId::new(owner));
        std::iter::from_fn(|| wakeups.watch(&scope, job(1), limits)).collect::<Vec<_>>()
    };
    let anns = park("ann");
    let bobs = park("bob");
    assert_eq!((anns.len(), bobs.len(), park("carol").len()), (4, 2, 1));
    drop(anns);
    assert_eq!(park("bob").len(), 2, "four of eight");
    drop(bobs);
    assert!(lock(&wakeups.waiting).by.is_empty());
}

fn ann() -> Scope {
    Scope::Owner(OwnerId::new("ann"))
}

fn job(number: u128) -> JobId {
    JobId::new(uuid::Uuid::from_u128(number))
}

fn ended(id: JobId) -> Changes {
    Changes {
        rev: Rev(1),
        jobs: vec![Change {
            id,
            state: StateKind::Succeeded,
            uncarried: HeldCallState::NotWaiting,
            in_conversation: false,
        }],
        next_due: None,
    }
}

#[tokio::test]
async fn only_the_end_of_the_watched_job_wakes_its_watcher() {
    let wakeups = Arc::new(Wakeups::default());
    let mut watcher = wakeups.watch(&ann(), job(1), FREE).unwrap();
    wakeups.publish(&ended(job(2)));
    let progress = Changes {
        jobs: vec![Change {
            id: job(1),
            state: StateKind::Running,
            uncarried: HeldCallState::NotWaiting,
            in_conversation: false,
        }],
        ..ended(job(1))
    };
    wakeups.publish(&progress);
    assert!(!watcher.receiver.borrow().ended);
    wakeups.publish(&ended(job(1)));
    watcher.wait_for_end().await;
}

#[test]
fn nothing_is_kept_of_watchers_that_left() {
    let wakeups = Arc::new(Wakeups::default());
    let (first, second) =
        (wakeups.watch(&ann(), job(1), FREE), wakeups.watch(&ann(), job(1), FREE));
    assert_eq!(wakeups.interest(), Interest::Waiting);
    drop(first);
    assert_eq!(lock(&wakeups.waiting).jobs.len(), 1);
    drop(second);
    assert_eq!(lock(&wakeups.waiting).jobs.len(), 0);
    assert_eq!(wakeups.interest(), Interest::None);
}

/// If two leave at the same moment, one of them must see that it is the last.
#[test]
fn nothing_is_kept_of_watchers_that_left_together() {
    let wakeups = Arc::new(Wakeups::default());
    for _ in 0..20 {
        let crowd = || {
            (0..5_000).map(|number| wakeups.watch(&ann(), job(number), FREE)).collect::<Vec<_>>()
        };
        let (first, second) = (crowd(), crowd());
        std::thread::scope(|scope| {
            scope.spawn(|| drop(first));
            scope.spawn(|| drop(second));
        });
        assert_eq!(lock(&wakeups.waiting).jobs.len(), 0);
    }
}

#[tokio::test]
async fn a_worker_is_registered_until_it_ends() {
    let wakeups = Arc::new(Wakeups::default());
    let signals = wakeups.register_worker(WorkerId::new("w"));
    wakeups.publish(&ended(job(1)));
    assert_eq!(*lock(&signals.ended), [job(1)]);
    drop(signals);
    assert_eq!(wakeups.interest(), Interest::None);
}

/// Nothing is kept of an attempt that is over. A caller that waits for its job learns that this process no longer
/// runs it, or that it has ended.
#[tokio::test]
async fn an_attempt_that_is_over_is_not_assigned_any_more() {
    let wakeups = Arc::new(Wakeups::default());
    let carry = || lock(&wakeups.waiting).jobs.entry(job(1)).or_default().is_carried = true;
    carry();
    wakeups.try_is_over(&job(1));
    assert!(lock(&wakeups.waiting).jobs.is_empty());
    for has_ended in [false, true] {
        carry();
        let mut watcher = wakeups.watch(&ann(), job(1), FREE).unwrap();
        assert!(watcher.is_carried);
        if has_ended {
            wakeups.publish(&ended(job(1)));
        }
        wakeups.try_is_over(&job(1));
        assert_eq!(watcher.wait_for_end_or_release().await, has_ended);
        assert_eq!(watcher.receiver.borrow().given_up, !has_ended);
        drop(watcher);
        assert!(lock(&wakeups.waiting).jobs.is_empty());
    }
}
