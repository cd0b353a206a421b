//! outlast.toml: every mistake names its file, line and key, and exits 2.

use super::Shop;

/// tools.md, E2: the possible mistakes in a workflow.
#[tokio::test]
async fn e2_a_mistake_in_a_workflow_names_its_line_and_key() {
    let long = "x".repeat(49);
    let cases = [
        ("name = \"a b\"\ncommand = [\"cat\"]", 3, "name", "1 to 48 of the characters"),
        (&format!("name = \"{long}\"\ncommand = [\"cat\"]"), 3, "name", "1 to 48"),
        ("name = \"\"\ncommand = [\"cat\"]", 3, "name", "1 to 48"),
        ("name = \"deep_research\"\ncommand = [\"cat\"]", 3, "name", "built-in"),
        ("name = \"a\"", 3, "command", "is missing"),
        ("name = \"a\"\ncommand = \"cat\"", 4, "command", "expected a sequence"),
        ("name = \"a\"\ncommand = []", 4, "command", "must be a list"),
        ("name = \"a\"\ncommand = [\"\"]", 4, "command", "must be a list"),
        ("name = \"a\"\ncommand = [\"cat\"]\ntool = \"x.y\"", 5, "tool", "combined with `command`"),
        (
            "name = \"a\"\ncommand = [\"cat\"]\ntimeout = \"2 hours\"",
            5,
            "timeout",
            "write a number of seconds",
        ),
        (
            "name = \"a\"\ncommand = [\"cat\"]\ntimeout = \"0s\"",
            5,
            "timeout",
            "longer than nothing",
        ),
        ("name = \"a\"\ncommand = [\"cat\"]\ntimeout = true", 5, "timeout", "a duration"),
        ("name = \"a\"\ncommand = [\"cat\"]\ntimeout = -1.5", 5, "timeout", "a number of seconds"),
        (
            "name = \"a\"\ncommand = [\"cat\"]\ninput_schema = { type = \"objekt\" }",
            5,
            "input_schema",
            "is not a usable JSON Schema: at '/type'",
        ),
        (
            "name = \"a\"\ncommand = [\"cat\"]\ninput_schema = { \"$ref\" = \"https://elsewhere.example/s\" }",
            5,
            "input_schema",
            "references to other documents are not followed",
        ),
        (
            "name = \"a\"\ncommand = [\"cat\"]\ninput_schema = { const = 2026-01-01 }",
            5,
            "input_schema",
            "in quotes",
        ),
        (
            "name = \"a\"\ncommand = [\"cat\"]\ninput_schema_file = \"none.json\"",
            5,
            "input_schema_file",
            "none.json, which cannot be read",
        ),
        (
            "name = \"a\"\ncommand = [\"cat\"]\ninput_schema_file = \"outlast.toml\"",
            5,
            "input_schema_file",
            "is not JSON: expected value at line 1 column",
        ),
        (
            "name = \"a\"\ncommand = [\"cat\"]\ninput_schema = {}\ninput_schema_file = \"x\"",
            6,
            "input_schema_file",
            "together with `input_schema`",
        ),
        ("name = \"a\"\ncommand = [\"cat\"]\nretries = 101", 5, "retries", "0 to 100"),
        ("name = \"a\"\ncommand = [\"cat\"]\nretries = -1", 5, "retries", "invalid value"),
        ("name = \"a\"\ncommand = [\"cat\"]\ncomand = 1", 5, "comand", "unknown field"),
        (
            "name = \"a\"\ncommand = [\"cat\"]\nmessage_argument = \"q\"",
            5,
            "message_argument",
            "for tools",
        ),
        ("name = \"a\"\ntool = \"github.run\"", 4, "tool", "no [upstream.github]"),
        ("name = \"a\"\ntool = \"github\"", 4, "tool", "a dot"),
        (
            "name = \"a\"\ncommand = [\"cat\"]\n[[workflow]]\nname = \"a\"\ncommand = [\"cat\"]",
            6,
            "name",
            "twice",
        ),
        ("command = [\"cat\"]", 2, "", "missing field `name`"),
        (
            "name = \"a\"\ncommand = [\"cat\"]\n[upstream.x]\ncommand = [\"y\"]\nbearer_env = \"T\"",
            7,
            "bearer_env",
            "with a `url`",
        ),
        (
            "name = \"a\"\ncommand = [\"cat\"]\n[upstream.x]\nurl = \"ftp://y\"",
            6,
            "url",
            "https://",
        ),
        ("name = \"a\"\ncommand = [\"cat\"]\n[upstream.x]\nenv = {}", 5, "command", "is missing"),
        (
            "name = \"a\"\ncommand = [\"cat\"]\n[upstream.x]\nurl = \"https://y\"\nbearer_env = \"T\"",
            7,
            "bearer_env",
            "T, which is not set",
        ),
    ];
    for (entry, line, key, why) in cases {
        let shop = Shop::with(&format!("# a comment\n[[workflow]]\n{entry}\n")).await;
        let said = shop.refused(&["--tools", "jobs"]).await;
        assert!(
            said.contains("outlast.toml") && said.contains(&format!("line {line}: ")),
            "{entry}: {said}"
        );
        assert!(said.contains(&format!("`{key}")) && said.contains(why), "{entry}: {said}");
    }
}
