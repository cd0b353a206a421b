//! The entry can be added to and removed from any document, and nothing else changes.

use std::path::Path;

use clap::ValueEnum as _;
use proptest::prelude::*;
use serde_json::{Map, Value};

use super::clients::ProgramEntry;
use super::entry::EntryValue;
use crate::cli::Client;
use crate::client_files::clients::ClientFormat;
use crate::client_files::json::parse;
use crate::client_files::layout::EntryField;

const JSON: ClientFormat = ClientFormat::Json("mcpServers");

fn program() -> ProgramEntry {
    ProgramEntry {
        command: "/opt/outlast".to_owned(),
        args: vec!["serve".to_owned()],
        keys: vec!["PERPLEXITY_API_KEY"],
        providers: None,
        values: Vec::new(),
        library: None,
        library_given: false,
        has_provider: true,
    }
}

fn entry() -> EntryValue {
    Client::Cursor.entry(&program())
}

/// Returns the meaning of a document, without comments and layout.
fn meaning(text: &str) -> Value {
    parse(text).unwrap().to_serde_value().unwrap_or_default()
}

/// Returns the meaning without our entry, and without a container that has no other content.
fn others(text: &str) -> Value {
    let mut all = meaning(text);
    if let Some(object) = all.as_object_mut() {
        if let Some(container) = object.get_mut("mcpServers").and_then(Value::as_object_mut) {
            container.remove("outlast");
            if container.is_empty() {
                object.remove("mcpServers");
            }
        }
    } else {
        all = Value::Object(Map::new());
    }
    all
}

#[test]
fn an_entry_looks_as_if_it_had_always_been_there() {
    let ours = EntryValue { value: EntryField::Text("ours".to_owned()), given: None };
    let cases = [
        ("", "{\n  \"mcpServers\": {\n    \"outlast\": X\n  }\n}\n"),
        ("{}", "{\n  \"mcpServers\": {\n    \"outlast\": X\n  }\n}"),
        ("{\n}\n", "{\n  \"mcpServers\": {\n    \"outlast\": X\n  }\n}\n"),
        (
            "{\n  \"a\": 1 // one\n}\n",
            "{\n  \"a\": 1, // one\n  \"mcpServers\": {\n    \"outlast\": X\n  }\n}\n",
        ),
        (
            "{\n  \"mcpServers\": {\n    \"b\": {},\n    // end\n  },\n}\n",
            "{\n  \"mcpServers\": {\n    \"b\": {},\n    // end\n    \"outlast\": X\n  },\n}\n",
        ),
        ("{\"mcpServers\":{\"b\":{}}}", "{\"mcpServers\":{\"b\":{}, \"outlast\": X}}"),
        ("{\"mcpServers\":{}, \"a\": 1}", "{\"mcpServers\":{\"outlast\": X}, \"a\": 1}"),
        (
            "// only a comment",
            "// only a comment\n{\n  \"mcpServers\": {\n    \"outlast\": X\n  }\n}\n",
        ),
    ];
    for (before, after) in cases {
        assert_eq!(JSON.put(before, &ours).unwrap(), after.replace('X', "\"ours\""), "{before}");
    }
}

#[test]
fn indentation_and_line_ends_are_those_of_the_file() {
    let before = "{\r\n\t\"mcpServers\": {\r\n\t\t\"b\": {}\r\n\t}\r\n}\r\n";
    let after = JSON.put(before, &entry()).unwrap();
    assert_eq!(after.matches('\n').count(), after.matches("\r\n").count(), "{after:?}");
    assert!(after.contains("{},\r\n\t\t\"outlast\": {\r\n\t\t\t\"command\""), "{after:?}");
    assert!(
        after.contains(
            "\r\n\t\t\t\t\"OUTLAST_ASYNC_RESEARCH\": \"auto\"\r\n\t\t\t}\r\n\t\t}\r\n\t}\r\n}\r\n"
        ),
        "{after:?}"
    );
}

