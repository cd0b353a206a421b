//! Reads the body of a request within its limits: bytes, time and the budget that all bodies share.

use std::time::Duration;

use axum::body::{Body, Bytes};
use futures_util::StreamExt as _;
use http::HeaderMap;
use http::header::CONTENT_LENGTH;
use outlast_core::OwnerId;

use super::capacity::CapacityShare;
use super::http_refusal::HttpRefusal;

/// The time limit of receiving a body.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
/// The time that a body may wait for others to be processed.
const CAPACITY_TIMEOUT: Duration = Duration::from_secs(2);
/// The time for which the rest of a refused body is read and discarded, so that the client can read the answer.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(2);

/// The limits of a body, and the time at which its bytes are counted.
#[derive(Clone, Copy)]
pub(super) struct BodyLimit {
    /// The maximum size of the body.
    pub(super) bytes: usize,
    /// The time at which its bytes are counted.
    pub(super) counted: CountMoment,
    /// The maximum number of bytes of a refused body that are read and discarded.
    pub(super) discarded: usize,
}

/// The time at which the bytes of a body are counted against the budget that all bodies share.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum CountMoment {
    /// All before the first byte is read: a connection that sends slowly holds only the bytes that it was granted.
    BeforeReading,
    /// As they arrive: a client that only announces a large body blocks no other body.
    AsTheyArrive,
}

/// Reads the whole body, if it is within the limit and arrives in time.
pub(super) async fn read(
    headers: &HeaderMap,
    body: Body,
    room: &mut CapacityShare<OwnerId>,
    limit: BodyLimit,
) -> Result<Bytes, HttpRefusal> {
    let declared =
        headers.get(CONTENT_LENGTH).and_then(|length| length.to_str().ok()?.parse().ok());
    let mut pieces = body.into_data_stream();
    let mut whole = Vec::new();
    let reading = async {
        if declared.is_some_and(|length: usize| length > limit.bytes) {
            return Err(HttpRefusal::too_large(limit.bytes));
        }
        if limit.counted == CountMoment::BeforeReading {
            take(room, declared.unwrap_or(limit.bytes)).await?;
        }
        while let Some(piece) = pieces.next().await {
            let piece = piece.map_err(|_| HttpRefusal::broken_body())?;
            if whole.len() + piece.len() > limit.bytes {
                return Err(HttpRefusal::too_large(limit.bytes));
            }
            if limit.counted == CountMoment::AsTheyArrive {
                take(room, piece.len()).await?;
            }
            whole.extend_from_slice(&piece);
        }
        Ok(())
    };
    let read = tokio::time::timeout(BODY_TIMEOUT, reading).await;
    match read.unwrap_or_else(|_| Err(HttpRefusal::too_slow())) {
        Ok(()) => Ok(whole.into()),
        Err(refused) => {
            drop(whole);
            let mut left = limit.discarded;
            let discarding = async {
                while let Some(Ok(piece)) = pieces.next().await
                    && left > piece.len()
                {
                    left -= piece.len();
                }
            };
            drop(tokio::time::timeout(DISCARD_TIMEOUT, discarding).await);
            Err(refused)
        }
    }
}

async fn take(room: &mut CapacityShare<OwnerId>, bytes: usize) -> Result<(), HttpRefusal> {
    if room.grow_within(bytes, CAPACITY_TIMEOUT).await {
        return Ok(());
    }
    tracing::warn!("requests are refused: too many bytes of requests are under way");
    Err(HttpRefusal::too_many_bytes())
}

#[cfg(test)]
mod tests {
    use axum::body::Bytes;
    use outlast_core::rules::Sharing;

    use super::super::capacity::Capacity;
    use super::*;

    const FORM: BodyLimit =
        BodyLimit { bytes: 4096, counted: CountMoment::BeforeReading, discarded: 8192 };

    /// F10: a body that never ends is abandoned after 30 seconds, and its size was counted before its first byte.
    #[tokio::test(start_paused = true)]
    async fn f10_a_slow_form_is_counted_before_it_is_read_and_given_up() {
        let room = Capacity::new(6000, Sharing::OneOwner);
        let (headers, owner) = (HeaderMap::new(), OwnerId::new("ann"));
        let mut share = room.none(&owner);
        let slow = Body::from_stream(futures_util::stream::pending::<Result<Bytes, axum::Error>>());
        let reading = read(&headers, slow, &mut share, FORM);
        let other = async {
            tokio::task::yield_now().await;
            let mut second = room.none(&owner);
            let body = Body::from("a=1");
            read(&headers, body, &mut second, FORM).await.unwrap_err()
        };
        let began = tokio::time::Instant::now();
        let (slow, other) = tokio::join!(reading, other);
        assert!(format!("{other:?}").contains("TOO_BUSY"), "{other:?}");
        assert!(format!("{:?}", slow.unwrap_err()).contains("TIMEOUT"));
        assert!(began.elapsed() >= BODY_TIMEOUT && began.elapsed() < BODY_TIMEOUT * 2);
        drop(share);
        let body = Body::from("a=1");
        assert_eq!(read(&headers, body, &mut room.none(&owner), FORM).await.unwrap(), "a=1");
    }

    #[tokio::test]
    async fn f10_a_form_that_is_too_large_is_refused_by_its_declared_length() {
        let room = Capacity::new(1 << 20, Sharing::OneOwner);
        let owner = OwnerId::new("ann");
        let mut headers = HeaderMap::new();
        let long = Body::from(vec![b'a'; 4097]);
        let refused = read(&headers, long, &mut room.none(&owner), FORM).await.unwrap_err();
        assert!(format!("{refused:?}").contains("TOO_LARGE"));
        headers.insert(CONTENT_LENGTH, 4097.into());
        let refused =
            read(&headers, Body::empty(), &mut room.none(&owner), FORM).await.unwrap_err();
        assert!(
            format!("{refused:?}").contains("TOO_LARGE")
                && format!("{refused:?}").contains("4 KiB")
        );
    }
}
