//! L4: a report that is too long for one answer.

use super::*;
use crate::page::browser::Browser;

/// Reads the report by offsets, from the first part on.
async fn joined(server: &mut McpProcess, id: &Value, limit: usize) -> String {
    let (mut report, mut offset) = (String::new(), json!(0));
    while offset.is_u64() {
        let part = json!({ "conversationId": id, "offset": offset });
        let part = server.call(HISTORY, part).await["structuredContent"].clone();
        let text = part["messages"][0]["content"].as_str().unwrap();
        assert!(text.chars().count() <= limit, "{}", text.chars().count());
        report.push_str(text);
        offset = part["nextOffset"].clone();
    }
    report
}

fn size(answer: &Value) -> usize {
    let blocks = answer["content"].as_array().unwrap().iter();
    blocks.filter_map(|block| block["text"].as_str()).map(|text| text.chars().count()).sum()
}

/// L4: a report of 400,000 characters arrives whole as a resource, by offsets and on the page, while every answer is shorter
/// than the limit.
#[tokio::test]
async fn l4_a_report_of_400_000_characters_arrives_whole() {
    const LIMIT: usize = 80_000;
    let mut world = World::new().await;
    let served = Served::start(&mut world, &[]).await;
    let ann = served.client(ANN);
    let query = json!({ "query": "Why? [[sim:ok;words=70000;sources=5;delay_ms=0]]" });
    let answer = ann.ask(DEEP, query, json!({})).await.result().await["result"].clone();
    let shape = &answer["structuredContent"];
    let total = shape["totalChars"].as_u64().unwrap() as usize;
    assert!(total > 400_000, "{total}");
    assert!(size(&answer) <= LIMIT && shape.to_string().len() <= LIMIT, "{}", size(&answer));
    let id = &shape["conversationId"];
    let (mut report, mut offset) = (String::new(), json!(0));
    while offset.is_u64() {
        let part = ann.call(HISTORY, json!({ "conversationId": id, "offset": offset })).await;
        report.push_str(part["messages"][0]["content"].as_str().unwrap());
        offset = part["nextOffset"].clone();
    }
    assert_eq!(report.chars().count(), total);
    let shown = shape["rawResultText"].as_str().unwrap();
    let (beginning, _) = shown.split_once("\n\n## Contents\n").unwrap();
    assert!(report.starts_with(beginning));
    let read = json!({ "uri": uri_of(id) });
    let read = ann.request(None, "resources/read", read).await;
    let resource = read["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(resource.contains(report.trim()), "the resource is whole");
    let browser = Browser::signed_in(served.address, ANN).await;
    let path = format!("/ui/conversations/{}", id.as_str().unwrap());
    let export = browser.get(&format!("{path}/export/md")).await;
    assert!(export.body.contains(report.trim()), "the page's download is whole");
    // The page has it as HTML: its last words are there.
    let page = browser.get(&path).await;
    let last: Vec<&str> = report.trim().rsplitn(2, ". ").collect();
    let words: Vec<&str> = last[0].split(['[', '*', '`', '&', '"', '\'']).collect();
    assert!(page.body.contains(words[0].trim()), "{:?} is on the page", words[0]);
    let history = ann.ask(HISTORY, json!({ "conversationId": id }), json!({})).await.result().await;
    assert!(size(&history["result"]) <= LIMIT, "{}", size(&history["result"]));
}

/// L4: the answer says how to read on; below the limit nothing changes; an offset belongs to one conversation.
#[tokio::test]
async fn l4_a_long_report_says_how_to_read_on() {
    let mut world = World::new().await;
    let query = json!({ "query": "Why? [[sim:ok;words=2000;sources=3;delay_ms=0]]" });
    let mut server = world.serve().await;
    let whole = server.call(DEEP, query.clone()).await;
    assert!(whole["structuredContent"].get("truncated").is_none(), "{whole}");
    let report = whole["structuredContent"]["rawResultText"].as_str().unwrap();
    let id = &whole["structuredContent"]["conversationId"];
    world.set("OUTLAST_INLINE_REPORT_CHARS", "4000");
    let mut server = world.serve().await;
    let history = server.call(HISTORY, json!({ "conversationId": id })).await;
    let shape = &history["structuredContent"];
    assert_eq!(shape["truncated"], true, "{shape}");
    assert_eq!(shape["totalChars"], report.chars().count(), "{shape}");
    let next = &shape["nextOffset"];
    let text = history["content"].to_string();
    assert!(text.contains("## Contents") && text.contains("Sources:"), "{text}");
    let how = format!("offset {next} for the next part, or read the resource {}", uri_of(id));
    assert!(text.contains(&how), "{text}");
    assert_eq!(joined(&mut server, id, 4000).await, report);
    for wrong in [
        json!({ "conversationId": [id], "offset": 0 }),
        json!({ "conversationId": id, "offset": report.chars().count() }),
        json!({ "conversationId": id, "offset": -1 }),
    ] {
        let refused = server.call(HISTORY, wrong).await;
        crate::support::assert_refused(&refused, "VALIDATION_ERROR", false);
    }
    let again = server.call(DEEP, query).await;
    assert_eq!(again["structuredContent"]["truncated"], true, "{again}");
}