#[test]
fn a_broken_file_is_refused_with_line_and_column() {
    let cases = [
        ("{", (1, 1)),
        ("{\n  \"a\": 1\n  \"b\": 2\n}", (2, 9)),
        ("{\n  \"ä\": nope\n}", (2, 8)),
        ("{\"a\": \"x}", (1, 7)),
        ("{} x", (1, 4)),
        ("{ /* }", (1, 3)),
        ("[1]", (1, 1)),
        ("{'a': 1}", (1, 2)),
        ("{\"mcpServers\": []}", (1, 16)),
        ("{\"a\": 01}", (1, 8)),
    ];
    for (text, place) in cases {
        let refusal = JSON.put(text, &entry()).unwrap_err();
        assert_eq!((refusal.line, refusal.column), place, "{text}: {refusal}");
    }
    let deep = "[".repeat(100_000);
    assert!(JSON.put(&deep, &entry()).unwrap_err().to_string().contains("nesting depth"));
}

#[test]
fn an_entry_is_brought_up_to_date_and_keeps_what_is_not_ours() {
    let before = r#"{
  "mcpServers": {
    "outlast": {
      "command": "/old/outlast", // moved
      "disabled": true,
      "env": { "PERPLEXITY_API_KEY": "mine", "OTHER": "1" }
    }
  }
}"#;
    let after = JSON.put(before, &entry()).unwrap();
    assert!(
        after.contains("\"command\": \"/opt/outlast\", // moved\n      \"disabled\": true,"),
        "{after}"
    );
    let ours = &meaning(&after)["mcpServers"]["outlast"];
    assert_eq!(ours["args"], serde_json::json!(["serve"]), "{after}");
    assert_eq!(ours["env"]["PERPLEXITY_API_KEY"], "mine");
    assert_eq!(ours["env"]["OTHER"], "1");
    assert_eq!(ours["env"]["OUTLAST_ASYNC_RESEARCH"], "auto");
    assert_eq!(JSON.put(&after, &entry()).unwrap(), after);
}

