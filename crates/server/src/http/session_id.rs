//! Ids of sessions. Any server can tell whose a session is by its id alone, also one that never saw the session.
//!
//! The check needs no secret: it only keeps a client from using another owner's session by mistake. What a request may do
//! is decided by its token, and an owner who makes up an id gets no more than `initialize` would give.

use outlast_core::OwnerId;
use rmcp::transport::streamable_http_server::session::SessionId;
use sha2::{Digest, Sha256};

/// How many characters of an id are random; the others are a digest of these and of the owner.
const RANDOM_CHARS: usize = 32;

/// A new id.
pub(super) fn new_session_id(owner: &OwnerId) -> SessionId {
    let random = uuid::Uuid::new_v4().simple().to_string();
    format!("{random}{}", digest(&random, owner)).into()
}

/// Whether a server gave this id to this owner.
pub(super) fn is_session_of(owner: &OwnerId, id: &str) -> bool {
    let parts = id.split_at_checked(RANDOM_CHARS);
    parts.is_some_and(|(random, rest)| rest == digest(random, owner))
}

fn digest(random: &str, owner: &OwnerId) -> String {
    let digest = Sha256::new().chain_update(random).chain_update(owner.as_str()).finalize();
    digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect()
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
        for unknown in ["", "never-was", &id[1..], &id[..32], &format!("{id}0"), &"ä".repeat(32)] {
            assert!(!is_session_of(&ann, unknown), "{unknown}");
        }
    }
}
