//! One entry of any file can be wrapped and restored to the byte; nothing else changes.

use serde_json::{Value, json};

use super::server::{ServerEntry, Wrapper, unwrap_entry};
use crate::cli::Client;
use crate::client_files::place::{Place, servers};

fn found(client: Client, text: &str, name: &str) -> (Place, Value) {
    let listed = servers(client, text, Some("/p")).unwrap();
    listed.into_iter().find(|(place, _)| place.name() == name).unwrap()
}

fn installed(client: Client, text: &str, name: &str) -> String {
    let (place, entry) = found(client, text, name);
    let args = ["wrap", "--name", name].map(str::to_owned);
    let wrapper = Wrapper { client, program: "/opt/outlast", args: &args };
    place.change(text, &wrapper.put_before(&ServerEntry::read(&entry).unwrap(), &entry)).unwrap()
}

/// Returns the text with the entry's old bytes in place of the new ones.
fn restored(client: Client, before: &str, after: &str, name: &str) -> String {
    let (place, _) = found(client, before, name);
    let was = &before[place.span(before).unwrap()];
    let span = place.span(after).unwrap();
    format!("{}{was}{}", &after[..span.start], &after[span.end..])
}

/// Returns the text after an uninstall that has no record of the install.
fn taken_out(client: Client, after: &str, name: &str) -> String {
    let (place, entry) = found(client, after, name);
    let ServerEntry::Wrapped { behind, .. } = ServerEntry::read(&entry).unwrap() else {
        panic!("not wrapped: {after}");
    };
    place.change(after, &unwrap_entry(client, &behind, &entry, None)).unwrap()
}

#[test]
fn a_program_goes_behind_wrap_with_its_comments_and_layout() {
    let before = "{\n\t\"servers\": {\n\t\t// mine\n\t\t\"x\": {\n\t\t\t\"command\": \"npx\", // fast\n\
                  \t\t\t\"args\": [\n\t\t\t\t\"-y\",\n\t\t\t\t\"a b\"\n\t\t\t],\n\t\t\t\"env\": {\"K\": \"v\"}\n\t\t},\n\t\t\"y\": {},\n\t},\n}\n";
    let after = installed(Client::Vscode, before, "x");
    let expected = before.replace("\"npx\"", "\"/opt/outlast\"").replace(
        "[\n\t\t\t\t\"-y\",\n\t\t\t\t\"a b\"\n\t\t\t]",
        "[\"wrap\", \"--name\", \"x\", \"--\", \"npx\", \"-y\", \"a b\"]",
    );
    assert_eq!(after, expected);
    assert_eq!(restored(Client::Vscode, before, &after, "x"), before);
}

#[test]
fn an_address_goes_into_variables_and_comes_back() {
    let before = r#"{"mcpServers": {"x": {"type": "http", "url": "https://e/m?k=secret", "headers": {"Authorization": "Bearer ${T}", "B": "b"}, "disabled": true}}}"#;
    let after = installed(Client::ClaudeCode, before, "x");
    let (_, entry) = found(Client::ClaudeCode, &after, "x");
    let expected = json!({
        "type": "stdio", "disabled": true, "command": "/opt/outlast",
        "args": ["wrap", "--name", "x", "--url-env", "OUTLAST_WRAP_URL", "--header-env",
            "Authorization=OUTLAST_WRAP_HEADER_1", "--header-env", "B=OUTLAST_WRAP_HEADER_2"],
        "env": {"OUTLAST_WRAP_URL": "https://e/m?k=secret", "OUTLAST_WRAP_HEADER_1": "Bearer ${T}",
            "OUTLAST_WRAP_HEADER_2": "b"},
    });
    assert_eq!(entry, expected);
    assert!(!entry["args"].to_string().contains("secret"));
    assert_eq!(restored(Client::ClaudeCode, before, &after, "x"), before);
    let back = taken_out(Client::ClaudeCode, &after, "x");
    assert_eq!(found(Client::ClaudeCode, &back, "x").1, found(Client::ClaudeCode, before, "x").1);
}

