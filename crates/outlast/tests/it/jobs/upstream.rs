//! Tools of another server as workflows; the other server is our own, over a pipe.

use serde_json::json;

use super::{Shop, ended, ran, runs, start};
use crate::support::{assert_refused, binary, eventually};

/// Creates workflows that are the blocking workflows of another outlast.
async fn shop(more: &str) -> Shop {
    let mut shop = Shop::new().await;
    shop.world.set("INNER_DATA", shop.file("inner").to_str().unwrap());
    let inner = shop.file("inner.toml");
    let echo =
        "[[workflow]]\nname = \"own-pid\"\ncommand = [\"/bin/sh\", \"-c\", \"echo $PPID\"]\n";
    let trace =
        "[[workflow]]\nname = \"trace\"\ncommand = [\"/bin/sh\", \"-c\", \"echo $TRACEPARENT\"]\n";
    std::fs::write(&inner, format!("{}{echo}{trace}", super::WORKFLOWS)).unwrap();
    let outer = format!(
        r#"
[upstream.other]
command = ["{}", "serve", "--no-detach", "--config", "{}", "--data-dir", "{}"]
env = {{ PERPLEXITY_API_KEY = "k" }}

[[workflow]]
name = "say"
tool = "other.echo"
message_argument = "message"

[[workflow]]
name = "plain"
tool = "other.given"

[[workflow]]
name = "script"
tool = "other.shell"
message_argument = "message"
{more}

[[workflow]]
name = "who"
tool = "other.own-pid"

[[workflow]]
name = "traced"
tool = "other.trace"

[[workflow]]
name = "missing"
tool = "other.missing"
"#,
        binary().display(),
        inner.display(),
        shop.file("inner").display(),
    );
    std::fs::write(shop.file("outlast.toml"), outer).unwrap();
    shop
}

/// E10, E12: arguments go upstream, the answer comes back unchanged, including an error of the tool.
#[tokio::test]
async fn e12_a_tool_of_another_server_is_a_workflow() {
    let shop = shop("").await;
    let mut server = shop.serve().await;
    let got = ran(&mut server, "say", "{\"a\": 1}").await;
    let expected = json!({
        "content": [{ "type": "text", "text": "{\"a\": 1}" }],
        "structuredContent": { "a": 1 },
        "isError": false
    });
    assert_eq!(got["result"], expected, "{got}");
    let asked = json!({ "workflow": "plain", "arguments": { "session_id": "up", "arguments": { "x": 1 } } });
    let started = server.structured("start_job", asked).await;
    let got = ended(&mut server, started["job_id"].as_str().unwrap()).await;
    let text = got["result"]["content"][0]["text"].as_str().unwrap();
    assert!(text.starts_with("|{\"x\":1}|up|"), "{got}");
    let message = json!({ "workflow": "plain", "message": "x" });
    assert_refused(&server.call("start_job", message).await, "VALIDATION_ERROR", false);
    let failed = ran(&mut server, "script", "exit 3").await;
    assert_eq!(
        (&failed["status"], &failed["result"]["isError"]),
        (&json!("completed"), &json!(true))
    );
}

/// E10: a JSON-RPC error is a failure.
#[tokio::test]
async fn e10_a_json_rpc_error_fails_the_job() {
    let shop = shop("").await;
    let mut server = shop.serve().await;
    let started = server.structured("start_job", json!({ "workflow": "missing" })).await;
    let got = ended(&mut server, started["job_id"].as_str().unwrap()).await;
    assert_eq!(
        (&got["status"], &got["error"]["code"]),
        (&json!("failed"), &json!("EXECUTION_ERROR"))
    );
    assert!(got["error"]["message"].as_str().unwrap().contains("code -32602"), "{got}");
}

