//! Results are exactly what the workflow returned, byte for byte, in one piece or in many.

use serde_json::{Value, json};

use super::{Shop, ended, ran, start};

/// E10, E15: a plain string comes back unchanged, including unusual characters.
#[tokio::test]
async fn e10_a_plain_string_result_comes_back_byte_for_byte() {
    let shop = Shop::new().await;
    let mut server = shop.serve().await;
    for text in
        ["", "plain", "a\nb\n", "\u{1F600} \"quoted\" \\ \u{7} \u{1b}[31m\r\n\t\u{0}", "[1]"]
    {
        let got = ran(&mut server, "echo", text).await;
        let expected = json!({ "content": [{ "type": "text", "text": text }], "isError": false });
        assert_eq!(got["result"], expected, "{text:?}");
    }
}

/// E10, E15: one JSON object is structured content as well.
#[tokio::test]
async fn e10_a_json_object_is_structured_content() {
    let shop = Shop::new().await;
    let mut server = shop.serve().await;
    let given = r#"{ "nested": {"a": [1, 2.5, null, true]}, "text": "\u00e9" }"#;
    let got = ran(&mut server, "echo", given).await;
    assert_eq!(got["result"]["content"][0]["text"], given);
    let expected: Value = serde_json::from_str(given).unwrap();
    assert_eq!(got["result"]["structuredContent"], expected);
}

/// E10: a long result comes in parts that, joined, parse to the result.
#[tokio::test]
async fn e10_a_long_result_comes_in_parts() {
    let shop = Shop::new().await;
    let mut server = shop.serve().await;
    let text = "\u{20ac}uro \"and\" more\n".repeat(40_000);
    let id = start(&mut server, "echo", &text).await;
    ended(&mut server, &id).await;
    let (mut joined, mut next, mut parts) = (String::new(), json!(0), 0);
    while next != Value::Null {
        let got = server.structured("get_job", json!({ "job_id": id, "offset": next })).await;
        assert_eq!(got["status"], "completed");
        let page = &got["result_page"];
        assert_eq!(page["offset"], next);
        let part = got["result"].as_str().unwrap();
        assert!(part.len() <= 256 * 1024);
        joined.push_str(part);
        let said = got["next_instruction_for_model"].as_str().unwrap();
        assert_eq!(said.contains("offset"), page["next_offset"] != Value::Null, "{said}");
        assert!(page["total_bytes"].as_u64().unwrap() >= joined.len() as u64, "{page}");
        next = page["next_offset"].clone();
        parts += 1;
    }
    assert!(parts >= 3, "{parts}");
    let result: Value = serde_json::from_str(&joined).unwrap();
    assert_eq!(result["content"][0]["text"].as_str(), Some(text.as_str()));
    assert_eq!(result["isError"], false);
}

/// E10: the beginning of endless output is kept, with a note.
#[tokio::test]
async fn e10_endless_output_is_cut_with_a_note() {
    let shop = Shop::new().await;
    let mut server = shop.serve().await;
    let got = ran(&mut server, "shell", "head -c 17000000 /dev/zero | tr '\\0' x").await;
    assert_eq!(got["status"], "completed");
    let total = got["result_page"]["total_bytes"].as_u64().unwrap();
    assert!((16_777_216..16_778_000).contains(&total), "{total}");
    let id = got["job_id"].as_str().unwrap();
    let last = server.structured("get_job", json!({ "job_id": id, "offset": total - 200 })).await;
    let said = last["result"].as_str().unwrap();
    assert!(said.contains("the output was cut here; 222784 more bytes were not kept"), "{said}");
}

/// E12: deep research as a workflow; its result follows E10, and it creates a conversation.
#[tokio::test]
async fn e12_deep_research_is_built_in() {
    let shop = Shop::new().await;
    let mut server = shop.serve_with(&["--async", "--tools", "research"]).await;
    let asked = json!({
        "workflow": "deep_research",
        "message": "Why is the sky blue? [[sim:ok;words=60;delay_ms=0]]",
        "arguments": { "reasoning_effort": "low" },
        "session_id": "s1"
    });
    let started = server.structured("start_job", asked).await;
    let id = started["job_id"].as_str().unwrap().to_owned();
    let got = ended(&mut server, &id).await;
    let result = &got["result"];
    assert!(result["text"].as_str().unwrap().len() > 50, "{got}");
    assert!(result["sources"].is_array() && result["usage"]["total_tokens"].is_u64(), "{result}");
    assert!(result["cost"]["usd"].is_number(), "{result}");
    let conversation = result["conversationId"].as_str().unwrap();
    let history =
        server.call("get_conversation_history", json!({ "conversationId": conversation })).await;
    assert_eq!(history["structuredContent"]["status"], "completed", "{history}");
    let listed = server.structured("list_jobs", json!({})).await;
    assert_eq!(listed["jobs"][0]["session_id"], "s1");
}
