//! The files by which others install this program: the registry's server.json, the bundle's manifest, the image. The
//! rules are those of the public schemas (server.json of 2025-12-11, MCPB manifest 0.3), as far as our files use them.

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::Value;

use crate::http::client::{ANN, Served};
use crate::support::World;

const VERSION: &str = env!("CARGO_PKG_VERSION");

fn read(file: &str) -> String {
    let path = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).join(file);
    std::fs::read_to_string(path).unwrap()
}

fn json(file: &str) -> Value {
    serde_json::from_str(&read(file)).unwrap()
}

#[track_caller]
fn only(object: &Value, required: &[&str], optional: &[&str]) {
    let names: Vec<_> = object.as_object().unwrap().keys().map(String::as_str).collect();
    for name in required {
        assert!(names.contains(name), "{name} is missing: {object}");
    }
    for name in names {
        assert!(
            required.contains(&name) || optional.contains(&name),
            "{name} is unknown: {object}"
        );
    }
}

#[track_caller]
fn text(value: &Value, length: std::ops::RangeInclusive<usize>) -> &str {
    let text = value.as_str().unwrap();
    assert!(length.contains(&text.chars().count()), "{} characters: {text}", text.chars().count());
    text
}

#[test]
fn server_json_is_what_the_registry_takes() {
    let server = json("packaging/server.json");
    only(
        &server,
        &["$schema", "name", "description", "version"],
        &["title", "repository", "packages"],
    );
    assert_eq!(
        server["$schema"],
        "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
    );
    let name = text(&server["name"], 3..=200);
    let (space, own) = name.split_once('/').unwrap();
    let allowed = |part: &str, more: &str| {
        !part.is_empty()
            && part.chars().all(|letter| letter.is_ascii_alphanumeric() || more.contains(letter))
    };
    assert!(allowed(space, ".-") && allowed(own, "._-"), "{name}");
    text(&server["description"], 1..=100);
    text(&server["title"], 1..=100);
    assert_eq!(server["version"], VERSION, "one version everywhere");
    only(&server["repository"], &["url", "source"], &["id", "subfolder"]);
    for package in server["packages"].as_array().unwrap() {
        let more = ["runtimeHint", "runtimeArguments", "packageArguments", "environmentVariables"];
        if package["registryType"] == "oci" {
            only(package, &["registryType", "identifier", "transport"], &more);
            // The tag is the version; the schema has no field for it with images.
            let identifier = package["identifier"].as_str().unwrap();
            assert!(identifier.ends_with(&format!(":{VERSION}")), "{package}");
        } else {
            only(package, &["registryType", "identifier", "version", "transport"], &more);
            assert!(["npm", "pypi"].contains(&package["registryType"].as_str().unwrap()));
            assert_eq!(
                (&package["identifier"], &package["version"]),
                (&"outlast-mcp".into(), &VERSION.into())
            );
        }
        assert_eq!(package["transport"], serde_json::json!({ "type": "stdio" }));
        for argument in package["runtimeArguments"].as_array().into_iter().flatten() {
            only(argument, &["type", "name"], &["value", "description"]);
            assert_eq!(argument["type"], "named");
        }
        for variable in package["environmentVariables"].as_array().unwrap() {
            only(
                variable,
                &["name"],
                &["description", "isRequired", "isSecret", "default", "choices"],
            );
            let name = variable["name"].as_str().unwrap();
            assert!(
                read("docs/configuration.md").contains(&format!("`{name}`")),
                "{name} is no setting"
            );
            assert_eq!(variable["isSecret"] == true, name.ends_with("_KEY"), "{name}");
        }
    }
}

#[test]
fn the_bundle_s_manifest_is_what_clients_take() {
    let manifest = json("packaging/manifest.json");
    let required = ["manifest_version", "name", "version", "description", "author", "server"];
    let optional = [
        "display_name",
        "long_description",
        "license",
        "keywords",
        "tools_generated",
        "user_config",
        "compatibility",
    ];
    only(&manifest, &required, &optional);
    assert_eq!(
        (&manifest["manifest_version"], &manifest["version"]),
        (&"0.3".into(), &VERSION.into())
    );
    only(&manifest["author"], &["name"], &["email", "url"]);
    let server = &manifest["server"];
    only(server, &["type", "entry_point", "mcp_config"], &[]);
    assert_eq!(server["type"], "binary");
    only(&server["mcp_config"], &["command", "args"], &["env", "platform_overrides"]);
    let command = server["mcp_config"]["command"].as_str().unwrap();
    assert_eq!(command.strip_prefix("${__dirname}/"), server["entry_point"].as_str());
    let platforms = manifest["compatibility"]["platforms"].as_array().unwrap();
    assert!(
        platforms
            .iter()
            .all(|platform| ["darwin", "linux", "win32"].contains(&platform.as_str().unwrap()))
    );
    for (name, asked) in manifest["user_config"].as_object().unwrap() {
        only(asked, &["type", "title", "description"], &["required", "sensitive", "default"]);
        let kinds = ["string", "number", "boolean", "directory", "file"];
        assert!(kinds.contains(&asked["type"].as_str().unwrap()), "{asked}");
        let used = format!("${{user_config.{name}}}");
        assert!(
            server["mcp_config"]["env"].to_string().contains(&used),
            "{name} is asked for and not used"
        );
    }
    for (variable, value) in server["mcp_config"]["env"].as_object().unwrap() {
        let asked = value.as_str().and_then(|value| value.strip_prefix("${user_config."));
        let asked = asked.map(|name| &manifest["user_config"][name.trim_end_matches('}')]);
        let is_secret = asked.is_some_and(|asked| asked["sensitive"] == true);
        assert_eq!(is_secret, variable.ends_with("_KEY"), "{variable}");
    }
}