/// E12: its progress is relayed, and a cancel reaches it.
#[tokio::test]
async fn e12_progress_is_relayed_and_a_cancel_goes_up() {
    let shop = shop("").await;
    let mut server = shop.serve().await;
    let script =
        "echo $$ > deep; echo '{\"progress\": 40, \"message\": \"scanning\"}' >&2; sleep 1000";
    let id = start(&mut server, "script", script).await;
    let deep = shop.pid("deep").await;
    let seen = async {
        loop {
            let got =
                server.structured("get_job", json!({ "job_id": id, "wait_seconds": 0 })).await;
            assert_eq!(got["done"], false, "{got}");
            if got["progress"]["percent"] == 40 {
                return got;
            }
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    let limit = std::time::Duration::from_secs(30);
    let got = tokio::time::timeout(limit, seen).await.expect("the progress is seen");
    assert_eq!(got["progress"]["message"], "scanning");
    let got = server.structured("cancel_job", json!({ "job_id": id })).await;
    assert_eq!(got["status"], "cancelled");
    eventually("the tool is stopped", || !runs(deep)).await;
}

/// tools.md: silence longer than the idle window is a timeout.
#[tokio::test]
async fn e12_a_silent_tool_times_out() {
    let shop = shop("timeout = \"1s\"\nreset_timeout_on_progress = false").await;
    let mut server = shop.serve().await;
    let got = ran(&mut server, "script", "sleep 1000").await;
    assert_eq!(
        (&got["status"], &got["error"]["code"]),
        (&json!("failed"), &json!("TIMEOUT")),
        "{got}"
    );
}

/// E6: a server that died is started again, and leaves nothing when we are killed.
#[tokio::test]
async fn e6_an_upstream_that_died_is_started_again() {
    let shop = shop("").await;
    let mut server = shop.serve().await;
    // Different arguments, because the same call may get the answer whose receipt the kill kept from being recorded.
    let mut who = async |session: &str| -> u32 {
        let asked = json!({ "workflow": "who", "arguments": { "session_id": session } });
        let started = server.structured("start_job", asked).await;
        let got = ended(&mut server, started["job_id"].as_str().unwrap()).await;
        got["result"]["content"][0]["text"]
            .as_str()
            .unwrap_or_else(|| panic!("{got}"))
            .trim()
            .parse()
            .unwrap()
    };
    let first = who("first").await;
    outlast_testkit::mcp_process::signal(first, outlast_testkit::mcp_process::Signal::KILL);
    let second = who("second").await;
    assert_ne!(first, second);
    server.kill().await;
    eventually("the upstream is gone", || !runs(second)).await;
}

/// A server that turns every call into a task, and answers everything but `tasks/cancel`.
const NEVER_CANCELS: &str = r#"
say() { printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$1"; }
task='"taskId":"t-1","status":"working","createdAt":"2026-11-15T00:00:00Z","lastUpdatedAt":"2026-11-15T00:00:00Z","ttlMs":null,"pollIntervalMs":100'
while read -r line; do
  id=$(printf '%s' "$line" | sed 's/.*"id":\([0-9]*\).*/\1/')
  case "$line" in
    *'"server/discover"'*) say 'DISCOVERY' ;;
    *'"tools/call"'*) echo called >> calls; say "{\"resultType\":\"task\",$task}" ;;
    *'"tasks/get"'*)
      if [ -e ended ]; then
        say "{\"resultType\":\"complete\",$(printf '%s' "$task" | sed s/working/completed/),\"result\":RESULT}"
      else say "{\"resultType\":\"complete\",$task}"; fi ;;
    *'"tasks/cancel"'*) echo cancel >> cancels; touch ended ;;
    *'"ping"'*) say '{}' ;;
  esac
done
"#;

