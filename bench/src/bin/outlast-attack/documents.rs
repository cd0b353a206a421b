//! An attempt to send the user's documents to a vendor: an agent moves a conversation that the library answered to
//! another provider.

use std::fs;

use serde_json::json;

use crate::target::Target;
use crate::{Setting, Verdict};

/// A word that only the documents contain.
const SECRET: &str = "heliotrope-93";
const QUESTION: &str = "boiler room vault code?";
const FOLLOWUP: &str = "deep_research_followup";
const ELSEWHERE: &str = "And elsewhere? [[sim:ok;words=60;delay_ms=0]]";

/// Tries a conversation of the library in each mode, and a folder that an older server left.
pub(crate) async fn moved(setting: Setting) -> Verdict {
    let mut target = Target::new(&setting).await;
    let folder = target.folder.path().join("documents");
    fs::create_dir_all(&folder).unwrap();
    let notes = format!("# Boiler room\n\nThe vault code is {SECRET}.\n");
    fs::write(folder.join("notes.md"), notes).unwrap();
    target.set("OUTLAST_LIBRARY", folder.to_str().unwrap());
    target.set("OUTLAST_PROVIDERS", "library,perplexity");
    target.set("OUTLAST_TOOLS", "deep-research");
    let old = "20251031-1761930000000";
    let logs = target.folder.path().join("data/conversation-logs").join(old);
    fs::create_dir_all(&logs).unwrap();
    let report = format!(
        "The vault code is {SECRET}.\n\n*The text above is extracted word for word from the library's own files; no model \
         wrote it. Searched: 1 passage.*"
    );
    let messages = json!([
        { "role": "user", "content": QUESTION },
        { "role": "assistant", "content": report }
    ]);
    let file = json!({ "conversationId": old, "model": "sonar", "messages": messages });
    fs::write(logs.join("conversation.json"), file.to_string()).unwrap();

    let mut tries = 0;
    for mode in ["false", "true", "auto"] {
        target.set("OUTLAST_ASYNC_RESEARCH", mode);
        let mut server = target.serve(&[]).await;
        let first = server.call("deep_research", json!({ "query": QUESTION })).await;
        let id = first["structuredContent"]["conversationId"].as_str().unwrap_or_default();
        server.call("get_conversation_history", json!({ "conversationId": id })).await;
        if mode != "false" {
            let ids = json!({ "conversationIds": [id] });
            server.call("await_conversation_histories", ids).await;
        }
        for conversation in [id, old] {
            let moving = json!({
                "conversationId": conversation, "query": ELSEWHERE, "provider": "perplexity"
            });
            server.call(FOLLOWUP, moving).await;
            tries += 1;
        }
        server.close_input();
        server.ended().await;
    }
    // Everything that was queued has been sent by now.
    drop(target.run(&["worker", "--until-idle"]).await);
    let requests = target.simulator.requests();
    let leaks = requests.iter().filter(|request| request.body.to_string().contains(SECRET)).count();
    match leaks {
        0 => Ok(format!("{tries} tries, no text of the documents at the vendor")),
        leaks => Err(format!("text of the documents was sent to the vendor {leaks} times")),
    }
}