/// An entry of an older version sets the mode under its old name, which the new name would override.
#[test]
fn a_mode_that_is_set_under_its_old_name_stays_the_only_one() {
    let old = "PERPLEXITY_ENABLE_ASYNC_DEEP_RESEARCH";
    let mode = |text: &str| {
        assert!(text.contains(old) && !text.contains("OUTLAST_ASYNC_RESEARCH"), "{text}");
    };
    let json = format!(r#"{{"mcpServers": {{"outlast": {{"env": {{"{old}": "false"}}}}}}}}"#);
    mode(&JSON.put(&json, &entry()).unwrap());
    let toml = format!("[mcp_servers.outlast]\n[mcp_servers.outlast.env]\n{old} = \"false\"\n");
    mode(&ClientFormat::Toml.put(&toml, &Client::Codex.entry(&program())).unwrap());
}

#[test]
fn an_entry_is_taken_out_from_the_middle_the_end_and_between_comments() {
    let cases = [
        (r#"{"mcpServers": {"outlast": {}, "b": 1}}"#, r#"{"mcpServers": { "b": 1}}"#),
        (r#"{"mcpServers": {"a": 1, "outlast": {}}}"#, r#"{"mcpServers": {"a": 1}}"#),
        (r#"{"mcpServers": {"a": 1, "outlast": {},}}"#, r#"{"mcpServers": {"a": 1,}}"#),
        (r#"{"mcpServers": {"outlast": 1, "outlast": {}}}"#, r#"{"mcpServers": {}}"#),
        ("{\"mcpServers\": { // c\n \"outlast\": {} }}", "{\"mcpServers\": { // c\n }}"),
        (
            "{\"mcpServers\": {\n  \"a\": 1, // c\n  \"outlast\": {}\n}}",
            "{\"mcpServers\": {\n  \"a\": 1 // c\n}}",
        ),
    ];
    for (before, after) in cases {
        assert_eq!(JSON.take(before).unwrap().as_deref(), Some(after), "{before}");
        parse(after).unwrap();
    }
    assert_eq!(JSON.take(r#"{"mcpServers": {"a": 1}}"#).unwrap(), None);
}

#[test]
fn every_client_has_its_own_file_and_no_key_in_its_entry() {
    let places = crate::config::Places {
        home: "/h".into(),
        application_support: "/h/.config".into(),
        xdg_config: "/h/.config".into(),
        codex: "/h/.codex".into(),
    };
    let mut files: Vec<_> =
        Client::value_variants().iter().map(|client| client.file(&places)).collect();
    assert!(files.iter().all(|file| file.starts_with(Path::new("/h"))));
    files.sort();
    files.dedup();
    assert_eq!(files.len(), Client::value_variants().len());
    for client in Client::value_variants() {
        let snippet = client.format().put("", &client.entry(&program())).unwrap();
        assert!(snippet.contains("OUTLAST_ASYNC_RESEARCH"), "{snippet}");
        assert!(snippet.contains("/opt/outlast") && snippet.contains("\"serve\""), "{snippet}");
        assert!(client.format().is_only_added("", &snippet), "{}", client.id());
        let quiet = client.entry(&ProgramEntry { keys: Vec::new(), ..program() });
        let quiet = client.format().put("", &quiet).unwrap();
        assert!(!quiet.contains("API_KEY"), "the file's key must win");
    }
}

#[test]
fn a_toml_file_keeps_its_bytes_too() {
    let files = [
        "",
        "model = \"o\"",
        "# head\nmodel = \"o\" # why\n\n[mcp_servers.b]\ncommand = 'x'\n",
        "model = \"o\"\r\n[mcp_servers.b]\r\ncommand = 'x'\r\n",
        "mcp_servers.b.command = 'x'\n",
        "[[profiles]]\nname = \"\"\"\n[mcp_servers.outlast]\n\"\"\"\n",
    ];
    let entry = Client::Codex.entry(&program());
    for before in files {
        let after = ClientFormat::Toml.put(before, &entry).unwrap();
        assert!(
            after.starts_with(before) && ClientFormat::Toml.is_only_added(before, &after),
            "{after}"
        );
        assert_eq!(ClientFormat::Toml.put(&after, &entry).unwrap(), after);
        let said: toml::Table = after.parse().unwrap();
        let ours = &said["mcp_servers"]["outlast"];
        assert_eq!(ours["env_vars"][0].as_str(), Some("PERPLEXITY_API_KEY"));
        assert_eq!(ClientFormat::Toml.command(&after).unwrap().as_deref(), Some("/opt/outlast"));
        let tail = if before.contains('\r') {
            "# mine\r\n[tail]\r\nx = 1\r\n"
        } else {
            "# mine\n[tail]\nx = 1\n"
        };
        let moved = after.replace("/opt/outlast", "/old/outlast") + tail;
        let corrected = ClientFormat::Toml.put(&moved, &entry).unwrap();
        assert_eq!(corrected, moved.replace("/old/outlast", "/opt/outlast"));
        let without = ClientFormat::Toml.take(&corrected).unwrap().unwrap();
        let (without, mut before): (toml::Table, toml::Table) =
            (without.parse().unwrap(), before.parse().unwrap());
        before.insert("tail".to_owned(), toml::toml! { x = 1 }.into());
        let empty = before
            .entry("mcp_servers")
            .or_insert(toml::Table::new().into())
            .as_table()
            .unwrap()
            .is_empty();
        if empty && !without.contains_key("mcp_servers") {
            before.remove("mcp_servers");
        }
        assert_eq!(without, before);
    }
    let refusal = ClientFormat::Toml.put("a = 1\nb = \n", &entry).unwrap_err();
    assert_eq!((refusal.line, refusal.column), (2, 5), "{refusal}");
    assert!(ClientFormat::Toml.put("mcp_servers = {}\n", &entry).is_err());
}

/// Space and comments as people leave them.
fn trivia() -> impl Strategy<Value = String> {
    let bit = prop_oneof![
        4 => Just(" "), 4 => Just("\n  "), 2 => Just("\n"), 1 => Just("\t"), 1 => Just("\r\n"),
        1 => Just("// } , \" note\n"), 1 => Just("/* { , \" */"),
    ];
    prop::collection::vec(bit, 0..3).prop_map(|bits| bits.concat())
}

fn value() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("1".to_owned()),
        Just("-2.5e3".to_owned()),
        Just("true".to_owned()),
        Just("null".to_owned()),
        Just(r#""a \"quoted\" \\ text""#.to_owned()),
        Just("\"ü // no comment\"".to_owned()),
        Just("{}".to_owned()),
        Just("[]".to_owned()),
    ];
    leaf.prop_recursive(3, 24, 4, |inner| {
        prop_oneof![
            object(
                inner.clone(),
                prop_oneof![Just("a"), Just("b"), Just("outlast"), Just("env")].boxed()
            ),
            (prop::collection::vec((trivia(), inner, trivia()), 1..4), prop::bool::ANY).prop_map(
                |(items, tail)| {
                    let items: Vec<_> = items
                        .into_iter()
                        .map(|(before, item, after)| format!("{before}{item}{after}"))
                        .collect();
                    format!("[{}{}]", items.join(","), if tail { "," } else { "" })
                }
            ),
        ]
    })
}

fn object(
    inner: impl Strategy<Value = String>,
    names: BoxedStrategy<&'static str>,
) -> impl Strategy<Value = String> {
    let member = (trivia(), names, trivia(), trivia(), inner, trivia());
    (prop::collection::vec(member, 0..5), trivia(), prop::bool::ANY).prop_map(
        |(members, end, tail)| {
            let mut seen = Vec::new();
            let mut texts = Vec::new();
            for (before, name, between, then, value, after) in members {
                if !seen.contains(&name) {
                    seen.push(name);
                    texts.push(format!("{before}\"{name}\"{between}:{then}{value}{after}"));
                }
            }
            let comma = if tail && !texts.is_empty() { "," } else { "" };
            format!("{{{}{comma}{end}}}", texts.join(","))
        },
    )
}

fn document() -> impl Strategy<Value = String> {
    let servers = object(value(), prop_oneof![Just("x"), Just("y"), Just("z")].boxed());
    let plain =
        object(value(), prop_oneof![Just("a"), Just("b"), Just("theme"), Just("outlast")].boxed());
    let with = (trivia(), trivia(), servers, trivia(), value(), prop::bool::ANY).prop_map(
        |(a, b, servers, c, rest, first)| {
            let ours = format!("{a}\"mcpServers\":{b}{servers}{c}");
            let other = format!("\"rest\": {rest}");
            if first { format!("{{{ours},{other}}}") } else { format!("{{{other},{ours}}}") }
        },
    );
    let root = prop_oneof![1 => plain, 3 => with, 1 => Just(String::new())];
    (prop::bool::ANY, trivia(), root, trivia()).prop_map(|(bom, before, root, after)| {
        format!("{}{before}{root}{after}", if bom { "\u{feff}" } else { "" })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, failure_persistence: None, ..ProptestConfig::default() })]

    /// In any document: a removal undoes an addition, a second addition changes nothing, and the other keys never
    /// change.
    #[test]
    fn init_then_remove_is_the_same_bytes_and_init_twice_is_no_change(before in document()) {
        let after = JSON.put(&before, &entry()).unwrap();
        prop_assert_ne!(&after, &before);
        prop_assert_eq!(&JSON.put(&after, &entry()).unwrap(), &after);
        prop_assert!(JSON.is_only_added(&before, &after));
        let mut rest = after.chars();
        let kept = before.chars().all(|wanted| rest.any(|found| found == wanted));
        prop_assert!(kept, "only additions: {after:?}");
        prop_assert_eq!(others(&after), others(&before));
        prop_assert_eq!(JSON.command(&after).unwrap(), Some("/opt/outlast".to_owned()));

        // A file that was changed since loses only the entry; every other byte is still there.
        let without = JSON.take(&after).unwrap().unwrap();
        prop_assert_eq!(others(&without), others(&before));
        prop_assert_eq!(JSON.command(&without).unwrap(), None);
        prop_assert_eq!(without.matches("/* {").count(), before.matches("/* {").count());
        prop_assert_eq!(without.matches("// }").count(), before.matches("// }").count());
        let other = before + " ";
        prop_assert!(!JSON.is_only_added(&other, &after));
    }
}
