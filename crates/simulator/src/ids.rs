//! Seeds and ids, which are the same for the same parts on any machine.

/// A pseudo-random UUID from the given source.
pub(crate) fn uuid(rng: &mut fastrand::Rng) -> uuid::Uuid {
    uuid::Builder::from_random_bytes(rng.u128(..).to_le_bytes()).into_uuid()
}

/// The 64-bit FNV-1a hash of the parts.
pub(crate) fn fnv1a64(parts: &[&[u8]]) -> u64 {
    // A byte that UTF-8 never contains separates the parts.
    let bytes = parts.iter().flat_map(|part| part.iter().chain(&[0xff]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Returns true if the text could be the id of an Agent API run.
pub(crate) fn is_agent_id(id: &str) -> bool {
    id.strip_prefix("resp_").is_some_and(|uuid| uuid::Uuid::try_parse(uuid).is_ok())
}
