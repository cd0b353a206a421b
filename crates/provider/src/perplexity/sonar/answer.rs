//! A quick answer: a chat completion whose chunks arrive over the connection that asked for it.

use std::time::Duration;

use async_trait::async_trait;
use outlast_core::{
    BeginError, BoxError, Output, ProviderError, RemoteRun, ResearchRequest, Run, Step,
};
use reqwest::Response;
use tokio::time::{Instant, timeout_at};

use super::request::write_streaming_body;
use super::wire::Completion;
use super::{errors, remote, report};
use crate::http::MAX_BODY;
use crate::responses::wire::is_name;
use crate::vendor::lenient::{Items, Lenient};
use crate::vendor::{
    DeliveredRun, EventStream, Milestones, Service, Submit, is_event_stream, object,
    stream_before_id,
};

/// The longest time a stream may stay open after the answer has ended, to bring its usage or close.
const AFTER_THE_END: Duration = Duration::from_secs(2);

/// Asks; returns with the first chunk, or with the whole answer if the server does not stream. An answer without
/// a name goes by `key`.
pub(super) async fn begin(
    api: &Service,
    ask: &ResearchRequest,
    key: &str,
) -> Result<Box<dyn Run>, BeginError> {
    let request = api.post(&["chat", "completions"], &write_streaming_body(ask))?;
    let request = request.header("accept", "text/event-stream, application/json");
    let submit = Submit::new(api);
    let response = submit.send(request, |answer| errors::refusal(api, answer)).await?;
    if is_event_stream(&response) {
        let run = submit.in_time(AnswerRun::wait_for_first_chunk(api, response, key)).await??;
        return Ok(Box::new(run));
    }
    let raw = submit.read(response).await?;
    let completion = object::<Completion>(&raw).unwrap_or_default();
    let id = name(&completion, key);
    let Some(output) = report::output(completion) else {
        return Err(BeginError::Unknown(errors::no_answer(api, &raw)));
    };
    Ok(Box::new(DeliveredRun::new(remote(api, id), output, raw)))
}

fn name(completion: &Completion, key: &str) -> String {
    completion.id.0.clone().filter(|id| is_name(id)).unwrap_or_else(|| key.to_owned())
}

/// The chunk in an event. Keep-alives are no objects; an object that cannot be read is a part of the answer lost.
fn read(joined: &mut JoinedAnswer, data: &str) -> Option<Completion> {
    let chunk = object::<Completion>(data.as_bytes());
    if chunk.is_none() && data.trim_start().starts_with('{') {
        joined.add_unreadable();
    }
    chunk
}

/// An answer that is arriving.
struct AnswerRun {
    api: Service,
    remote: RemoteRun,
    events: EventStream,
    joined: JoinedAnswer,
    milestones: Milestones,
    /// Set once the answer has ended. Kept here, not in a future, so that a dropped `next` loses no time.
    close_by: Option<Instant>,
}

impl AnswerRun {
    /// Waits for the first chunk.
    async fn wait_for_first_chunk(
        api: &Service,
        response: Response,
        key: &str,
    ) -> Result<Self, BeginError> {
        let mut events = EventStream::new(response);
        let mut joined = JoinedAnswer::default();
        loop {
            let data = events.data().await.map_err(stream_before_id)?;
            let Some(chunk) = read(&mut joined, &data) else { continue };
            if chunk.error.is_some() {
                return Err(BeginError::Unknown(errors::no_answer(api, data.as_bytes())));
            }
            if !chunk.is_one() {
                continue;
            }
            let mut run = Self {
                api: api.clone(),
                remote: remote(api, name(&chunk, key)),
                events,
                joined,
                milestones: Milestones::default(),
                close_by: None,
            };
            run.add(chunk, &data).map_err(BeginError::Unknown)?;
            return Ok(run);
        }
    }

    fn handle_chunk(&mut self, data: &str) -> Result<(), ProviderError> {
        let Some(chunk) = read(&mut self.joined, data) else { return Ok(()) };
        match &chunk.error {
            Some(error) if !self.joined.is_whole() => {
                Err(errors::stream_error(&self.api, error.get()))
            }
            _ => self.add(chunk, data),
        }
    }

