//! Tests of the configuration that results from the layers.

use std::collections::HashSet;

use outlast_core::NanoUsd;

use super::layers::Layers;
use super::settings::{self, SETTINGS, Setting, SettingType};
use super::*;

fn load(environment: &[(&str, &str)], file: Option<&str>) -> ConfigResult<Config> {
    let mut with_dir = vec![("OUTLAST_DATA_DIR", "/data")];
    with_dir.extend(environment);
    Config::from_layers(&mut Layers::of(&with_dir, file)?)
}

/// Variables of an environment.
type Variables<'a> = &'a [(&'a str, &'a str)];

/// Returns the settings of the provider at this position.
fn vendor(config: &Config, place: usize) -> &VendorSettings {
    match &config.providers[place] {
        ResearchProvider::Vendor(settings) => settings,
        ResearchProvider::Researcher(_) | ResearchProvider::Library => panic!("not a vendor"),
    }
}

fn names(config: &Config) -> Vec<&str> {
    config.providers.iter().map(ResearchProvider::name).collect()
}

#[test]
fn the_defaults_load() {
    let config = load(&[], None).unwrap();
    assert!(config.providers.is_empty());
    assert_eq!(config.perplexity.api, Dialect::Agent);
    assert_eq!(config.perplexity.research_poll_budget, Duration::from_secs(45));
    assert_eq!(config.perplexity.async_max_wait, Duration::from_secs(900));
    assert_eq!(config.perplexity.research_job_ttl, Duration::from_secs(1800));
    assert_eq!(config.store, StoreUrl::Sqlite("/data/outlast.db".into()));
    assert_eq!(config.tools, [ToolSet::Research, ToolSet::ResearchJobs]);
    assert_eq!(config.research_mode, ResearchMode::Blocking);
    assert_eq!(config.warnings, [""; 0]);
}

#[test]
fn the_environment_wins_over_the_file_and_the_file_over_the_default() {
    let file = "[server]\nconcurrency = 7\nowner = \"team\"\n[perplexity]\ntimeout_ms = 9\n";
    let config = load(&[("OUTLAST_OWNER", "ann")], Some(file)).unwrap();
    assert_eq!(config.concurrency, 7);
    assert_eq!(config.owner.as_str(), "ann");
    assert_eq!(config.perplexity.timeout, Duration::from_millis(9));
}

#[test]
fn the_dialect_is_one_of_two() {
    for (word, dialect) in [("agent", Dialect::Agent), ("sonar", Dialect::Sonar)] {
        let config = load(&[("PERPLEXITY_API", word)], None).unwrap();
        assert_eq!(config.perplexity.api, dialect);
    }
}

/// A6: a bad millisecond knob falls back with one warning and resets nothing else.
#[test]
fn a_bad_millisecond_value_falls_back_with_one_warning() {
    for bad in ["soon", "0", "-5", "1.5"] {
        let environment =
            [("PERPLEXITY_RESEARCH_POLL_BUDGET_MS", bad), ("PERPLEXITY_TIMEOUT_MS", "77")];
        let config = load(&environment, None).unwrap();
        assert_eq!(config.perplexity.research_poll_budget, Duration::from_secs(45), "{bad}");
        assert_eq!(config.perplexity.timeout, Duration::from_millis(77), "{bad}");
        assert_eq!(config.warnings.len(), 1, "{bad}");
        assert!(
            config.warnings[0].contains("PERPLEXITY_RESEARCH_POLL_BUDGET_MS"),
            "{:?}",
            config.warnings
        );
    }
}

/// B1: the switch has three positions; any other word is blocking, with one warning.
#[test]
fn b1_the_switch_for_async_research() {
    let cases = [
        ("true", ResearchMode::Queued, 0),
        ("1", ResearchMode::Queued, 0),
        ("TRUE", ResearchMode::Queued, 0),
        ("auto", ResearchMode::Auto, 0),
        ("false", ResearchMode::Blocking, 0),
        ("0", ResearchMode::Blocking, 0),
        ("", ResearchMode::Blocking, 0),
        ("yes", ResearchMode::Blocking, 1),
    ];
    for (word, mode, warnings) in cases {
        let config = load(&[("PERPLEXITY_ENABLE_ASYNC_DEEP_RESEARCH", word)], None).unwrap();
        assert_eq!(config.research_mode, mode, "{word}");
        assert_eq!(config.warnings.len(), warnings, "{word}: {:?}", config.warnings);
    }
    let file = "[perplexity]\nenable_async_deep_research = true\n";
    assert_eq!(load(&[], Some(file)).unwrap().research_mode, ResearchMode::Queued);
}

