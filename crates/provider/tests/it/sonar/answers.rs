//! Quick answers: chat completions, streamed or whole.

use outlast_core::{BeginError, Body, Cost, NanoUsd, ProviderErrorKind, Step};
use serde_json::{Value, json};

use super::bench::{SOON, answered, ask, begin, not_begun, sonar};
use crate::bench::{Followed, PATIENCE, follow};
use crate::canned::{Canned, Reply, Then, raw, reply, stream};

const SAID: &str = "<think>h\u{e9} \u{1F600} thinks</think>\n\nWater boils [1] at 100 \u{b0}C [2].";

fn usage() -> Value {
    json!({"prompt_tokens": 5, "completion_tokens": 9, "total_tokens": 14, "citation_tokens": 3,
        "reasoning_tokens": 2, "num_search_queries": 1, "cost": {"total_cost": 0.00605}})
}

fn found() -> Value {
    json!([{"title": "A", "url": "https://a.example", "date": "2026-01-02"},
        {"title": null, "url": "https://b.example", "date": null}])
}

/// The whole answer as a server that does not stream gives it.
fn plain() -> Value {
    json!({"id": "c-1", "model": "sonar-pro", "object": "chat.completion",
        "choices": [{"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": SAID}}],
        "citations": ["https://a.example", "https://b.example"], "search_results": found(),
        "usage": usage(), "related_questions": ["Why?"]})
}

/// The same answer as chunks in full mode, a few characters each.
fn chunks() -> Vec<String> {
    let characters: Vec<char> = SAID.chars().collect();
    let mut so_far = String::new();
    let mut chunks = Vec::new();
    for part in characters.chunks(5) {
        let delta: String = part.iter().collect();
        so_far.push_str(&delta);
        let chunk = json!({"id": "c-1", "model": "sonar-pro", "object": "chat.completion.chunk",
            "choices": [{"index": 0, "finish_reason": null,
                "message": {"role": "assistant", "content": so_far}, "delta": {"content": delta}}],
            "usage": {"prompt_tokens": 5, "cost": {"total_cost": 0}}});
        chunks.push(chunk.to_string());
    }
    let end = json!({"id": "c-1", "model": "sonar-pro", "object": "chat.completion.chunk",
        "choices": [{"index": 0, "finish_reason": "stop",
            "message": {"role": "assistant", "content": so_far}, "delta": {"content": ""}}],
        "citations": ["https://a.example", "https://b.example"], "search_results": found(),
        "usage": usage(), "related_questions": ["Why?"]});
    chunks.push(end.to_string());
    chunks
}

async fn asked(reply: Reply) -> Followed {
    let server = Canned::always(reply).await;
    let followed = answered(&sonar(&server.url, PATIENCE), &ask("ask")).await;
    assert_eq!(server.lines(), ["POST /chat/completions"]);
    followed
}

