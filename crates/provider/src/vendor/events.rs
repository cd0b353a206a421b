//! Events as they arrive over one connection.

use outlast_core::{BoxError, ProviderError};
use outlast_http::SseDecoder;
use reqwest::{Response, StatusCode, Url};

use super::errors::HttpAnswer;
use super::service::{Service, is_event_stream};
use crate::http::{MAX_EVENT, send};

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

    /// The next event that `parse` accepts; keep-alives and anything that is not JSON are skipped. `Err(None)` is a
    /// clean end. Cancel-safe.
    pub(crate) async fn next<E>(
        &mut self,
        parse: fn(&mut String) -> Option<E>,
    ) -> Result<E, Option<BoxError>> {
        loop {
            let mut data = self.data().await?;
            let event = parse(&mut data);
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

impl Service {
    /// Asks for the events at this address; `None` if there are none and asking again is of no use.
    pub(crate) async fn attach(&self, url: Url) -> Result<Option<EventStream>, ProviderError> {
        let request = self.calls()?.get(url).header("accept", "text/event-stream");
        let response =
            send(self.authorize(request)).await.map_err(|error| self.no_answer(&error))?;
        let status = response.status();
        if status == StatusCode::OK && is_event_stream(&response) {
            return Ok(Some(EventStream::new(response)));
        }
        if status.is_success() || matches!(status.as_u16(), 400 | 405 | 410 | 422) {
            return Ok(None);
        }
        // A stream that cannot be had now may be had later.
        Err(self.provider_error(&HttpAnswer { status, retry_after: None, body: Vec::new() }))
    }
}