#[test]
fn toml_entries_of_every_kind_go_behind_wrap_and_come_back() {
    let entries = [
        "[mcp_servers.x]\ncommand = 'npx' # fast\nargs = [\n  \"-y\", # yes\n  'p',\n]",
        "[mcp_servers.x]\ncommand = 'npx'\n\n[mcp_servers.x.env]\nK = \"v\" # mine",
        "  [ mcp_servers . \"x\" ]\n  command = 'npx'",
        "[mcp_servers]\nw = {command = 'w'}\nx = { command = 'npx', args = [] }\nz.command = 'z'",
        "[mcp_servers]\nw.command = 'w'\nx.command = 'npx' # c\nx.env.K = 'v'",
        "[mcp_servers.x]\nurl = \"https://e/m\"\nbearer_token_env_var = \"T\"\n",
        "[mcp_servers.x]\nurl = \"https://e/m\"\nenabled = true\n[mcp_servers.x.http_headers]\nA = 'secret' # k\n[mcp_servers.x.env_http_headers]\nB = 'BV'",
    ];
    let (heads, tails) = (
        ["", "# head\nmodel = \"o\"\n\n[mcp_servers.a]\ncommand = 'a'\n\n"],
        ["", "\n", " # end", "\n\n# next\n[mcp_servers.y]\ncommand = 'y'\n", "\n[other]\nx = 1"],
    );
    for entry in entries {
        for head in heads {
            for tail in tails {
                for eol in ["\n", "\r\n"] {
                    if head.contains("mcp_servers") && entry.starts_with("[mcp_servers]") {
                        continue;
                    }
                    let before = format!("{head}{entry}{tail}").replace('\n', eol);
                    let after = installed(Client::Codex, &before, "x");
                    let (_, wrapped) = found(Client::Codex, &after, "x");
                    assert!(
                        matches!(ServerEntry::read(&wrapped), Ok(ServerEntry::Wrapped { .. })),
                        "{after}"
                    );
                    assert!(!wrapped["args"].to_string().contains("secret"), "{after}");
                    assert_eq!(restored(Client::Codex, &before, &after, "x"), before, "{after}");
                    assert_eq!(
                        after.matches('\n').count(),
                        after.matches(eol).count(),
                        "{after:?}"
                    );
                    let mut others = servers(Client::Codex, &after, None).unwrap();
                    let mut expected = servers(Client::Codex, &before, None).unwrap();
                    others.retain(|(place, _)| place.name() != "x");
                    expected.retain(|(place, _)| place.name() != "x");
                    assert_eq!(others, expected, "{after}");
                    let back = taken_out(Client::Codex, &after, "x");
                    let (mut was, is) =
                        (found(Client::Codex, &before, "x").1, found(Client::Codex, &back, "x").1);
                    if was["args"].is_null() && was["url"].is_null() {
                        was["args"] = json!([]);
                    }
                    assert_eq!(is, was, "{back}");
                }
            }
        }
    }
}

#[test]
fn a_toml_entry_among_others_on_one_line_is_refused() {
    let text = "mcp_servers = { x = { command = 'a' }, y = { command = 'b' } }\n";
    let (place, _) = found(Client::Codex, text, "x");
    assert!(place.span(text).unwrap_err().why.contains("its own lines"));
}

#[test]
fn servers_of_the_project_come_first_in_claude_code_alone() {
    let text = r#"{"mcpServers": {"x": {"command": "all"}}, "projects": {"/p": {"mcpServers": {"x": {"command": "here"}}}}}"#;
    assert_eq!(found(Client::ClaudeCode, text, "x").1["command"], "here");
    assert_eq!(found(Client::Cursor, text, "x").1["command"], "all");
    let after = installed(Client::ClaudeCode, text, "x");
    assert!(after.starts_with(r#"{"mcpServers": {"x": {"command": "all"}}"#), "{after}");
}

#[test]
fn what_cannot_go_behind_wrap_is_said() {
    let cases = [
        (json!(3), "no object"),
        (json!({}), "neither a command nor a URL"),
        (json!({"command": {"path": "x"}}), "no text"),
        (json!({"command": "x", "args": "-y"}), "list of texts"),
        (json!({"type": "sse", "url": "https://e"}), "streamable HTTP"),
        (json!({"url": "https://e", "oauth": {}}), "signs in"),
        (json!({"command": "/o/outlast", "args": ["wrap", "--"]}), "behind the `--`"),
        (json!({"command": "/o/outlast", "args": ["wrap", "--url-env", "U"]}), "no U"),
    ];
    for (entry, why) in cases {
        let said = ServerEntry::read(&entry).unwrap_err();
        assert!(said.contains(why), "{entry}: {said}");
    }
    let ours = json!({"command": "/o/outlast", "args": ["serve"]});
    assert_eq!(ServerEntry::read(&ours), Ok(ServerEntry::Outlast));
}