/// The reading of D13: a workflow's limit cancels the task; if that is not confirmed, the next attempt resumes the task
/// and begins none.
#[tokio::test]
async fn d13_a_task_whose_cancel_was_not_confirmed_is_resumed_by_the_next_attempt() {
    use outlast_testkit::peer::{discovery, result};
    let shop = Shop::with("").await;
    let script = NEVER_CANCELS
        .replace("DISCOVERY", &discovery().to_string())
        .replace("RESULT", &result("done after all").to_string().replace('"', "\\\""));
    std::fs::write(shop.file("server.sh"), script).unwrap();
    let workflows = r#"
[upstream.other]
command = ["/bin/sh", "server.sh"]

[[workflow]]
name = "slow"
tool = "other.slow"
max_total_timeout = "1s"
retries = 1
"#;
    std::fs::write(shop.file("outlast.toml"), workflows).unwrap();
    let mut server = shop.serve().await;
    let started = server.structured("start_job", json!({ "workflow": "slow" })).await;
    let got = ended(&mut server, started["job_id"].as_str().unwrap()).await;
    assert_eq!(got["result"]["content"][0]["text"], "done after all", "{got}");
    assert_eq!(std::fs::read_to_string(shop.file("calls")).unwrap(), "called\n", "made once");
    assert_eq!(std::fs::read_to_string(shop.file("cancels")).unwrap(), "cancel\n");
}

const ODD: &str = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    id, method = message.get("id"), message.get("method")
    if id is None:
        continue
    head = b'{"jsonrpc":"2.0","id":' + json.dumps(id).encode()
    if method == "initialize":
        tail = b',"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"odd","version":"1"}}}'
    elif method == "tools/list":
        tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("long", "invalid", "fine")]
        tail = b',"result":' + json.dumps({"tools": tools}).encode() + b'}'
    elif method == "tools/call":
        text = {"long": b"x" * (17 << 20), "invalid": b"a\xffb", "fine": b"fine"}[message["params"]["name"]]
        tail = b',"result":{"content":[{"type":"text","text":"' + text + b'"}]}}'
    elif method == "ping":
        tail = b',"result":{}}'
    else:
        tail = b',"error":{"code":-32601,"message":"unknown"}}'
    sys.stdout.buffer.write(b'not \xff json\n' + head + tail + b"\n")
    sys.stdout.buffer.flush()
"#;

/// E10: the tool has done its work, so nothing may suggest to run it again.
#[tokio::test]
async fn e10_an_answer_that_cannot_be_read_is_not_called_retryable() {
    let shop = Shop::new().await;
    std::fs::write(shop.file("odd.py"), ODD).unwrap();
    let workflows: String = ["long", "invalid", "fine"]
        .map(|name| format!("[[workflow]]\nname = \"{name}\"\ntool = \"odd.{name}\"\n"))
        .concat();
    let script = shop.file("odd.py");
    let configuration = format!("[upstream.odd]\ncommand = [\"python3\", {script:?}]\n{workflows}");
    std::fs::write(shop.file("outlast.toml"), configuration).unwrap();
    let mut server = shop.serve().await;
    for (workflow, why) in [("long", "longer than 16777216 bytes"), ("invalid", "not UTF-8")] {
        let started = server.structured("start_job", json!({ "workflow": workflow })).await;
        let got = ended(&mut server, started["job_id"].as_str().unwrap()).await;
        assert_eq!(got["error"]["code"], "EXECUTION_ERROR", "{got}");
        assert_eq!(got["error"]["retryable"], false, "{got}");
        let said = got["error"]["message"].as_str().unwrap();
        assert!(said.contains("the tool ran") && said.contains(why), "{said}");
    }
    let started = server.structured("start_job", json!({ "workflow": "fine" })).await;
    let got = ended(&mut server, started["job_id"].as_str().unwrap()).await;
    assert_eq!(got["result"]["content"][0]["text"], "fine", "{got}");
}

/// M5: the trace of a request goes with its job to the upstream server, and from there to the command.
#[tokio::test]
async fn m5_a_trace_is_sent_on_to_upstreams_and_commands() {
    let shop = shop("").await;
    let mut server = shop.serve().await;
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let params = json!({
        "name": "start_job",
        "arguments": { "workflow": "traced" },
        "_meta": { "traceparent": trace }
    });
    let answer = server.request("tools/call", params).await;
    let id = answer["result"]["structuredContent"]["job_id"].as_str().unwrap().to_owned();
    let ended = ended(&mut server, &id).await;
    let text = ended["result"]["content"][0]["text"].as_str().unwrap();
    assert_eq!(text.trim(), trace, "{ended}");
}