/// The order of the list is the order of the tools.
#[test]
fn tool_sets_keep_the_order_they_are_given_in() {
    let config = load(&[("OUTLAST_TOOLS", "research-jobs, research,research-jobs")], None).unwrap();
    assert_eq!(config.tools, [ToolSet::ResearchJobs, ToolSet::Research]);
}

#[test]
fn a_bad_value_names_itself_its_source_and_what_is_allowed() {
    let cases = [
        (("OUTLAST_CONCURRENCY", "many"), "a whole number"),
        (("OUTLAST_CONCURRENCY", "0"), "from 1 to"),
        (("OUTLAST_TOOLS", "research-jobs,dance"), "research-jobs"),
        (("OUTLAST_INLINE_BUDGET_MS", "0"), "a whole number"),
        (("PERPLEXITY_ENABLE_SECURITY_DISCLAIMER", "yes"), "true, 1, false, 0"),
        (("OUTLAST_STORE", "mysql://x"), "sqlite:FILE"),
        (("OUTLAST_OWNER", "a b"), "characters"),
        (("PERPLEXITY_BASE_URL", "api.example"), "https://"),
        (("PERPLEXITY_API", "soap"), "agent, sonar"),
    ];
    for ((name, value), allowed) in cases {
        let error = load(&[(name, value)], None).unwrap_err();
        let shown = error.to_string();
        assert!(shown.contains(name), "{shown}");
        assert!(error.hint().contains(allowed), "{}", error.hint());
    }
}

#[test]
fn conversations_are_shown_in_the_data_directory_unless_configured_otherwise() {
    let logs = |environment: &[(&str, &str)], file: Option<&str>| {
        load(environment, file).unwrap().conversation_logs.map(|dir| dir.display().to_string())
    };
    assert_eq!(logs(&[], None).as_deref(), Some("/data/conversation-logs"));
    let elsewhere = [("CONVERSATION_LOGS_DIR", "/logs")];
    assert_eq!(logs(&elsewhere, None).as_deref(), Some("/logs"));
    for no in ["false", "0", "\"FALSE\"", "\"\""] {
        let file = format!("[store]\nmirror = {no}\n");
        assert_eq!(logs(&elsewhere, Some(&file)), None, "{no}");
    }
    let error = load(&[], Some("[store]\nmirror = \"maybe\"\n")).unwrap_err();
    assert!(error.to_string().contains("store.mirror"), "{error}");
}

#[test]
fn an_unknown_key_in_the_file_is_refused_by_name() {
    let error = load(&[], Some("[server]\nconcurency = 7\n")).unwrap_err();
    assert!(error.to_string().contains("`server.concurency`"), "{error}");
    let error = load(&[], Some("[server\n")).unwrap_err();
    assert!(error.to_string().contains("line 1"), "{error}");
}

#[test]
fn the_first_proxy_that_is_set_is_used_and_its_credentials_are_never_shown() {
    use outlast_provider::http::ProxyScope::{Everything, OtherMachines};
    let all = [
        ("PERPLEXITY_PROXY", "http://u:hunter2@own"),
        ("HTTPS_PROXY", "http://u:hunter2@https"),
        ("HTTP_PROXY", "http://u:hunter2@http"),
    ];
    let expected = [("own", Everything), ("https", OtherMachines), ("http", OtherMachines)];
    let key = ("PERPLEXITY_API_KEY", "pplx-x");
    for (skipped, (host, scope)) in expected.into_iter().enumerate() {
        let config = load(&[&[key], &all[skipped..]].concat(), None).unwrap();
        assert!(!format!("{config:?}").contains("hunter2"));
        let proxy = vendor(&config, 0).proxy.clone().unwrap();
        assert_eq!((proxy.url, proxy.scope), (format!("http://u:hunter2@{host}"), scope));
    }
    assert!(vendor(&load(&[key, ("NO_PROXY", "*")], None).unwrap(), 0).proxy.is_none());
    let file = "[network]\nproxy = \"p:1\"\nno_proxy = [\"a\", \"10.0.0.0/8\"]\n";
    let config = load(&[key, ("HTTP_PROXY", " ")], Some(file)).unwrap();
    let proxy = vendor(&config, 0).proxy.clone().unwrap();
    assert_eq!((proxy.url.as_str(), proxy.except.as_str()), ("p:1", "a,10.0.0.0/8"));
}

