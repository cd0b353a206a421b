//! A limited resource, counted by the takers that hold it. The rule is in core: `rules::may_take`.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;
use std::sync::Arc;
use std::time::Duration;

use outlast_core::rules::{Sharing, may_take};
use parking_lot::Mutex;
use tokio::sync::Notify;

/// A number of parts that takers share.
pub(super) struct Capacity<K> {
    in_all: usize,
    sharing: Sharing,
    taken: Mutex<TakenSlots<K>>,
    /// Notified when parts are released.
    freed: Notify,
}

struct TakenSlots<K> {
    all: usize,
    by: HashMap<K, usize>,
}

impl<K: Clone + Eq + Hash> Capacity<K> {
    pub(super) fn new(in_all: usize, sharing: Sharing) -> Arc<Self> {
        let taken = Mutex::new(TakenSlots { all: 0, by: HashMap::new() });
        Arc::new(Self { in_all, sharing, taken, freed: Notify::new() })
    }

    /// Takes one part, if the taker may have it.
    pub(super) fn take(self: &Arc<Self>, taker: &K) -> Option<CapacityShare<K>> {
        let mut share = self.none(taker);
        share.grow(1).then_some(share)
    }

    /// Creates an empty share.
    pub(super) fn none(self: &Arc<Self>, taker: &K) -> CapacityShare<K> {
        CapacityShare { shares: Arc::clone(self), taker: taker.clone(), parts: 0 }
    }
}

/// The parts that one taker holds; dropping the share releases them.
pub(super) struct CapacityShare<K: Clone + Eq + Hash> {
    shares: Arc<Capacity<K>>,
    taker: K,
    parts: usize,
}

impl<K: Clone + Eq + Hash> CapacityShare<K> {
    /// Takes `more` further parts, all or none.
    fn grow(&mut self, more: usize) -> bool {
        let mut taken = self.shares.taken.lock();
        let own = taken.by.get(&self.taker).copied().unwrap_or(0);
        if !may_take(own, taken.all, more, self.shares.in_all, self.shares.sharing) {
            return false;
        }
        taken.all += more;
        taken.by.insert(self.taker.clone(), own + more);
        self.parts += more;
        true
    }

    /// Takes `more` further parts, and waits up to `patience` for others to release them.
    pub(super) async fn grow_within(&mut self, more: usize, patience: Duration) -> bool {
        let shares = Arc::clone(&self.shares);
        let growing = async {
            loop {
                // Registered before the attempt, so that parts released in between are not missed.
                let mut freed = std::pin::pin!(shares.freed.notified());
                freed.as_mut().enable();
                if self.grow(more) {
                    return;
                }
                freed.await;
            }
        };
        tokio::time::timeout(patience, growing).await.is_ok()
    }
}

impl<K: Clone + Eq + Hash> Drop for CapacityShare<K> {
    fn drop(&mut self) {
        if self.parts == 0 {
            return;
        }
        let mut taken = self.shares.taken.lock();
        taken.all -= self.parts;
        if let Entry::Occupied(mut own) = taken.by.entry(self.taker.clone()) {
            *own.get_mut() -= self.parts;
            if *own.get() == 0 {
                own.remove();
            }
        }
        drop(taken);
        self.shares.freed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F10: a waiting owner gets the parts that others release, and nothing is kept for an owner without parts.
    #[tokio::test(start_paused = true)]
    async fn f10_parts_are_released_and_waited_for() {
        let shares = Capacity::new(100, Sharing::SeveralOwners);
        let (mut ann, mut bob) = (shares.none(&"ann"), shares.none(&"bob"));
        let moment = Duration::from_secs(2);
        assert!(ann.grow_within(50, moment).await);
        assert!(!ann.grow_within(1, moment).await, "half is left for others");
        assert!(bob.grow_within(25, moment).await);
        let late = outlast_engine::spawn(async move { bob.grow_within(25, moment).await });
        tokio::task::yield_now().await;
        drop(ann);
        assert!(late.await.unwrap());
        let taken = shares.taken.lock();
        assert_eq!((taken.all, taken.by.len()), (0, 0));
    }
}
