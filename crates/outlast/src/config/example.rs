//! The commented file of `outlast config init` and examples/outlast.toml, from the table of settings.

use super::settings::SETTINGS;

/// Returns outlast.toml with every setting, commented out.
pub(crate) fn example_file() -> String {
    let mut text = "# outlast.toml: every setting, commented out, with its default or an example.\n\
                    # Goes to ~/.config/outlast/outlast.toml, or anywhere with --config. A file with a key in it is for\n\
                    # you alone: chmod 600. `outlast config show` says what counts and why.\n"
        .to_owned();
    let mut section = "";
    for setting in SETTINGS.iter() {
        let (in_section, name) = setting.key.rsplit_once('.').unwrap_or_default();
        if in_section != section {
            section = in_section;
            text.push_str(&format!("\n[{section}]\n"));
        }
        let value =
            if setting.default.is_empty() { example_of(setting.key) } else { setting.default };
        let plain = value.parse::<u64>().is_ok()
            || matches!(value, "true" | "false")
            || value.starts_with('[');
        let value = if plain { value.to_owned() } else { format!("{value:?}") };
        let variable =
            setting.variables.first().map(|name| format!(" [{name}]")).unwrap_or_default();
        text.push_str(&format!("\n# {}{variable}\n# {name} = {value}\n", setting.description));
    }
    text
}

/// Returns the example value of a setting that has no default.
fn example_of(key: &str) -> &'static str {
    match key {
        "perplexity.api_key" => "pplx-...",
        "perplexity.proxy" => "http://proxy.example:8080",
        "openai.api_key" | "anthropic.api_key" => "sk-...",
        "gemini.api_key" => "AIza...",
        "openai.model" => "gpt-6-sol",
        "anthropic.model" => "claude-sonnet-5-5",
        "gemini.model" => "deep-research-preview-04-2026",
        "openai.proxy" | "anthropic.proxy" | "gemini.proxy" => "http://proxy.example:8080",
        "openai.timeout_ms" | "anthropic.timeout_ms" | "gemini.timeout_ms" => "300000",
        "researcher.model_url" => "http://127.0.0.1:11434/v1",
        "researcher.model" => "qwen3:8b",
        "researcher.api_key" | "researcher.search_api_key" => "sk-...",
        "researcher.price_in" => "0.15",
        "researcher.price_out" => "0.60",
        "researcher.price_search" => "5",
        "researcher.search_url" => "http://127.0.0.1:8888",
        "server.providers" => "perplexity,library",
        "server.tools" => "research,research-jobs",
        "library.folders" => "/home/you/notes",
        "server.tokens" => "ann=a-long-random-token",
        "server.tokens_file" => "/home/you/.config/outlast/tokens",
        "server.allowed_hosts" => "research.example",
        "server.allowed_origins" => "https://app.example",
        "server.public_url" => "https://research.example",
        "server.trusted_proxies" => "10.0.0.0/8",
        "server.log" => "info",
        "oauth.issuer" => "https://id.example",
        "oauth.audience" => "https://research.example/mcp",
        "oauth.jwks_url" => "https://id.example/jwks",
        "network.proxy" => "http://proxy.example:8080",
        "network.no_proxy" => "localhost,10.0.0.0/8",
        "audit.file" => "/var/log/outlast/audit.jsonl",
        "notify.command" => r#"["notify-send", "outlast: {state}", "{title}"]"#,
        "notify.pass_env" => r#"["DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR"]"#,
        "notify.url" => "https://hooks.example/outlast",
        "notify.secret" => "a-long-random-secret",
        "store.url" => "sqlite:/home/you/jobs.db",
        "store.data_dir" => "/home/you/.local/share/outlast",
        "store.conversation_logs_dir" => "/home/you/research",
        _ => "",
    }
}
