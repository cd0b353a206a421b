//! `outlast check` (J1): reports and Markdown files, a web on loopback, the real binary.

mod files;
mod hostile;
mod killed;
mod reports;
mod shared;
pub(crate) mod web;

use serde_json::Value;

use crate::support::World;
use web::Web;

/// J1
#[tokio::test]
async fn a_markdown_file_is_checked_and_named_verdicts_fail() {
    let mut world = World::new().await;
    let web = Web::serve();
    std::fs::create_dir_all(world.data_dir()).unwrap();
    let file = world.data_dir().join("report.md");
    let text = format!(
        "Lake Vostok is 250 km long [1]. Its area is 14,000 km² [1]. It is deep [2].\n\n## Sources\n\n1. Lakes <{}>\n2. Gone <{}>\n",
        web.url(1, "page"),
        web.url(2, "gone")
    );
    std::fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap();
    let refused = world.run(&["check", file, "--json", "--fail-on", "differs"]).await;
    let check: Value = serde_json::from_str(&refused.stdout).unwrap();
    assert_eq!((refused.code, check["sources"][0]["verdict"].as_str()), (Some(0), Some("refused")));
    let detail = check["sources"][0]["detail"].as_str().unwrap();
    assert!(detail.contains("port 80"), "the reason is named: {check}");
    let shown = world.run(&["check", file]).await;
    assert!(shown.stdout.contains(detail), "{shown:?}");
    world.set("OUTLAST_CHECK_CITATIONS", "never");
    let off = world.run(&["check", file]).await;
    assert_eq!(off.code, Some(2), "{off:?}");
    world.set("OUTLAST_CHECK_CITATIONS", "on-request");
    world.set("OUTLAST_CITATIONS_ALLOW_PRIVATE", "true");
    let ran = world.run(&["check", file, "--json"]).await;
    let check: Value = serde_json::from_str(&ran.stdout).unwrap();
    let verdicts: Vec<_> = check["claims"]
        .as_array()
        .unwrap()
        .iter()
        .map(|claim| claim["verdict"].as_str().unwrap())
        .collect();
    assert_eq!(
        (ran.code, verdicts),
        (Some(0), vec!["supported", "differs", "no_facts"]),
        "{check:#}"
    );
    assert_eq!(check["sources"][1]["verdict"], "dead");
    assert_eq!(check["claims"][1]["found"], "12,513 km2");
    for (list, code) in [("differs", 1), ("not_found,dead", 1), ("not_found,refused", 0)] {
        let ran = world.run(&["check", file, "--fail-on", list]).await;
        assert_eq!(ran.code, Some(code), "{list}: {ran:?}");
        assert!(ran.stdout.contains("the source has: 12,513 km2"), "{ran:?}");
    }
    let wrong = world.run(&["check", "no-such-file.md"]).await;
    assert_eq!(wrong.code, Some(2), "{wrong:?}");
}