#[test]
fn a_key_is_never_shown() {
    let keys =
        ["PERPLEXITY", "OPENAI", "ANTHROPIC", "GEMINI"].map(|name| format!("{name}_API_KEY"));
    let mut environment = vec![("OUTLAST_PROVIDERS", "perplexity,openai,anthropic,gemini")];
    environment.extend(keys.iter().map(|name| (name.as_str(), "sk-hunter2")));
    let config = load(&environment, None).unwrap();
    assert!((0..4).all(|place| vendor(&config, place).api_key.is_some()));
    assert!(!format!("{config:?}").contains("hunter2"));
    let shown = ShownConfig::of(&mut Layers::of(&environment, None).unwrap());
    assert!(!format!("{shown:?}").contains("hunter2"), "{shown:?}");
}

/// G1: in order; a vendor's key in the environment is not even read if the vendor is not named.
#[test]
fn g1_the_providers_are_those_named_or_perplexity_and_the_library() {
    let keys = [
        ("PERPLEXITY_API_KEY", "pplx-x"),
        ("OPENAI_API_KEY", "sk-x"),
        ("ANTHROPIC_API_KEY", "$ANTHROPIC_API_KEY"),
        ("OPENAI_BASE_URL", "no address"),
        ("OUTLAST_LIBRARY", "/notes"),
    ];
    let config = load(&keys, None).unwrap();
    assert_eq!(
        (names(&config), config.providers_are_named),
        (vec!["perplexity", "library"], false)
    );
    assert_eq!(config.warnings, [""; 0], "what is not named is not looked at");
    assert_eq!(names(&load(&keys[1..], None).unwrap()), ["library"]);
    assert!(load(&keys[1..4], None).unwrap().providers.is_empty());

    let named = [("OUTLAST_PROVIDERS", " library, gemini ,perplexity"), keys[0], keys[4]];
    let config = load(&named, None).unwrap();
    assert_eq!(names(&config), ["library", "gemini", "perplexity"]);
    let file = "[server]\nproviders = [\"openai\", \"library\"]\n[openai]\napi_key = \"sk-file\"\n";
    let config = load(&[], Some(file)).unwrap();
    assert_eq!((names(&config), config.providers_are_named), (vec!["openai", "library"], true));
    assert_eq!(vendor(&config, 0).api_key, Some(Secret("sk-file".to_owned())));

    for (value, shown) in
        [("perplexity,bard", "`bard`"), ("openai,openai", "`openai,openai`"), (",", "`,`")]
    {
        let error = load(&[("OUTLAST_PROVIDERS", value)], None).unwrap_err();
        assert!(error.to_string().contains(&format!("OUTLAST_PROVIDERS = {shown}")), "{error}");
        assert!(
            error.hint().contains("perplexity, openai, anthropic, gemini, researcher, library"),
            "{error}"
        );
    }
}