/// K1, C10: packages ask for every variable of the researcher, and its two keys are secrets.
#[test]
fn k1_packages_know_the_variables_of_the_researcher() {
    let names = ["MODEL_URL", "MODEL", "MODEL_API_KEY", "SEARCH", "SEARCH_URL", "SEARCH_API_KEY"];
    let (server, manifest) = (json("packaging/server.json"), json("packaging/manifest.json"));
    for name in names.map(|name| format!("OUTLAST_{name}")) {
        let is_key = name.ends_with("_KEY");
        for package in server["packages"].as_array().unwrap() {
            let variables = package["environmentVariables"].as_array().unwrap();
            let found = variables.iter().find(|variable| variable["name"] == *name);
            let found = found.unwrap_or_else(|| panic!("{name} is missing"));
            assert_eq!(found["isSecret"] == true, is_key, "{name}");
        }
        let asked = manifest["server"]["mcp_config"]["env"][&name].as_str();
        let asked = asked.unwrap_or_else(|| panic!("{name} is missing"));
        let asked = asked.trim_start_matches("${user_config.").trim_end_matches('}');
        assert_eq!(manifest["user_config"][asked]["sensitive"] == true, is_key, "{name}");
    }
}

#[test]
fn the_image_is_built_with_our_toolchain_and_names_the_same_server() {
    let dockerfile = read("packaging/Dockerfile");
    let server = json("packaging/server.json");
    let label = format!("io.modelcontextprotocol.server.name={}", server["name"]);
    assert!(dockerfile.contains(&label), "{label}");
    let toolchain = read("rust-toolchain.toml");
    let version = toolchain.split('"').nth(1).unwrap().rsplit_once('.').unwrap().0;
    assert!(dockerfile.contains(&format!("FROM rust:{version}-")), "{version}");
    assert!(dockerfile.contains("USER outlast"), "not as root");
}

/// P9: the first commands of the README are the two that a new machine needs, and the first of them does the main job
/// without a key.
#[tokio::test]
async fn p9_the_readme_begins_with_a_report_and_with_every_test() {
    let readme = read("README.md");
    let block = readme.split("```console\n").nth(1).unwrap().split("```").next().unwrap();
    let question = "How does a job survive a crash?";
    let research = format!("$ cargo run --release -- research --library docs \"{question}\"");
    assert_eq!(block.lines().collect::<Vec<_>>(), [&research, "$ ./scripts/test"]);
    assert!(read("scripts/test").contains("cargo nextest run --workspace"), "every test");

    let mut world = World::new().await;
    world.unset("PERPLEXITY_API_KEY");
    world.unset("PERPLEXITY_BASE_URL");
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let ran = world.run(&["research", "--library", docs, question]).await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains(question) && ran.stdout.contains("[1]"), "{}", ran.stdout);
}

/// F9: the page lists all metrics of a server, and alerts use no others and are all explained.
#[tokio::test]
async fn f9_the_page_lists_every_metric_and_alert() {
    let mut world = World::on_postgres().await;
    world.set("OUTLAST_OWNER", "ann");
    let served = Served::start(&mut world, &[]).await;
    let figures = served.client(ANN).send("GET /metrics", &[], "").await.body().await;
    let typed = figures.lines().filter_map(|line| line.strip_prefix("# TYPE "));
    let served: BTreeSet<(String, String)> = typed
        .filter_map(|line| line.split_once(' '))
        .map(|(name, of)| (name.into(), of.into()))
        .collect();
    let page = read("docs/metrics.md");
    let table = page.split("<!-- metrics -->").nth(1).unwrap();
    let table = table.split("<!-- end of metrics -->").next().unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `"));
    let listed: BTreeSet<(String, String)> = rows
        .map(|row| {
            let mut cells = row.split(" | ");
            let name = cells.next().unwrap().trim_end_matches('`').to_owned();
            (name, cells.next().unwrap().to_owned())
        })
        .collect();
    assert_eq!(served, listed);
    let rules = read("packaging/prometheus/alerts.yml");
    let words = rules.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
    for used in words.filter(|word| word.starts_with("outlast_")) {
        let name = used.strip_suffix("_bucket").unwrap_or(used);
        assert!(listed.iter().any(|(listed, _)| listed == name), "{used} is no metric");
    }
    for alert in rules.lines().filter_map(|line| line.trim().strip_prefix("- alert: ")) {
        assert!(page.contains(&format!("| `{alert}` |")), "{alert} is not explained");
    }
}

