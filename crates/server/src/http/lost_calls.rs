//! Calls with a broken stream. A client may return to any server with the id of the last event that it saw. A server that
//! does not hold the call answers with an error at once, under the request's id, which is part of the event ids for this
//! purpose.

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use http::HeaderMap;
use http::header::CONTENT_TYPE;
use rmcp::ErrorData;
use rmcp::model::{RequestId, ServerJsonRpcMessage};

/// Longer request ids are omitted from event ids: such a stream cannot be resumed.
const MAX_ID_BYTES: usize = 100;

/// Returns the id of an event on the stream of a request; `id` is rmcp's id.
pub(super) fn event_id(id: &str, request: &RequestId) -> Option<String> {
    let request = serde_json::to_vec(request).ok().filter(|it| it.len() <= MAX_ID_BYTES)?;
    let request: String = request.iter().map(|byte| format!("{byte:02x}")).collect();
    Some(format!("{id}~{request}"))
}

/// Splits an event id into rmcp's id and the request of the stream.
pub(super) fn parse_event_id(id: &str) -> Option<(&str, RequestId)> {
    let (id, request) = id.split_once('~')?;
    let digits = request.as_bytes().chunks(2).map(str::from_utf8);
    let bytes = digits.map(|two| u8::from_str_radix(two.ok()?, 16).ok());
    Some((id, serde_json::from_slice(&bytes.collect::<Option<Vec<u8>>>()?).ok()?))
}

/// Returns the first event on the stream of a request: only an id to resume with.
pub(super) fn first_event(request: &RequestId) -> Option<Bytes> {
    Some(format!("id: {}\nretry: 3000\ndata: \n\n", event_id("", request)?).into())
}

/// Answers a client that returns with these headers for a request that this server does not hold.
pub(super) fn answer(headers: &HeaderMap) -> Option<Response> {
    let (_, request) = parse_event_id(headers.get("last-event-id")?.to_str().ok()?)?;
    let message = serde_json::to_string(&lost_call(request)).ok()?;
    let body = Body::from(format!("data: {message}\n\n"));
    Some(([(CONTENT_TYPE, "text/event-stream")], body).into_response())
}

/// Returns the error for a client that returns for this request.
pub(super) fn lost_call(request: RequestId) -> ServerJsonRpcMessage {
    let why = "the connection broke, and the answer to this call cannot be had any more. A job that the call started or \
               waited for goes on: look for it before you start it again, and wait for it with a new call";
    ServerJsonRpcMessage::error(ErrorData::internal_error(why, None), Some(request))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn f5_the_id_of_an_event_names_its_request() {
        for request in [RequestId::Number(-7), RequestId::String("ä \n~".into())] {
            let id = event_id("3/0", &request).unwrap();
            assert!(id.bytes().all(|byte| byte.is_ascii_graphic()), "{id}");
            assert_eq!(parse_event_id(&id), Some(("3/0", request)));
        }
        assert_eq!(event_id("0", &RequestId::String("x".repeat(200).into())), None);
        for other in ["", "0", "3/0", "0~", "0~3", "0~zz", "0~7b7d", "0~ä"] {
            assert_eq!(parse_event_id(other), None, "{other}");
        }
    }
}