/// G1: every vendor has its own address, model, proxy and limit; the common limit is Perplexity's.
#[test]
fn g1_a_vendor_is_reached_as_its_table_says() {
    let names = ("OUTLAST_PROVIDERS", "openai,anthropic,gemini");
    let file = "[openai]\nmodel = \"gpt-x\"\ntimeout_ms = 7000\nproxy = \"http://own\"\n\
                base_url = \"https://u:p@azure.example/openai/v1\"\n[gemini]\ntimeout_ms = 0\n";
    let common = [("PERPLEXITY_TIMEOUT_MS", "9000"), ("HTTPS_PROXY", "http://common")];
    let config = load(&[&[names], &common[..]].concat(), Some(file)).unwrap();
    let openai = vendor(&config, 0);
    assert_eq!((openai.model.as_deref(), openai.timeout.as_millis()), (Some("gpt-x"), 7000));
    assert_eq!(openai.base_url, "https://azure.example/openai/v1", "no credentials in an address");
    assert_eq!(openai.proxy.as_ref().unwrap().url, "http://own");
    let anthropic = vendor(&config, 1);
    assert_eq!((anthropic.model.as_deref(), anthropic.timeout.as_millis()), (None, 9000));
    assert_eq!(anthropic.base_url, "https://api.anthropic.com");
    assert_eq!(anthropic.proxy.as_ref().unwrap().url, "http://common");
    assert_eq!(vendor(&config, 2).timeout.as_millis(), 9000, "A6: a bad value falls back");
    assert_eq!(config.warnings.len(), 2, "{:?}", config.warnings);
    let variables = [names, ("OUTLAST_GEMINI_MODEL", "agent-x"), ("GEMINI_TIMEOUT_MS", "5")];
    let config = load(&variables, None).unwrap();
    let gemini = vendor(&config, 2);
    assert_eq!((gemini.model.as_deref(), gemini.timeout.as_millis()), (Some("agent-x"), 5));
}

