//! The arguments of every tool in docs/tools.md are those of the schemas.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::World;

const BEGIN: &str = "<!-- tool arguments -->\n";
const END: &str = "<!-- end of tool arguments -->";

fn page() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/tools.md")
}

#[expect(
    clippy::disallowed_methods,
    reason = "the person who runs the tests decides, not the configuration"
)]
fn is_renewing() -> bool {
    std::env::var_os("UPDATE_SNAPSHOTS").is_some()
}

#[tokio::test]
async fn the_docs_list_every_argument_of_every_tool() {
    let mut world = World::new().await;
    // The mode in which every tool of the research set is listed.
    world.set("PERPLEXITY_ENABLE_ASYNC_DEEP_RESEARCH", "auto");
    world.set("OUTLAST_PROVIDERS", "perplexity,openai,anthropic,gemini,library");
    for vendor in ["OPENAI", "ANTHROPIC", "GEMINI"] {
        world.set(&format!("{vendor}_API_KEY"), "sk-test");
    }
    let folder = world.data_dir().parent().unwrap().to_owned();
    world.set("OUTLAST_LIBRARY", folder.to_str().unwrap());
    let config = world.data_dir().with_extension("toml");
    std::fs::write(&config, "[[workflow]]\nname = \"audit\"\ncommand = [\"true\"]\n").unwrap();
    let mut listed = String::new();
    let mut seen: Vec<Value> = Vec::new();
    for (set, flags) in [
        ("research", ["--tools", "research"].as_slice()),
        ("research-jobs", &["--tools", "research-jobs"]),
        ("deep-research", &["--tools", "deep-research"]),
        ("perplexity", &["--tools", "perplexity"]),
        ("jobs", &["--tools", "jobs", "--async", "--config", config.to_str().unwrap()]),
    ] {
        let mut server = world.serve_with(flags).await;
        let tools = server.request("tools/list", json!({})).await;
        listed.push_str(&format!("\n### {set}\n"));
        let tools = tools["result"]["tools"].as_array().unwrap();
        let (repeated, new): (Vec<_>, Vec<_>) = tools.iter().partition(|tool| seen.contains(tool));
        for tool in &new {
            listed.push_str(&section(tool));
        }
        if !repeated.is_empty() {
            let names: Vec<_> = repeated.iter().map(|tool| name(tool)).collect();
            listed.push_str(&format!("\nAs above: {}.\n", names.join(", ")));
        }
        seen.extend(new.into_iter().cloned());
        server.close_input();
        server.ended().await;
    }
    listed.push('\n');
    let written = std::fs::read_to_string(page()).unwrap();
    let (before, rest) = written.split_once(BEGIN).unwrap();
    let (old, after) = rest.split_once(END).unwrap();
    if is_renewing() {
        std::fs::write(page(), format!("{before}{BEGIN}{listed}{END}{after}")).unwrap();
        return;
    }
    assert_eq!(old, listed, "UPDATE_SNAPSHOTS=1 renews it");
}

fn name(tool: &Value) -> String {
    format!("`{}`", tool["name"].as_str().unwrap())
}

/// Returns the name of a tool, and a line for each of its arguments.
fn section(tool: &Value) -> String {
    let schema = &tool["inputSchema"];
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let properties = schema["properties"].as_object().cloned().unwrap_or_default();
    let mut section = format!("\n{}:\n\n", name(tool));
    for (argument, schema) in &properties {
        let default = match (&schema["default"], required.contains(&json!(argument))) {
            (_, true) => "; required".to_owned(),
            (Value::Null, false) => String::new(),
            (default, false) => format!("; default `{default}`"),
        };
        section.push_str(&format!("- `{argument}`: {}{default}\n", kind(schema)));
    }
    section
}

/// Returns the type of a value and its limits, in words.
fn kind(schema: &Value) -> String {
    if let Some(choices) = schema["enum"].as_array() {
        return choices
            .iter()
            .map(|choice| format!("`{}`", choice.as_str().unwrap()))
            .collect::<Vec<_>>()
            .join(", ");
    }
    for several in ["anyOf", "oneOf"] {
        if let Some(kinds) = schema[several].as_array() {
            return kinds.iter().map(kind).collect::<Vec<_>>().join(" or ");
        }
    }
    let limits = |least: &str, most: &str| match (schema[least].as_i64(), schema[most].as_i64()) {
        (Some(least), Some(most)) => format!(", {least} to {most}"),
        (Some(least), None) => format!(", at least {least}"),
        (None, Some(most)) => format!(", at most {most}"),
        (None, None) => String::new(),
    };
    match schema["type"].as_str().unwrap_or("any value") {
        "string" => format!("text{}", limits("minLength", "maxLength")),
        "integer" => format!("whole number{}", limits("minimum", "maximum")),
        "number" => match schema["exclusiveMinimum"].as_i64() {
            Some(above) => format!("number above {above}{}", limits("minimum", "maximum")),
            None => format!("number{}", limits("minimum", "maximum")),
        },
        "boolean" => "boolean".to_owned(),
        "array" => format!("list of {}{}", kind(&schema["items"]), limits("minItems", "maxItems")),
        "object" => match schema["properties"].as_object() {
            Some(fields) if !fields.is_empty() => {
                let names: Vec<_> = fields.keys().map(|name| format!("`{name}`")).collect();
                format!("object of {}", names.join(", "))
            }
            _ => "object".to_owned(),
        },
        other => other.to_owned(),
    }
}
