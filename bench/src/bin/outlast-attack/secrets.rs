//! Secrets in typical places: none is printed, logged or stored.

use std::fs;
use std::path::Path;

use crate::target::{DEEP, Target, ask, research};
use crate::{Setting, Verdict};

const SECRET: &str = "c4n4ry5ecret";

/// Puts a key in a file with a typing mistake, in an address, and in a store's address.
pub(crate) async fn printed(setting: Setting) -> Verdict {
    let mut said: Vec<(&str, String)> = Vec::new();
    let mut target = Target::new(&setting).await;
    let config = target.folder.path().join("outlast.toml");
    fs::write(&config, format!("[perplexity]\napi_key = \"{SECRET}\n")).unwrap();
    let file = config.to_str().unwrap().to_owned();
    for command in [&["serve"][..], &["config", "show"], &["doctor"]] {
        let arguments: Vec<&str> =
            ["--config", &file].into_iter().chain(command.iter().copied()).collect();
        let (_, stdout, stderr) = target.run(&arguments).await;
        said.push(("a slip in outlast.toml", stdout + &stderr));
    }
    let store = format!("mysql://ann:{SECRET}@db.example/outlast");
    let (_, stdout, stderr) = target.run(&["--store", &store, "jobs", "list"]).await;
    said.push(("a refused --store", stdout + &stderr));

    let url = target.simulator.url().to_owned();
    target.set("PERPLEXITY_BASE_URL", &format!("http://ann:{SECRET}@[bad"));
    for command in [&["doctor"][..], &["config", "show"], &["serve"]] {
        let (_, stdout, stderr) = target.run(command).await;
        said.push(("a malformed base URL", stdout + &stderr));
    }
    target.set("PERPLEXITY_BASE_URL", &url.replace("http://", &format!("http://ann:{SECRET}@")));
    let (_, stdout, stderr) = target.run(&["doctor"]).await;
    said.push(("doctor with a base URL", stdout + &stderr));
    let mut server = target.serve(&[]).await;
    let call = ask(&mut server, DEEP, &research("ok;words=60;delay_ms=0")).await;
    let answer = server.answer(call).await.unwrap_or_default();
    said.push(("the answer", answer.to_string()));
    server.close_input();
    said.push(("the log", server.ended().await.1));
    let (_, listed, _) = target.run(&["jobs", "list", "--json"]).await;
    if let Some(id) = listed.split('"').find(|text| text.len() == 32) {
        let (_, stdout, stderr) = target.run(&["jobs", "show", id, "--json"]).await;
        said.push(("jobs show --json", stdout + &stderr));
    }
    let mut checked = said.len();
    for (place, text) in said {
        if text.contains(SECRET) {
            let line = text.lines().find(|line| line.contains(SECRET)).unwrap_or_default();
            return Err(format!("{place}: {line}"));
        }
    }
    checked += clean(&target.folder.path().join("data"))?;
    Ok(format!("{checked} outputs and files"))
}

/// Searches every file of a folder; returns their number.
fn clean(folder: &Path) -> Result<usize, String> {
    let mut files = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            files += clean(&path)?;
            continue;
        }
        let bytes = fs::read(&path).unwrap_or_default();
        if bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()) {
            return Err(format!("stored in {}", path.display()));
        }
        files += 1;
    }
    Ok(files)
}