/// G2: the default set is the one for any provider, unless Perplexity is asked first; a set that is named stays.
#[test]
fn g2_the_default_set_follows_the_first_provider() {
    use ToolSet::{DeepResearch, Research, ResearchJobs};
    let (key, library) = (("PERPLEXITY_API_KEY", "pplx-x"), ("OUTLAST_LIBRARY", "/notes"));
    let named = |names| ("OUTLAST_PROVIDERS", names);
    let cases: [(Variables<'_>, [ToolSet; 2]); 6] = [
        (&[], [Research, ResearchJobs]),
        (&[key, library], [Research, ResearchJobs]),
        (&[library], [DeepResearch, ResearchJobs]),
        (&[named("perplexity,openai")], [Research, ResearchJobs]),
        (&[named("openai,perplexity"), key], [DeepResearch, ResearchJobs]),
        (&[named("openai"), ("OUTLAST_TOOLS", "research-jobs,research")], [ResearchJobs, Research]),
    ];
    for (environment, tools) in cases {
        assert_eq!(load(environment, None).unwrap().tools, tools, "{environment:?}");
    }
}

/// B1: the switch has a new name, which counts if both are set and differ, with one warning.
#[test]
fn b1_the_new_name_of_the_switch_wins_over_the_old_one() {
    const OLD: &str = "PERPLEXITY_ENABLE_ASYNC_DEEP_RESEARCH";
    const NEW: &str = "OUTLAST_ASYNC_RESEARCH";
    let cases: [(Variables<'_>, ResearchMode, usize); 5] = [
        (&[(NEW, "auto")], ResearchMode::Auto, 0),
        (&[(OLD, "true"), (NEW, "true")], ResearchMode::Queued, 0),
        (&[(OLD, "auto"), (NEW, "false")], ResearchMode::Blocking, 1),
        (&[(OLD, "false"), (NEW, "auto")], ResearchMode::Auto, 1),
        (&[(NEW, "yes")], ResearchMode::Blocking, 1),
    ];
    for (environment, mode, warnings) in cases {
        let config = load(environment, None).unwrap();
        assert_eq!(
            (config.research_mode, config.warnings.len()),
            (mode, warnings),
            "{environment:?}"
        );
    }
}

/// tools.md: the library's folders have a separate table; the old key is read, with one warning.
#[test]
fn the_old_key_of_the_library_is_still_read() {
    let old = "[server]\nlibrary = [\"/old\"]\n";
    let config = load(&[], Some(old)).unwrap();
    assert_eq!(config.library, [PathBuf::from("/old")]);
    assert!(matches!(&*config.warnings, [one] if one.contains("`library.folders`")));
    let both = format!("{old}[library]\nfolders = [\"/new\", \"/more\"]\n");
    let config = load(&[], Some(&both)).unwrap();
    assert_eq!(config.library, [PathBuf::from("/new"), PathBuf::from("/more")]);
    assert_eq!(config.warnings.len(), 1);
    assert_eq!(
        load(&[("OUTLAST_LIBRARY", "/env")], Some(&both)).unwrap().library,
        [PathBuf::from("/env")]
    );
}

#[test]
fn every_setting_has_one_key_and_its_own_variables() {
    let keys: HashSet<_> = SETTINGS.iter().map(|setting| setting.key).collect();
    assert_eq!(keys.len(), SETTINGS.len());
    let variables: Vec<_> = SETTINGS.iter().flat_map(|setting| setting.variables).collect();
    assert_eq!(variables.iter().collect::<HashSet<_>>().len(), variables.len());
}

/// Returns the text between two markers of docs/configuration.md that is generated from the settings.
fn documented_table() -> String {
    let mut table = "| key, variable | type, default | description |\n|---|---|---|\n".to_owned();
    for Setting { key, variables, kind, default, description } in SETTINGS {
        let quoted = |word: &str| match word {
            "" => String::new(),
            word => format!(", `{word}`"),
        };
        let variables: String = variables.iter().map(|variable| quoted(variable)).collect();
        let (kind, default) = (kind.name(), quoted(default));
        table.push_str(&format!("| `{key}`{variables} | {kind}{default} | {description} |\n"));
    }
    table
}

/// docs/configuration.md has the table of all settings; set UPDATE_DOCS=1 to write it.
#[test]
fn the_documented_settings_are_those_of_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
    let page = std::fs::read_to_string(path).unwrap();
    let (before, rest) = page.split_once("<!-- settings -->\n").unwrap();
    let (_, after) = rest.split_once("<!-- end of settings -->").unwrap();
    let table = documented_table();
    let expected = format!("{before}<!-- settings -->\n{table}<!-- end of settings -->{after}");
    assert_document(path, &expected);
}

/// Every default must be a value of its type, or a mistyped default would only be found by the command that uses it.
#[test]
fn every_default_is_a_value_of_its_type() {
    for Setting { key, kind, default, .. } in SETTINGS {
        let fits = match kind {
            _ if default.is_empty() => true,
            SettingType::Number | SettingType::Milliseconds | SettingType::Seconds => {
                default.parse::<u64>().is_ok()
            }
            SettingType::Boolean => matches!(*default, "true" | "false"),
            SettingType::Choice(words) => words.contains(default),
            SettingType::Duration => crate::duration::parse(default).is_ok(),
            SettingType::Dollars => NanoUsd::parse(default).is_some(),
            SettingType::Address | SettingType::Webhook => default.starts_with("https://"),
            SettingType::Bytes => default.ends_with("iB"),
            SettingType::Secret => false,
            SettingType::Text
            | SettingType::StoreAddress
            | SettingType::Path
            | SettingType::Paths
            | SettingType::Program
            | SettingType::List => true,
        };
        assert!(fits, "{key} = {default}");
    }
}

#[test]
fn an_unknown_key_names_its_line_and_the_nearest_key() {
    let cases = [
        (
            "[server]\nowner = \"a\"\nconcurency = 7\n",
            "line 3: unknown key `server.concurency`",
            Some("server.concurrency"),
        ),
        (
            "[sever]\nconcurrency = 7\n",
            "line 2: unknown key `sever.concurrency`",
            Some("server.concurrency"),
        ),
        ("store = 1\n", "line 1: unknown key `store`", None),
        (
            "[library.converters]\npdftotex = \"x\"\n",
            "line 2: unknown key `library.converters.pdftotex`",
            Some("library.converters.pdftotext"),
        ),
        ("[x]\n\n[y]\nq = 1\n", "line 4: unknown key `y.q`", None),
    ];
    for (file, message, nearest) in cases {
        let error = load(&[], Some(file)).unwrap_err();
        assert!(error.to_string().ends_with(message), "{error}");
        let hint = error.hint();
        match nearest {
            Some(nearest) => {
                assert!(hint.starts_with(&format!("did you mean `{nearest}`?")), "{hint}")
            }
            None => assert!(!hint.contains("did you mean"), "{hint}"),
        }
    }
}

/// Compares a generated document with its file, or writes it when UPDATE_DOCS is set.
#[expect(clippy::disallowed_methods, reason = "a switch for people who correct the docs")]
fn assert_document(path: &str, expected: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, expected).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap();
    assert!(written == expected, "{path} is stale: run this test with UPDATE_DOCS=1");
}

