//! How an answer travels once it is written: dripped, cut off, with the headers of a rate limit.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::{StreamExt, stream};
use serde_json::Value;

use crate::bucket::Allowance;
use crate::clock::Clock;
use crate::faults::{Cut, Malformed, Slow};
use crate::limits;
use crate::malformed;
use crate::socket::Hangup;

/// What befalls one answer.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TransportFault {
    pub(crate) malformed: Option<Malformed>,
    pub(crate) slow: Option<Slow>,
    pub(crate) cut: Option<Cut>,
    pub(crate) allowance: Option<Allowance>,
}

impl TransportFault {
    /// An answer in JSON, spoilt if it is to be.
    pub(crate) fn json(&self, object: Value) -> Response {
        let bytes = match &self.malformed {
            None => object.to_string().into_bytes(),
            Some(malformed) => malformed::spoil(object, malformed),
        };
        ([(header::CONTENT_TYPE, "application/json")], bytes).into_response()
    }

    /// Sends the answer on its way.
    pub(crate) fn apply(
        &self,
        response: Response,
        clock: &Arc<Clock>,
        hangup: &Hangup,
    ) -> Response {
        let (mut parts, body) = response.into_parts();
        if let Some(allowance) = &self.allowance {
            limits::show(allowance, &mut parts.headers);
        }
        let body = match self.slow {
            None => body,
            Some(slow) => dripped(body, slow, clock.clone()),
        };
        let body = match self.cut {
            Some(Cut { after_bytes: Some(bytes), rst, .. }) => {
                cut(body, bytes, rst.then(|| hangup.clone()))
            }
            _ => body,
        };
        Response::from_parts(parts, body)
    }
}

/// The same bytes in small pieces, so that frames and characters are split.
fn dripped(body: Body, slow: Slow, clock: Arc<Clock>) -> Body {
    let due = clock.now() + clock.scaled(slow.first_byte_ms as f64);
    let drip = Drip { body: body.into_data_stream().boxed(), rest: Bytes::new(), slow, clock, due };
    Body::from_stream(stream::unfold(drip, async |mut drip| {
        let piece = drip.next().await?;
        Some((piece, drip))
    }))
}

struct Drip {
    body: stream::BoxStream<'static, Result<Bytes, axum::Error>>,
    rest: Bytes,
    slow: Slow,
    clock: Arc<Clock>,
    /// When the next piece leaves. Counted on from piece to piece: timers are coarser than fast drips.
    due: Duration,
}

impl Drip {
    async fn next(&mut self) -> Option<Result<Bytes, axum::Error>> {
        if self.clock.now() < self.due {
            self.clock.sleep_until(self.due).await;
        } else {
            // Lets hyper write what it has, so that the pieces stay pieces.
            tokio::task::yield_now().await;
        }
        while self.rest.is_empty() {
            match self.body.next().await? {
                Ok(bytes) => self.rest = bytes,
                Err(error) => return Some(Err(error)),
            }
            self.due = self.due.max(self.clock.now());
        }
        self.due += self.clock.scaled(self.slow.chunk_ms as f64);
        let piece = self.rest.split_to(self.slow.chunk_bytes.max(1).min(self.rest.len()));
        Some(Ok(piece))
    }
}

/// The first bytes, then the end of the connection; a body that is shorter arrives whole.
fn cut(body: Body, bytes: usize, reset: Option<Hangup>) -> Body {
    let state = (body.into_data_stream().boxed(), Some(bytes));
    Body::from_stream(stream::unfold(state, move |(mut body, left)| {
        let reset = reset.clone();
        async move {
            match left? {
                0 => {
                    // Lets hyper write what it has: an error in the same breath would swallow it.
                    tokio::task::yield_now().await;
                    if let Some(hangup) = reset {
                        hangup.reset();
                    }
                    Some((Err(io::Error::from(io::ErrorKind::ConnectionAborted)), (body, None)))
                }
                left => match body.next().await? {
                    Ok(mut chunk) => {
                        chunk.truncate(left);
                        let left = left - chunk.len();
                        Some((Ok(chunk), (body, Some(left))))
                    }
                    Err(error) => Some((Err(io::Error::other(error)), (body, None))),
                },
            }
        }
    }))
}
