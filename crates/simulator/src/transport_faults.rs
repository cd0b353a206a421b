//! The delivery of a finished response: slow, cut off, or with rate limit headers.

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

/// The faults of one response.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TransportFault {
    pub(crate) malformed: Option<Malformed>,
    pub(crate) slow: Option<Slow>,
    pub(crate) cut: Option<Cut>,
    pub(crate) allowance: Option<Allowance>,
}

impl TransportFault {
    /// Renders a JSON response, corrupted if the fault requires it.
    pub(crate) fn json(&self, object: Value) -> Response {
        let bytes = match &self.malformed {
            None => object.to_string().into_bytes(),
            Some(malformed) => malformed::corrupt(object, malformed),
        };
        ([(header::CONTENT_TYPE, "application/json")], bytes).into_response()
    }

    /// Applies the faults to the response.
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
        if self.slow.is_none() && self.cut.is_none() {
            return Response::from_parts(parts, body);
        }
        let first_byte_ms = self.slow.map_or(0, |slow| slow.first_byte_ms);
        let transported = ThrottledBody {
            body: body.into_data_stream().boxed(),
            rest: Bytes::new(),
            slow: self.slow,
            cut: self.cut.and_then(|cut| cut.after_bytes),
            reset: self.cut.is_some_and(|cut| cut.rst),
            due: clock.now() + clock.scaled(first_byte_ms as f64),
            clock: clock.clone(),
            hangup: hangup.clone(),
        };
        let body = stream::try_unfold(transported, async |mut transported| {
            let piece = transported.next().await?;
            Ok::<_, axum::Error>(piece.map(|piece| (piece, transported)))
        });
        Response::from_parts(parts, Body::from_stream(body))
    }
}

/// A response being sent: in small pieces that split frames and characters, or only its first bytes.
struct ThrottledBody {
    body: stream::BoxStream<'static, Result<Bytes, axum::Error>>,
    rest: Bytes,
    slow: Option<Slow>,
    /// The number of bytes until the connection breaks; a shorter body is complete.
    cut: Option<usize>,
    reset: bool,
    clock: Arc<Clock>,
    /// The time of the next piece. Counted from piece to piece, because timers are coarser than short
    /// intervals.
    due: Duration,
    hangup: Hangup,
}

impl ThrottledBody {
    async fn next(&mut self) -> Result<Option<Bytes>, axum::Error> {
        if self.clock.now() < self.due {
            self.clock.sleep_until(self.due).await;
        } else {
            // Lets hyper flush, so that pieces stay separate and an error does not swallow the data before it.
            tokio::task::yield_now().await;
        }
        if self.cut == Some(0) {
            if self.reset {
                self.hangup.reset();
            }
            return Err(axum::Error::new(io::Error::from(io::ErrorKind::ConnectionAborted)));
        }
        while self.rest.is_empty() {
            let Some(bytes) = self.body.next().await else { return Ok(None) };
            self.rest = bytes?;
            self.due = self.due.max(self.clock.now());
        }
        let mut length = self.rest.len().min(self.cut.unwrap_or(usize::MAX));
        if let Some(slow) = self.slow {
            self.due += self.clock.scaled(slow.chunk_ms as f64);
            length = length.min(slow.chunk_bytes.max(1));
        }
        self.cut = self.cut.map(|left| left - length);
        Ok(Some(self.rest.split_to(length)))
    }
}
