//! Counts connections and their owners, so that no client can take all of them.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use outlast_core::OwnerId;
use outlast_core::rules::Sharing;
use parking_lot::Mutex;
use tokio_util::sync::CancellationToken;

use super::capacity::{Capacity, CapacityShare};
use super::limits::network_of;

pub(super) struct Connections {
    strangers: Mutex<Strangers>,
    strangers_share: Arc<Capacity<IpAddr>>,
    owners_share: Arc<Capacity<OwnerId>>,
}

/// Connections that have not shown a token.
#[derive(Default)]
struct Strangers {
    /// The connections by order of arrival.
    open: BTreeMap<u64, Stranger>,
    next: u64,
}

struct Stranger {
    address: IpAddr,
    _share: CapacityShare<IpAddr>,
    closed: CancellationToken,
}

impl Connections {
    /// Reserves a quarter for strangers, whose addresses share it, and the rest for owners.
    pub(super) fn new(in_all: usize, sharing: Sharing) -> Self {
        let strangers = in_all.div_ceil(4);
        Self {
            strangers: Mutex::default(),
            strangers_share: Capacity::new(strangers, Sharing::SeveralOwners),
            owners_share: Capacity::new(in_all - strangers, sharing),
        }
    }

    /// Accepts a new connection. If too many have shown no token, closes the oldest of them, preferably one from the same
    /// address. A client that shows its token at once gets in, however many others only hold a connection open.
    pub(super) fn enter(self: &Arc<Self>, address: IpAddr) -> Connection {
        let address = network_of(address);
        let closed = CancellationToken::new();
        let (number, is_full) = {
            let mut strangers = self.strangers.lock();
            let mut share = self.strangers_share.take(&address);
            let is_full = share.is_none();
            while share.is_none() {
                let same = strangers.open.iter().find(|(_, open)| open.address == address);
                let oldest =
                    same.or_else(|| strangers.open.iter().next()).map(|(number, _)| *number);
                // There is no older one only if the limit allows no strangers at all: then this connection is closed before
                // anything is read from it.
                let Some(oldest) = oldest.and_then(|number| strangers.open.remove(&number)) else {
                    closed.cancel();
                    break;
                };
                oldest.closed.cancel();
                drop(oldest);
                share = self.strangers_share.take(&address);
            }
            let number = strangers.next;
            strangers.next += 1;
            if let Some(share) = share {
                let stranger = Stranger { address, _share: share, closed: closed.clone() };
                strangers.open.insert(number, stranger);
            }
            (number, is_full)
        };
        if is_full {
            tracing::warn!(%address, "connections that show no token are closed: there are too many");
        }
        let counted_as = Mutex::new(CountedAs::Stranger(number));
        let counted = Arc::new(CountedStream { connections: Arc::clone(self), counted_as });
        Connection { counted, closed }
    }
}

/// One connection; counted until the last clone is dropped.
#[derive(Clone)]
pub(super) struct Connection {
    counted: Arc<CountedStream>,
    /// Ends the connection.
    pub(super) closed: CancellationToken,
}

struct CountedStream {
    connections: Arc<Connections>,
    counted_as: Mutex<CountedAs>,
}

enum CountedAs {
    Stranger(u64),
    Owner(OwnerId, #[expect(dead_code, reason = "kept to be counted")] CapacityShare<OwnerId>),
}

impl Connection {
    /// Counts the connection as this owner's from now on; returns `false` if the owner has too many.
    pub(super) fn belongs_to(&self, owner: &OwnerId) -> bool {
        let CountedStream { connections, counted_as } = &*self.counted;
        let mut counted_as = counted_as.lock();
        match &*counted_as {
            CountedAs::Owner(known, _) if known == owner => return true,
            CountedAs::Owner(..) | CountedAs::Stranger(_) => {}
        }
        let Some(share) = connections.owners_share.take(owner) else { return false };
        if let CountedAs::Stranger(number) =
            std::mem::replace(&mut *counted_as, CountedAs::Owner(owner.clone(), share))
        {
            connections.strangers.lock().open.remove(&number);
        }
        true
    }
}

impl Drop for CountedStream {
    fn drop(&mut self) {
        let counted_as = self.counted_as.get_mut();
        match counted_as {
            CountedAs::Stranger(number) => {
                drop(self.connections.strangers.lock().open.remove(number))
            }
            CountedAs::Owner(..) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F10: connections that show no token take nothing from those that do, and an owner leaves capacity for another.
    #[test]
    fn f10_neither_strangers_nor_an_owner_can_take_every_connection() {
        let connections = Arc::new(Connections::new(32, Sharing::SeveralOwners));
        let [far, near] = ["192.0.2.7", "127.0.0.1"].map(|address| address.parse().unwrap());
        let flood: Vec<_> = (0..50).map(|_| connections.enter(far)).collect();
        let open = flood.iter().filter(|connection| !connection.closed.is_cancelled()).count();
        assert_eq!(open, 4, "half of the strangers' quarter");
        assert!(!flood[49].closed.is_cancelled(), "the newest stays open");
        let (ann, bob) = (OwnerId::new("ann"), OwnerId::new("bob"));
        let mut anns = Vec::new();
        loop {
            let connection = connections.enter(near);
            assert!(!connection.closed.is_cancelled());
            if !connection.belongs_to(&ann) {
                break;
            }
            assert!(connection.belongs_to(&ann), "again, on the same connection");
            anns.push(connection);
        }
        assert_eq!(anns.len(), 12, "half of the owners' part");
        assert!(connections.enter(far).belongs_to(&bob), "also from where the flood comes");
        drop((anns, flood));
        assert!(connections.strangers.lock().open.is_empty());
        assert!(connections.enter(near).belongs_to(&ann));
    }
}
