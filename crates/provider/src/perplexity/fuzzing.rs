//! Arbitrary bytes, read as the vendor's JSON: what the fuzz targets, the test that runs their corpus, and benchmarks
//! call. Not part of the API.

use std::collections::HashSet;

use outlast_core::{Body, Output, Step};
use outlast_http::SseDecoder;
use reqwest::StatusCode;

use super::{report, search};
use crate::http::{MAX_EVENT, MAX_REFUSAL};
use crate::responses::wire::{Event, Response};
use crate::responses::{Meter, run_ended};
use crate::vendor::{HttpAnswer, object, provider_error};

/// Takes the bytes for an event; returns what is wrong with the result.
pub fn event(bytes: &[u8]) -> Result<(), String> {
    let Some(event) = Event::parse(&mut String::from_utf8_lossy(bytes).into_owned()) else {
        return Ok(());
    };
    let mut meter = Meter::default();
    let percent = meter.event(&event).and_then(|progress| progress.percent);
    if percent.is_some_and(|percent| percent > 95) {
        return Err(format!("{percent:?} percent before the end"));
    }
    let status = event.status();
    match (status, event.response.0) {
        (Some(status), Some(mut response)) => {
            check_finished(&report::final_step(status, &mut response, event.raw))
        }
        _ => Ok(()),
    }
}

/// Takes the bytes for the body of an answer; returns what is wrong with the result.
pub fn response(bytes: &[u8]) -> Result<(), String> {
    for status in [StatusCode::BAD_REQUEST, StatusCode::BAD_GATEWAY] {
        // No more of a refusal is read.
        let body = bytes[..bytes.len().min(MAX_REFUSAL)].to_vec();
        let answer = HttpAnswer { status, retry_after: None, body };
        let error = provider_error(&super::VENDOR, &answer, "key");
        if error.detail.is_some_and(|detail| detail.chars().count() > 12_000) {
            return Err("more than a detail".to_owned());
        }
    }
    let Some(mut response) = object::<Response>(bytes) else { return Ok(()) };
    let mut meter = Meter::default();
    drop(meter.snapshot(&response));
    check_finished(&report::final_step(response.status(), &mut response, bytes.to_vec()))?;
    drop(run_ended(&super::VENDOR, response.status(), response.error.as_ref(), str::to_owned));
    Ok(())
}

/// Takes the bytes for all that the Sonar and the Search endpoints answer, and for the chunks of a stream, one a line.
pub fn sonar(bytes: &[u8]) -> Result<(), String> {
    drop(search::read(bytes));
    super::sonar::fuzz(bytes)?.iter().try_for_each(sound)
}

/// Follows a stream that arrives in pieces of this size: the text at its end, if it has one.
pub fn follow(stream: &[u8], size: usize) -> Option<String> {
    let (mut decoder, mut meter) = (SseDecoder::new(MAX_EVENT), Meter::default());
    for piece in stream.chunks(size.max(1)) {
        decoder.push(piece).ok()?;
        while let Some(sse) = decoder.next_event() {
            let Some(mut event) = sse.data.and_then(|mut data| Event::parse(&mut data)) else {
                continue;
            };
            drop(meter.event(&event));
            let (Some(status), Some(response)) = (event.status(), &mut *event.response) else {
                continue;
            };
            let step = report::final_step(status, response, event.raw);
            let Some(Step::Done { output, .. }) = step else { continue };
            let Body::Report { text, .. } = output.body else { return None };
            return Some(text);
        }
    }
    None
}

/// Checks that a report has text, and every source an address and its own number.
fn sound(output: &Output) -> Result<(), String> {
    let Body::Report { text, sources, .. } = &output.body else { return Ok(()) };
    let numbers: HashSet<u32> = sources.iter().map(|source| source.number).collect();
    let addressed = sources.iter().all(|source| !source.url.is_empty());
    match numbers.len() == sources.len() && addressed && !text.trim().is_empty() {
        true => Ok(()),
        false => Err(format!("{text:?} with {sources:?}")),
    }
}

/// Checks in addition that no two sources of the Agent API have the same address.
fn check_finished(step: &Option<Step>) -> Result<(), String> {
    let Some(Step::Done { output, .. }) = step else { return Ok(()) };
    let Body::Report { sources, .. } = &output.body else { return Ok(()) };
    let urls: HashSet<&str> = sources.iter().map(|source| source.url.as_str()).collect();
    match urls.len() == sources.len() {
        true => sound(output),
        false => Err(format!("two sources are one: {sources:?}")),
    }
}
