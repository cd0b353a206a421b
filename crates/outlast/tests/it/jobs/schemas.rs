//! The schemas of workflows: the check of arguments, and the part that models see (E12, tools.md).

use serde_json::{Value, json};

use super::{Shop, ended};
use crate::support::{assert_refused, binary};

const AUDIT: &str = r##"
[[workflow]]
name = "audit"
command = ["/bin/sh", "-c", 'printf "%s" "$OUTLAST_ARGUMENTS"']

[workflow.input_schema]
type = "object"
required = ["since"]
additionalProperties = false

[workflow.input_schema.properties]
since = { type = "string", pattern = "^[0-9]{4}$" }
depth = { type = "integer", minimum = 1, maximum = 9 }
sites = { type = "array", items = { "$ref" = "#/$defs/site" } }

[workflow.input_schema."$defs"]
site = { type = "object", required = ["host"] }
"##;

async fn listed(server: &mut outlast_testkit::mcp_process::McpProcess, name: &str) -> Value {
    let listed = server.request("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    tools
        .iter()
        .find(|tool| tool["name"] == name)
        .unwrap_or_else(|| panic!("{name}: {listed}"))
        .clone()
}

fn said(result: &Value) -> &str {
    result["content"][0]["text"].as_str().unwrap()
}

/// E12: `input_schema` checks the arguments of every interface, and a mistake names its field; models see it.
#[tokio::test]
async fn e12_a_workflow_s_schema_checks_its_arguments_and_is_shown() {
    let shop = Shop::with(AUDIT).await;
    let mut any = shop.serve().await;
    let mut fixed = shop.serve_with(&["--tools", "jobs", "--workflow", "audit"]).await;
    let mut held = shop.serve_with(&[]).await;
    for (server, tool) in [(&mut fixed, "start_audit"), (&mut held, "audit")] {
        let input = listed(server, tool).await["inputSchema"].clone();
        assert_eq!(input["required"], json!(["arguments"]), "{input}");
        let arguments = &input["properties"]["arguments"];
        assert_eq!(arguments["required"], json!(["since"]), "{arguments}");
        assert_eq!(arguments["properties"]["depth"]["maximum"], 9, "{arguments}");
        let site = &arguments["properties"]["sites"]["items"]["$ref"];
        assert_eq!(site, "#/properties/arguments/$defs/site", "it can be found from the root");
    }
    for (arguments, why) in [
        (json!({}), "arguments.since is missing"),
        (json!({ "since": 2026 }), "arguments.since: want string, but got number"),
        (json!({ "since": "26" }), "arguments.since must match the pattern"),
        (json!({ "since": "2026", "depth": 10 }), "arguments.depth: must be <=9"),
        (json!({ "since": "2026", "dept": 1 }), "arguments.dept is not known"),
        (json!({ "since": "2026", "sites": [{}] }), "arguments.sites[0].host is missing"),
    ] {
        let call = json!({ "arguments": arguments });
        let mut named = call.clone();
        named["workflow"] = json!("audit");
        for (server, tool, call) in [
            (&mut any, "start_job", named),
            (&mut fixed, "start_audit", call.clone()),
            (&mut held, "audit", call),
        ] {
            let result = server.call(tool, call).await;
            assert_refused(&result, "VALIDATION_ERROR", false);
            assert!(said(&result).contains(why), "{tool}: {}", said(&result));
        }
        let config = shop.config();
        let text = arguments.to_string();
        let ran =
            shop.world.run(&["run", "audit", "--arguments", &text, "--config", &config]).await;
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(why), "{ran:?}");
    }
    let good = json!({ "arguments": { "since": "2026", "sites": [{ "host": "a.example" }] } });
    let result = held.call("audit", good).await;
    assert!(said(&result).contains("a.example"), "{result}");
}

/// tools.md: the schema may be in a separate file.
#[tokio::test]
async fn e12_a_schema_can_come_from_a_file() {
    let file =
        "[[workflow]]\nname = \"audit\"\ncommand = [\"cat\"]\ninput_schema_file = \"audit.json\"\n";
    let shop = Shop::with(file).await;
    let schema = json!({ "type": "object", "properties": { "n": { "type": "integer" } } });
    std::fs::write(shop.file("audit.json"), schema.to_string()).unwrap();
    let mut server = shop.serve_with(&[]).await;
    let input = listed(&mut server, "audit").await["inputSchema"].clone();
    assert_eq!(input["properties"]["arguments"]["properties"]["n"]["type"], "integer", "{input}");
    let result = server.call("audit", json!({ "arguments": { "n": "x" } })).await;
    assert!(said(&result).starts_with("VALIDATION_ERROR: arguments.n"), "{result}");
    drop(server);
    std::fs::write(shop.file("audit.json"), "{\n  \"type\": 7\n}").unwrap();
    let refused = shop.refused(&[]).await;
    assert!(refused.contains("audit.json") && refused.contains("at '/type'"), "{refused}");
    assert!(refused.contains("line 4"), "{refused}");
}