/// F9: the time that Kubernetes gives a pod is the sum of the pause, the drain and the end, as docs/operating.md
/// states.
#[test]
fn f9_pods_are_given_the_time_to_drain() {
    for (file, pause) in [("servers", 5), ("workers", 0)] {
        let manifest = read(&format!("packaging/kubernetes/{file}.yaml"));
        let after = |key: &str| {
            manifest.split(key).nth(1).unwrap().lines().next().unwrap().trim().to_owned()
        };
        let grace: u64 = after("terminationGracePeriodSeconds: ").parse().unwrap();
        let drain = manifest.split("OUTLAST_DRAIN_TIMEOUT\n").nth(1).unwrap();
        let drain = drain.split("value: ").nth(1).unwrap().lines().next().unwrap();
        let drain = match drain.strip_suffix('m') {
            Some(minutes) => 60 * minutes.parse::<u64>().unwrap(),
            None => drain.trim_end_matches('s').parse().unwrap(),
        };
        assert_eq!(grace, pause + drain + 5, "{file}");
        assert!(manifest.contains(&format!(":{VERSION}\n")), "one version everywhere");
    }
}

/// Returns the text of every file under a folder of the repository, with its path.
fn files_under(folder: &str) -> Vec<(String, String)> {
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let entries = std::fs::read_dir(root.join(folder)).unwrap().map(Result::unwrap);
    let names = entries.filter(|entry| entry.path().is_file()).map(|entry| entry.file_name());
    let paths = names.map(|name| format!("{folder}/{}", name.to_str().unwrap()));
    paths
        .filter_map(|path| std::fs::read_to_string(root.join(&path)).ok().map(|it| (path, it)))
        .collect()
}

/// N2: what cargo installs, the packages and the benchmarks have one profile.
#[test]
fn n2_there_is_one_profile_for_every_release() {
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let profiles: Vec<_> = manifest["profile"].as_table().unwrap().keys().collect();
    assert_eq!(profiles, ["dev", "release"]);
    for (path, text) in
        [".github/workflows", "packaging", "scripts"].into_iter().flat_map(files_under)
    {
        // A script may build for debugging if asked.
        let is_other = |line: &&str| {
            line.contains("cargo build")
                && line.replace("--profile \"$profile\"", "").contains("--profile")
        };
        let other = text.lines().find(is_other);
        assert_eq!(other, None, "{path}");
    }
    assert!(read("scripts/package").contains("--target \"$target.2.17\""));
}

/// N5: strangers find what they expect, every crate says what it is, and the workflows cannot do more than they must.
#[test]
fn n5_the_repository_is_ready_for_strangers() {
    for file in [
        "SECURITY.md",
        "CODE_OF_CONDUCT.md",
        "CONTRIBUTING.md",
        ".github/dependabot.yml",
        "docs/project/releasing.md",
    ] {
        assert!(read(file).len() > 200, "{file}");
    }
    let changes = read("CHANGELOG.md");
    let dated = changes.lines().find(|line| line.starts_with(&format!("## [{VERSION}] - 20")));
    assert!(dated.is_some() && changes.contains("## [Unreleased]"), "Keep a Changelog");
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    for entry in std::fs::read_dir(crates).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let manifest: toml::Table = read(&format!("crates/{name}/Cargo.toml")).parse().unwrap();
        let package = &manifest["package"];
        assert!(
            package.get("description").is_some() && package.get("repository").is_some(),
            "{name}"
        );
    }
    let workflows = files_under(".github/workflows");
    assert!(workflows.len() >= 3, "{}", workflows.len());
    for (path, text) in workflows {
        assert!(text.contains("\npermissions:"), "{path}: least permissions");
        for action in
            text.lines().filter_map(|line| line.split_once("uses: ")).map(|(_, action)| action)
        {
            let version = action
                .split(' ')
                .next()
                .unwrap()
                .split_once('@')
                .map_or("", |(_, version)| version);
            let is_commit = version.len() == 40 && version.chars().all(|c| c.is_ascii_hexdigit());
            let is_whole = version.matches('.').count() == 2;
            assert!(
                action.starts_with("./") || is_commit || is_whole,
                "{path}: {action} is not pinned"
            );
        }
    }
}
