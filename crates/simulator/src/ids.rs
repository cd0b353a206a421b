//! Seeds and ids: the same from the same parts, on any machine.

/// A random-looking UUID from the given source.
pub(crate) fn uuid(rng: &mut fastrand::Rng) -> uuid::Uuid {
    uuid::Builder::from_random_bytes(rng.u128(..).to_le_bytes()).into_uuid()
}

/// The 64-bit FNV-1a hash of the parts.
pub(crate) fn fnv1a64(parts: &[&[u8]]) -> u64 {
    // A byte that UTF-8 never contains keeps the parts apart.
    let bytes = parts.iter().flat_map(|part| part.iter().chain(&[0xff]));
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// Whether the text could be the id of a run of the Agent API.
pub(crate) fn is_agent_id(id: &str) -> bool {
    id.strip_prefix("resp_").is_some_and(|uuid| uuid::Uuid::try_parse(uuid).is_ok())
}