/// Creates a workflow over a tool of another outlast, whose server answers while the file `up` exists.
async fn shop_over_another(down: &str) -> Shop {
    let shop = Shop::with("").await;
    let inner = shop.file("inner.toml");
    std::fs::write(&inner, AUDIT).unwrap();
    let script = format!(
        "if [ -e '{}' ]; then exec '{}' serve --no-detach --config '{}' --data-dir '{}'; fi; {down}",
        shop.file("up").display(),
        binary().display(),
        inner.display(),
        shop.file("inner").display(),
    );
    std::fs::write(shop.file("other.sh"), script).unwrap();
    let outer = r#"
[upstream.other]
command = ["/bin/sh", "other.sh"]

[[workflow]]
name = "remote"
tool = "other.audit"
message_argument = "message"

[[workflow]]
name = "own"
tool = "other.audit"
input_schema = { type = "object", required = ["mine"] }
"#;
    std::fs::write(shop.file("outlast.toml"), outer).unwrap();
    shop
}

/// tools.md: a tool's own schema is read at the start, and the last one seen is used while its server does not answer.
#[tokio::test]
async fn e12_a_tool_of_another_server_keeps_the_schema_last_seen() {
    let shop = shop_over_another("exit 1").await;
    // Never seen: any object.
    let mut server = shop.serve_with(&[]).await;
    let input = listed(&mut server, "remote").await["inputSchema"].clone();
    let any = json!({ "type": "object", "description": "Arguments of the workflow." });
    assert_eq!(input["properties"]["arguments"], any, "{input}");
    drop(server);

    std::fs::write(shop.file("up"), "").unwrap();
    let mut server = shop.serve_with(&[]).await;
    let seen = listed(&mut server, "remote").await["inputSchema"].clone();
    let inner = &seen["properties"]["arguments"]["properties"]["arguments"];
    assert_eq!(inner["required"], json!(["since"]), "{seen}");
    let own = listed(&mut server, "own").await["inputSchema"].clone();
    assert_eq!(own["properties"]["arguments"]["required"], json!(["mine"]), "{own}");
    let good = json!({ "message": "x", "arguments": { "arguments": { "since": "2026" } } });
    let result = server.call("remote", good).await;
    assert!(said(&result).contains("2026"), "{result}");
    drop(server);

    std::fs::remove_file(shop.file("up")).unwrap();
    let mut server = shop.serve().await;
    let bad = json!({ "workflow": "remote", "arguments": { "arguments": { "since": 1 } } });
    let result = server.call("start_job", bad).await;
    assert_refused(&result, "VALIDATION_ERROR", false);
    assert!(said(&result).contains("arguments.arguments.since"), "{result}");
    drop(server);
    let mut server = shop.serve_with(&[]).await;
    let kept = listed(&mut server, "remote").await["inputSchema"].clone();
    assert_eq!(kept, seen);
    drop(server);

    // The command line asks no server and checks against the same schema.
    let config = shop.config();
    let arguments = r#"{"arguments": {"since": 1}}"#;
    let ran =
        shop.world.run(&["run", "remote", "--arguments", arguments, "--config", &config]).await;
    assert_eq!(ran.code, Some(2), "{ran:?}");
    assert!(ran.stderr.contains("arguments.arguments.since"), "{ran:?}");
}

/// A server that does not answer delays the start by five seconds and no longer.
#[tokio::test]
async fn e12_a_server_that_never_answers_does_not_keep_ours_from_starting() {
    let shop = shop_over_another("exec sleep 1000").await;
    let mut server = shop.serve().await;
    let started = json!({ "workflow": "own", "arguments": {} });
    let result = server.call("start_job", started).await;
    assert!(said(&result).contains("arguments.mine is missing"), "{result}");
    let log = server.log();
    assert!(log.contains("no answer within 5 s"), "{log}");
    let free = json!({ "workflow": "remote", "message": "x" });
    let started = server.structured("start_job", free).await;
    let cancel = json!({ "job_id": started["job_id"] });
    server.structured("cancel_job", cancel).await;
    ended(&mut server, started["job_id"].as_str().unwrap()).await;
}