#[tokio::test]
async fn an_answer_has_its_text_thinking_sources_questions_usage_and_cost() {
    let followed = asked(stream(&chunks(), Then::Close)).await;
    let output = followed.output();
    assert_eq!(output.model.as_deref(), Some("sonar-pro"));
    assert_eq!(output.cost, Cost::Reported(NanoUsd(6_050_000)));
    assert_eq!((output.usage.citation_tokens, output.usage.reasoning_tokens), (3, 2));
    assert_eq!((output.usage.input_tokens, output.usage.searches), (5, 1));
    let Body::Report { text, sources, thinking, related } = &output.body else { panic!() };
    assert_eq!(text, "Water boils [1] at 100 \u{b0}C [2].");
    assert_eq!(thinking.as_deref(), Some("h\u{e9} \u{1F600} thinks"));
    assert_eq!(related, &["Why?"]);
    assert_eq!(sources.iter().map(|source| source.number).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(followed.end.as_ref().unwrap().1, chunks().last().unwrap().as_bytes());
    assert_eq!(
        followed.reported(),
        [(25, "Querying Perplexity API..."), (50, "Processing response...")]
    );
}

/// The wire must not show in the answer: whole, or streamed with `[DONE]`, or without it.
#[tokio::test]
async fn a_streamed_answer_is_the_whole_answer() {
    let whole = asked(reply(200, &plain().to_string())).await;
    let mut done = chunks();
    done.push("[DONE]".to_owned());
    for reply in [stream(&done, Then::Hold), stream(&chunks(), Then::Close)] {
        assert_eq!(asked(reply).await.output(), whole.output());
    }
}

/// Split at every byte of a frame, and dripped byte by byte.
#[tokio::test]
async fn a_streamed_answer_is_the_same_wherever_its_bytes_are_cut() {
    let mut events = chunks();
    events.push("[DONE]".to_owned());
    let whole = asked(reply(200, &plain().to_string())).await;
    let frame = |nth: usize| events[nth].len() + "data: \n\n".len();
    // The first frames have the open tag, an accent and an emoji.
    let places = frame(0) + frame(1) + frame(2);
    let drip: Vec<usize> = (1..(0..events.len()).map(frame).sum()).collect();
    let server = Canned::serve(move |_, nth| {
        let cuts = if nth < places { vec![nth] } else { drip.clone() };
        stream(&events, Then::Hold).cut(&cuts)
    })
    .await;
    let sonar = sonar(&server.url, PATIENCE);
    for place in 0..=places {
        let cut = answered(&sonar, &ask("ask")).await;
        assert_eq!(cut.output(), whole.output(), "cut at {place} of {places}");
    }
}

#[tokio::test]
async fn begin_returns_with_the_first_chunk() {
    let server = Canned::always(stream(&chunks()[..1], Then::Hold)).await;
    let run = begin(&sonar(&server.url, PATIENCE), &ask("reason")).await;
    assert_eq!(run.remote().id, "c-1");
}

#[tokio::test]
async fn each_kind_asks_its_model_for_a_stream() {
    let server = Canned::always(reply(200, &plain().to_string())).await;
    let sonar = sonar(&server.url, PATIENCE);
    for (kind, model) in
        [("search", "sonar"), ("ask", "sonar-pro"), ("reason", "sonar-reasoning-pro")]
    {
        answered(&sonar, &ask(kind)).await.output();
        let body = server.seen().pop().unwrap().body;
        assert_eq!((&body["model"], &body["stream"]), (&json!(model), &json!(true)));
    }
}

/// Some servers send deltas alone, some the whole text so far alone; usage may come after the end.
#[tokio::test]
async fn deltas_or_whole_messages_are_enough() {
    let delta = |text: &str| json!({"choices": [{"delta": {"content": text}}]}).to_string();
    let message = |text: &str| json!({"choices": [{"message": {"content": text}}]}).to_string();
    let end = json!({"choices": [{"finish_reason": "stop", "delta": {}}]}).to_string();
    let ends = json!({"choices": [{"finish_reason": "stop", "message": {"content": "a b c"}}]})
        .to_string();
    let late = json!({"choices": [], "usage": usage()}).to_string();
    let only_deltas = asked(stream(&[delta("a b"), delta(" c"), end, late], Then::Close)).await;
    assert_eq!(only_deltas.text(), "a b c");
    assert_eq!(only_deltas.output().usage.total_tokens, 14);
    let only_messages = asked(stream(&[message("a"), message("a b"), ends], Then::Close)).await;
    assert_eq!(only_messages.text(), "a b c");
}

/// The answer has no name in either; the key replaces it.
#[tokio::test]
async fn an_answer_without_an_id_is_still_an_answer() {
    let whole = r#"{"choices":[{"finish_reason":"stop","message":{"content":"yes"},"delta":{"content":"yes"}}]}"#;
    for reply in [reply(200, whole), stream(&[whole], Then::Close)] {
        let server = Canned::always(reply).await;
        let mut run = begin(&sonar(&server.url, PATIENCE), &ask("search")).await;
        assert_eq!(run.remote().id, "key-1");
        assert_eq!(follow(&mut *run).await.text(), "yes");
    }
}

/// A stream that stays open after the end is not waited for.
#[tokio::test]
async fn an_end_without_done_ends_an_open_stream() {
    let server = Canned::always(stream(&chunks(), Then::Hold)).await;
    let asked = tokio::time::Instant::now();
    answered(&sonar(&server.url, PATIENCE), &ask("ask")).await.output();
    assert!(asked.elapsed().as_secs() < 10);
}

/// A chunk that cannot be read is lost text, unless a later one repeats it; keep-alives are nothing.
#[tokio::test]
async fn a_lost_chunk_is_repaired_or_an_error_never_a_shorter_answer() {
    let chunks = chunks();
    let mut repaired = chunks.clone();
    repaired[1] = "{broken".to_owned();
    repaired.insert(0, "ping".to_owned());
    let whole = asked(stream(&chunks, Then::Close)).await;
    assert_eq!(asked(stream(&repaired, Then::Close)).await.output(), whole.output());
    let delta = |text: &str| json!({"choices": [{"delta": {"content": text}}]}).to_string();
    let end = json!({"choices": [{"finish_reason": "stop"}]}).to_string();
    for place in [0, 1, 2] {
        let mut lossy = vec![delta("a"), delta("b"), end.clone()];
        lossy.insert(place, "{broken".to_owned());
        let followed = asked(stream(&lossy, Then::Close)).await;
        assert_eq!(followed.error().kind, ProviderErrorKind::Malformed, "{place}");
    }
}

/// B9a: what was accepted and came to nothing is never bought again.
#[tokio::test]
async fn b9a_a_stream_that_breaks_is_an_error_that_buys_nothing() {
    let chunk = &chunks()[0];
    let frame = format!("data: {chunk}\n\n");
    let sse = "content-type: text/event-stream";
    let chunked = |then| {
        raw(
            200,
            &format!("{sse}\r\ntransfer-encoding: chunked"),
            format!("{:x}\r\n{frame}\r\n", frame.len()).as_bytes(),
            then,
        )
    };
    let unavailable = ProviderErrorKind::Unavailable { retry_after: None };
    let error = r#"{"error":{"message":"overloaded","type":"server","code":500}}"#;
    let huge = [frame.clone().into_bytes(), b"data: ".to_vec(), vec![b'x'; 9 << 20]].concat();
    let cases = [
        ("ends without finish_reason", stream(&[chunk], Then::Close), ProviderErrorKind::Malformed),
        (
            "done without finish_reason",
            stream(&[chunk, "[DONE]"], Then::Hold),
            ProviderErrorKind::Malformed,
        ),
        ("breaks off", chunked(Then::Close), ProviderErrorKind::Unreachable),
        ("falls silent", chunked(Then::Hold), ProviderErrorKind::TimedOut),
        ("gives up", stream(&[chunk, error], Then::Hold), unavailable),
        ("never ends a line", raw(200, sse, &huge, Then::Hold), ProviderErrorKind::Malformed),
    ];
    for (case, reply, kind) in cases {
        let server = Canned::always(reply).await;
        let timeout = if case == "falls silent" { SOON } else { PATIENCE };
        let followed = answered(&sonar(&server.url, timeout), &ask("ask")).await;
        let error = followed.error();
        assert_eq!(error.kind, kind, "{case}: {error:?}");
        assert!(!error.kind.ends_the_run(), "{case}: that would buy it again");
        assert_eq!(server.submits(), 1, "{case}");
    }
}

/// B9a: a success that is not an answer is unknown.
#[tokio::test]
async fn b9a_a_stream_that_never_begins_is_unknown() {
    let error = r#"{"error":{"message":"overloaded"}}"#;
    let silent = raw(200, "content-type: text/event-stream", b": ping\n\n", Then::Hold);
    let cases = [
        ("done", stream(&["[DONE]"], Then::Hold)),
        ("error", stream(&[error], Then::Hold)),
        ("closed", stream(&["ping"], Then::Close)),
        ("silent", silent),
    ];
    for (case, reply) in cases {
        let server = Canned::always(reply).await;
        let timeout = if case == "silent" { SOON } else { PATIENCE };
        let error = not_begun(&sonar(&server.url, timeout), &ask("ask")).await;
        assert!(matches!(error, BeginError::Unknown(_)), "{case}: {error:?}");
        assert_eq!(server.submits(), 1, "{case}");
    }
}

/// A long answer reports its progress, and not with every word.
#[tokio::test]
async fn a_long_answer_reports_progress_by_its_words() {
    let delta = json!({"choices": [{"delta": {"content": "word ".repeat(10)}}]}).to_string();
    let mut events = vec![delta; 30];
    events.push(json!({"choices": [{"finish_reason": "stop"}]}).to_string());
    let followed = asked(stream(&events, Then::Close)).await;
    let percents: Vec<u8> = followed.reported().iter().map(|(percent, _)| *percent).collect();
    assert_eq!(percents, [25, 50, 51, 52, 53, 54, 55, 56]);
}

/// Events received before a wait was dropped are not lost.
#[tokio::test]
async fn a_dropped_next_loses_no_text() {
    let server =
        Canned::always(stream(&chunks(), Then::Close).cut(&(1..2_000).collect::<Vec<_>>())).await;
    let mut run = begin(&sonar(&server.url, PATIENCE), &ask("ask")).await;
    let mut drops = 0;
    let output = loop {
        match tokio::time::timeout(std::time::Duration::from_micros(drops * 20), run.next()).await {
            Err(_) => drops += 1,
            Ok(Ok(Step::Done { output, .. })) => break output,
            Ok(Ok(_)) => {}
            Ok(Err(error)) => panic!("{error:?}"),
        }
        assert!(drops < 10_000, "it never comes to an end");
    };
    let whole = asked(reply(200, &plain().to_string())).await;
    assert_eq!(&*output, whole.output());
}
