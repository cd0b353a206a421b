//! Arbitrary bytes, read as the vendor's JSON: what a test of the adapter throws at it. Not part of the API.

use std::collections::HashSet;

use outlast_core::{Body, Step};

use super::meter::Meter;
use super::wire::{Event, Interaction, list_agents};
use super::{VENDOR, calls, report};
use crate::vendor::object;

/// Takes the bytes for an event and for the body of an answer; returns what is wrong with the results.
pub fn answer(bytes: &[u8]) -> Result<(), String> {
    let mut meter = Meter::default();
    if let Some(event) = Event::parse(&mut String::from_utf8_lossy(bytes).into_owned()) {
        let percent = meter.event(&event, event.kind()).and_then(|progress| progress.percent);
        if percent.is_some_and(|percent| percent > 95) {
            return Err(format!("{percent:?} percent before the end"));
        }
    }
    drop(list_agents(bytes));
    let Some(mut interaction) = object::<Interaction>(bytes) else { return Ok(()) };
    drop(meter.snapshot(&interaction));
    drop(calls::run_ended(&VENDOR, &interaction, str::to_owned));
    let step = report::final_step(&mut interaction, Vec::new());
    let Some(Step::Done { output, .. }) = step else { return Ok(()) };
    let Body::Report { text, sources, .. } = output.body else { return Ok(()) };
    let urls: HashSet<&str> = sources.iter().map(|source| source.url.as_str()).collect();
    let numbered = sources.iter().zip(1..).all(|(source, number)| source.number == number);
    match urls.len() == sources.len() && !urls.contains("") && numbered && !text.trim().is_empty() {
        true => Ok(()),
        false => Err(format!("{text:?} with {sources:?}")),
    }
}
