//! Session ids. Any server can determine the owner of a session from its id alone, even a server that never saw the session.
//!
//! The check needs no secret: it only keeps a client from using another owner's session by mistake. The token decides what a
//! request may do, and an owner who invents an id gets no more than `initialize` would give.

use outlast_core::OwnerId;
use rmcp::transport::streamable_http_server::session::SessionId;
use sha2::{Digest, Sha256};
use uuid::Uuid;

pub(super) fn new_session_id(owner: &OwnerId) -> SessionId {
    session_id(Uuid::new_v4(), owner).into()
}

/// Returns true if a server issued this id to this owner.
pub(super) fn is_session_of(owner: &OwnerId, id: &str) -> bool {
    Uuid::parse_str(id).is_ok_and(|uuid| session_id(uuid, owner) == id)
}

/// Returns the UUID with its second half replaced by a digest of its first half and the owner.
fn session_id(random: Uuid, owner: &OwnerId) -> String {
    let mut bytes = random.into_bytes();
    let (random, check) = bytes.split_at_mut(8);
    let digest = Sha256::new().chain_update(&*random).chain_update(owner.as_str()).finalize();
    check.copy_from_slice(&digest[..8]);
    Uuid::from_bytes(bytes).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f5_any_server_knows_an_owners_session_by_its_id() {
        let (ann, bob) = (OwnerId::new("ann"), OwnerId::new("bob"));
        let id = new_session_id(&ann);
        assert!(is_session_of(&ann, &id));
        assert_ne!(id, new_session_id(&ann));
        assert!(!is_session_of(&bob, &id), "another owner's session is an unknown one");
        let [other, upper] = [Uuid::new_v4().to_string(), id.to_uppercase()];
        for unknown in ["", "never-was", &id[1..], &id.replace('-', ""), &upper, &other] {
            assert!(!is_session_of(&ann, unknown), "{unknown}");
        }
    }
}
