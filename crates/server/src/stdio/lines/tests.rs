use std::time::Duration;

use rmcp::model::{CallToolResult, ContentBlock, RequestId, ServerJsonRpcMessage, ServerResult};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, BufReader, DuplexStream};
use tokio::time::timeout;

use super::*;

const LIMIT: Duration = Duration::from_secs(20);

fn lines() -> (LineTransport<tokio::io::Empty, DuplexStream>, DuplexStream) {
    let (output, client) = tokio::io::duplex(1000);
    (LineTransport::new(tokio::io::empty(), output, 10), client)
}

fn message(id: i64, text: &str) -> ServerJsonRpcMessage {
    let result = CallToolResult::success(vec![ContentBlock::text(text)]);
    ServerJsonRpcMessage::response(ServerResult::CallToolResult(result), RequestId::Number(id))
}

/// The second text is one string without an escape, so it reaches the output in one piece.
#[tokio::test]
async fn long_and_short_messages_are_whole_lines_as_rmcp_would_write_them() {
    let texts = [
        "short".to_owned(),
        "x".repeat(3 * MAX_WHOLE_BYTES),
        "\u{e9}\"\n".repeat(MAX_WHOLE_BYTES),
        String::new(),
    ];
    let (mut lines, client) = lines();
    let sent: Vec<_> =
        (1..).zip(&texts).map(|(id, text)| tokio::spawn(lines.send(message(id, text)))).collect();
    let mut client = BufReader::new(client).lines();
    let mut seen = Vec::new();
    for _ in &texts {
        let line = timeout(LIMIT, client.next_line()).await.unwrap().unwrap().unwrap();
        let id = serde_json::from_str::<Value>(&line).unwrap()["id"].as_i64().unwrap();
        let text = &texts[usize::try_from(id - 1).unwrap()];
        assert_eq!(line, serde_json::to_string(&message(id, text)).unwrap());
        seen.push(id);
    }
    seen.sort_unstable();
    assert_eq!(seen, [1, 2, 3, 4]);
    for sent in sent {
        sent.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_client_that_goes_away_in_the_middle_of_a_line_holds_no_other_up() {
    let (mut lines, mut client) = lines();
    let long = tokio::spawn(lines.send(message(1, &"x".repeat(2 * MAX_WHOLE_BYTES))));
    client.read_exact(&mut [0; 500]).await.unwrap();
    let short = tokio::spawn(lines.send(message(2, "short")));
    drop(client);
    assert!(timeout(LIMIT, long).await.unwrap().unwrap().is_err());
    assert!(timeout(LIMIT, short).await.unwrap().unwrap().is_err());
}