    fn add(&mut self, chunk: Completion, data: &str) -> Result<(), ProviderError> {
        let added = self.joined.add(chunk, data);
        added.map_err(|error| errors::broke_off(Some(&error.into())))?;
        if self.joined.is_whole() {
            self.close_by.get_or_insert_with(|| Instant::now() + AFTER_THE_END);
        }
        Ok(())
    }

    /// The stream has ended: well, if the answer had.
    fn handle_end(&self, error: Option<BoxError>) -> Result<Step, ProviderError> {
        if !self.joined.is_whole() {
            return Err(errors::broke_off(error.as_ref()));
        }
        let (output, raw) = self.joined.output().ok_or_else(|| errors::broke_off(None))?;
        Ok(Step::Done { output, raw: Some(raw) })
    }
}

#[async_trait]
impl Run for AnswerRun {
    fn remote(&self) -> RemoteRun {
        self.remote.clone()
    }

    async fn next(&mut self) -> Result<Step, ProviderError> {
        if let Some(step) = self.milestones.next(self.api.vendor()) {
            return Ok(step);
        }
        loop {
            if let Some(progress) = self.milestones.report_words(self.joined.words()) {
                return Ok(Step::Progress(progress));
            }
            let data = match self.close_by {
                None => self.events.data().await,
                Some(at) => timeout_at(at, self.events.data()).await.unwrap_or(Err(None)),
            };
            match data {
                Ok(data) => self.handle_chunk(&data)?,
                Err(error) => return self.handle_end(error),
            }
        }
    }
}

/// An answer as far as it has arrived.
#[derive(Debug, Default)]
pub(super) struct JoinedAnswer {
    said: String,
    words: usize,
    /// Everything but the text.
    rest: Completion,
    /// The chunk that ended the answer, as it came.
    end: Option<Vec<u8>>,
    /// A chunk came that could not be read.
    lossy: bool,
}

/// The answer is longer than we will hold.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("the answer is longer than {MAX_BODY} bytes")]
pub(super) struct TooLong;

impl JoinedAnswer {
    /// Adds a chunk; `data` is its original text.
    pub(super) fn add(&mut self, chunk: Completion, data: &str) -> Result<(), TooLong> {
        let delta = chunk.delta().unwrap_or_default();
        if self.said.len() + delta.len() > MAX_BODY {
            return Err(TooLong);
        }
        self.said.push_str(delta);
        self.words += delta.split_whitespace().count();
        if chunk.finish_reason().is_some() {
            self.end = Some(data.as_bytes().to_vec());
        }
        let before = std::mem::take(&mut self.rest);
        self.rest = Completion {
            id: Lenient(chunk.id.0.or(before.id.0)),
            model: Lenient(chunk.model.0.or(before.model.0)),
            citations: chunk.citations.or(before.citations),
            search_results: chunk.search_results.or(before.search_results),
            usage: Lenient(chunk.usage.0.or(before.usage.0)),
            related_questions: Items(chunk.related_questions.0.or(before.related_questions.0)),
            // A chunk after the end has usage and no choices.
            choices: Items(chunk.choices.0.filter(|said| !said.is_empty()).or(before.choices.0)),
            error: None,
        };
        Ok(())
    }

    /// Notes a chunk that could not be read: its text is lost, unless a later one repeats it.
    pub(super) fn add_unreadable(&mut self) {
        self.lossy = true;
    }

    /// The number of words that have arrived.
    pub(super) fn words(&self) -> usize {
        self.words
    }

    /// Returns true if the answer is complete.
    pub(super) fn is_whole(&self) -> bool {
        self.end.is_some()
    }

    /// The whole answer and the chunk that ended it; `None` if it is not whole, or has no text.
    pub(super) fn output(&self) -> Option<(Box<Output>, Vec<u8>)> {
        let end = self.end.clone()?;
        // In full mode the last chunk repeats everything. It wins if it has more: if a chunk was lost, or
        // if there are no deltas at all.
        let repeated = self.rest.message().unwrap_or_default();
        let said = if repeated.len() > self.said.len() { repeated } else { &self.said };
        if self.lossy && repeated.len() < self.said.len() {
            return None;
        }
        Some((report::output_with_text(said.to_owned(), self.rest.clone())?, end))
    }
}
