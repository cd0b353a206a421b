//! Events as they arrive over one connection.

use outlast_core::BoxError;
use outlast_http::SseDecoder;
use reqwest::Response;

use super::wire::Event;
use crate::http::MAX_EVENT;

/// The last frame of a stream; what follows it, if anything, is silence.
const END: &str = "[DONE]";

/// One connection that brings events.
pub(crate) struct EventStream {
    response: Response,
    decoder: SseDecoder,
}

impl EventStream {
    pub(crate) fn new(response: Response) -> Self {
        Self { response, decoder: SseDecoder::new(MAX_EVENT) }
    }

    /// The next event that is one; keep-alives and what is no JSON are passed over. `Err(None)` is a clean end.
    /// Cancel-safe.
    pub(super) async fn next(&mut self) -> Result<Event, Option<BoxError>> {
        loop {
            let mut data = self.data().await?;
            let event = Event::parse(&mut data);
            self.decoder.reuse(data);
            if let Some(event) = event {
                return Ok(event);
            }
        }
    }

    /// The data of the next event, whatever it is. `Err(None)` is a clean end. Cancel-safe.
    pub(crate) async fn data(&mut self) -> Result<String, Option<BoxError>> {
        loop {
            if let Some(event) = self.decoder.next_event() {
                let Some(data) = event.data else { continue };
                return if data.trim() == END { Err(None) } else { Ok(data) };
            }
            let chunk =
                self.response.chunk().await.map_err(|error| Some(error.without_url().into()))?;
            let chunk = chunk.ok_or(None)?;
            self.decoder.push(&chunk).map_err(|error| Some(error.into()))?;
        }
    }
}
