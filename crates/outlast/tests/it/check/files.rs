//! J4: reports of the library are compared with its files, without any network.

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::Value;

use super::web::Web;
use crate::support::World;

const OTTERS: &str =
    "# Otters\n\nThe otter Lutra weighs 9.5 kg and sleeps by day in the reeds of Loch Ness.\n";

/// Creates a library with one document, and returns its folder.
fn library(world: &World, text: &str) -> PathBuf {
    let library = world.data_dir().parent().unwrap().join("library");
    std::fs::create_dir_all(&library).unwrap();
    std::fs::write(library.join("otter.md"), text).unwrap();
    library
}

async fn research(world: &World, library: &Path) -> String {
    let library = library.to_str().unwrap();
    let question = "How much does the otter Lutra weigh?";
    let ran = world.run(&["research", "--library", library, question, "--json"]).await;
    let job: Value = serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"));
    job["id"].as_str().unwrap().to_owned()
}

async fn check(world: &World, arguments: &[&str]) -> Value {
    let ran = world.run(&[&["check", "--json"], arguments].concat()).await;
    serde_json::from_str(&ran.stdout).unwrap_or_else(|_| panic!("{ran:?}"))
}

async fn checks(world: &World) -> usize {
    let listed = world.run(&["jobs", "list", "--json"]).await;
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    let jobs = listed["jobs"].as_array().unwrap();
    jobs.iter().filter(|job| job["workflow"] == "check_citations").count()
}

/// J4
#[tokio::test]
async fn j4_files_of_the_library_are_compared_without_network() {
    let mut world = World::new().await;
    let library = library(&world, OTTERS);
    let id = research(&world, &library).await;
    let file = library.join("otter.md");
    // Another folder is not the library of the report, whatever files it has.
    let refused = check(&world, &[&id]).await;
    assert_eq!(refused["sources"][0]["verdict"], "refused", "{refused:#}");
    assert!(refused["sources"][0]["detail"].as_str().unwrap().contains("--library"), "{refused:#}");
    let folder = library.to_str().unwrap();
    let same = check(&world, &[&id, "--fresh", "--library", folder]).await;
    assert_eq!(same["sources"][0]["verdict"], "ok", "{same:#}");
    assert_eq!(same["totals"]["supported"], 1, "{same:#}");
    assert!(same["claims"][0]["passage"]["text"].as_str().unwrap().contains("9.5 kg"));
    world.set("OUTLAST_LIBRARY", folder);
    // The same text under a new time is the same file.
    std::fs::write(&file, OTTERS).unwrap();
    assert_eq!(check(&world, &[&id, "--fresh"]).await["sources"][0]["verdict"], "ok");
    std::fs::write(&file, OTTERS.replace("9.5", "9.6")).unwrap();
    let changed = check(&world, &[&id, "--fresh"]).await;
    assert_eq!(changed["sources"][0]["verdict"], "changed", "{changed:#}");
    assert_eq!(changed["claims"][0]["reason"], "changed", "{changed:#}");
    std::fs::remove_file(&file).unwrap();
    let gone = check(&world, &[&id, "--fresh"]).await;
    assert_eq!(gone["sources"][0]["verdict"], "changed", "{gone:#}");
    let shown = world.run(&["check", &id]).await;
    assert!(shown.stdout.contains("no longer has the file"), "{shown:?}");
    // A link is not followed, not even to the same text.
    let elsewhere = library.parent().unwrap().join("elsewhere.md");
    std::fs::write(&elsewhere, OTTERS).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &file).unwrap();
    let linked = check(&world, &[&id, "--fresh"]).await;
    assert_eq!(linked["sources"][0]["verdict"], "changed", "{linked:#}");
}

/// J4: a document that a person or an agent gives to a check names no files.
#[tokio::test]
async fn j4_a_document_never_makes_a_check_read_files() {
    let mut world = World::new().await;
    let library = library(&world, OTTERS);
    world.set("OUTLAST_LIBRARY", library.to_str().unwrap());
    let file = library.parent().unwrap().join("report.md");
    let text = "The otter Lutra weighs 9.5 kg [1], says [2](otter.md:3) or [3].\n\n\
                [1]: otter.md:3\n[3]: file:///etc/passwd\n\n## Sources\n\n1. otter.md:3\n";
    std::fs::write(&file, text).unwrap();
    let check = check(&world, &[file.to_str().unwrap()]).await;
    assert!(!check.to_string().contains("9.5 kg and sleeps"), "{check:#}");
    assert_eq!(check["totals"]["supported"], 0, "{check:#}");
}

/// J4: pages that such a report cites are fetched only with consent, also by `always`; its files are compared at once.
#[tokio::test]
async fn j4_a_report_of_the_library_is_fetched_only_with_consent() {
    let mut world = World::new().await;
    world.set("OUTLAST_CHECK_CITATIONS", "always");
    world.set("OUTLAST_CITATIONS_ALLOW_PRIVATE", "true");
    let web = Web::serve();
    let library =
        library(&world, &OTTERS.replace("Ness", &format!("Ness, see {}", web.url(1, "secret"))));
    world.set("OUTLAST_LIBRARY", library.to_str().unwrap());
    let id = research(&world, &library).await;
    let begun = async {
        while checks(&world).await == 0 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), begun).await.expect("the check begins by itself");
    let local = check(&world, &[&id]).await;
    let verdicts = |check: &Value| {
        let sources = check["sources"].as_array().unwrap().iter();
        sources.map(|source| source["verdict"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(verdicts(&local), ["ok", "refused"], "{local:#}");
    let ran = world.run(&["check", &id, "--fresh"]).await;
    assert!(ran.stderr.contains("--yes fetches them"), "{ran:?}");
    assert_eq!(web.asked(), Vec::<String>::new());
    let with_consent = check(&world, &[&id, "--fresh", "--yes"]).await;
    assert_eq!(verdicts(&with_consent), ["ok", "ok"], "{with_consent:#}");
    assert_eq!(web.asked(), ["secret"]);
}