/// examples/outlast.toml is generated from the settings; set UPDATE_DOCS=1 to write it.
#[test]
fn the_example_file_is_generated_from_the_settings() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/outlast.toml");
    assert_document(path, &example_file());
}

fn collect_keys(section: &str, entries: &toml::Table, keys: &mut HashSet<String>) {
    for (name, value) in entries {
        let key = format!("{section}{name}");
        match value {
            toml::Value::Table(entries) => collect_keys(&format!("{key}."), entries, keys),
            _ => drop(keys.insert(key)),
        }
    }
}

/// Unchanged, it sets nothing; with every setting enabled, it loads and has each of them once.
#[test]
fn the_example_file_has_every_setting_once_and_parses() {
    let text = example_file();
    assert_eq!(load(&[], Some(&text)).unwrap().concurrency, 5);
    let is_setting = |line: &str| {
        let name = line.split(" = ").next().unwrap_or_default();
        line.contains(" = ") && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
    };
    let turned_on: Vec<&str> = text
        .lines()
        .map(|line| line.strip_prefix("# ").filter(|rest| is_setting(rest)).unwrap_or(line))
        .collect();
    let turned_on = turned_on.join("\n");
    // The parser refuses a duplicate key, and an unknown one.
    let table: toml::Table = turned_on.parse().unwrap();
    let mut keys = HashSet::new();
    collect_keys("", &table, &mut keys);
    let known: HashSet<String> = SETTINGS.iter().map(|setting| setting.key.to_owned()).collect();
    assert_eq!(keys, known);
    // Only one of the two may be configured.
    let turned_on = turned_on.replace("\ncommand = ", "\n# command = ");
    let turned_on = turned_on.replace("\npass_env = ", "\n# pass_env = ");
    load(&[], Some(&turned_on)).unwrap();
}

/// F10: bytes as people write them.
#[test]
fn f10_a_quota_of_bytes_is_read_with_its_unit() {
    let read = |value| Layers::of(&[("OUTLAST_MAX_BYTES_PER_OWNER", value)], None);
    let bytes = |value| read(value).unwrap().bytes(settings::LIMITS_MAX_BYTES_PER_OWNER);
    let cases =
        [("", 1 << 30), ("4096", 4096), ("4 KiB", 4096), ("2MiB", 2 << 20), ("3 GiB", 3 << 30)];
    for (value, expected) in cases {
        assert_eq!(bytes(value).unwrap(), expected, "{value}");
    }
    for value in ["0", "-1", "1 GB", "lots", "1.5 GiB", "99999999999999 GiB"] {
        assert!(bytes(value).is_err(), "{value}");
    }
}

/// G6: limits in dollars are exact, from a variable and from the file; an empty value is no limit.
#[test]
fn g6_a_limit_in_dollars_is_read_exactly() {
    let limits = |environment: &[(&str, &str)], file| load(environment, file).unwrap().spend_limits;
    assert_eq!(limits(&[], None), SpendLimits::default());
    let file = "[limits]\nmax_usd_per_job = 0.1\nmax_usd_per_day = 5\n";
    let (per_job, per_day) = (Some(NanoUsd(100_000_000)), Some(NanoUsd(5_000_000_000)));
    assert_eq!(limits(&[], Some(file)), SpendLimits { per_job, per_day });
    let environment = [("OUTLAST_MAX_USD_PER_DAY", "0")];
    let per_day = Some(NanoUsd(0));
    assert_eq!(limits(&environment, Some(file)), SpendLimits { per_job, per_day });
    let refused = load(&[("OUTLAST_MAX_USD_PER_JOB", "-1")], None).unwrap_err();
    assert!(refused.to_string().contains("OUTLAST_MAX_USD_PER_JOB"), "{refused}");
}
