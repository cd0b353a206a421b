//! `[library.converters]`: PDFs through the installed `pdftotext`, and a replacement for `pandoc` under the real
//! limits.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use crate::support::{Ran, World, eventually};

const QUESTION: &str = "Which soil does the plum tree want?";

/// A world with a folder of documents and a configuration that names this script as pandoc.
struct Converting {
    world: World,
    folder: PathBuf,
    config: PathBuf,
}

impl Converting {
    async fn with(script: &str) -> Self {
        let world = World::new().await;
        let folder = world.data_dir().join("notes");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("fig.md"), "Figs want shelter from the wind.\n").unwrap();
        std::fs::write(folder.join("plum.docx"), "not looked at").unwrap();
        let program = world.data_dir().join("pandoc");
        std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        let config = world.data_dir().join("outlast.toml");
        let text = format!("[library.converters]\npandoc = {program:?}\n");
        std::fs::write(&config, text).unwrap();
        Self { world, folder, config }
    }

    fn arguments<'a>(&'a self, question: &'a str) -> [&'a str; 6] {
        let (folder, config) = (self.folder.to_str().unwrap(), self.config.to_str().unwrap());
        ["--config", config, "research", question, "--library", folder]
    }

    async fn ask(&self, question: &str) -> Ran {
        self.world.run(&self.arguments(question)).await
    }
}

#[tokio::test]
async fn a_pdf_in_a_library_answers_with_its_page() {
    let converting = Converting::with("exit 1").await;
    let pump = concat!(env!("CARGO_MANIFEST_DIR"), "/../library/tests/it/pdfs/pump.pdf");
    std::fs::copy(pump, converting.folder.join("-v.pdf")).unwrap();
    let ran = converting.ask("What burns the seal of the water pump?").await;
    assert_eq!(ran.code, Some(0), "{ran:?}");
    assert!(ran.stdout.contains("dry pump burns its seal within two minutes."), "{ran:?}");
    assert!(ran.stdout.contains("-v.pdf:p1"), "{ran:?}");
    assert!(ran.stdout.contains("1 file was left out: 1 that could not be read."), "{ran:?}");
}

/// P1: a converter gets none of our keys, and has separate limits.
#[tokio::test]
async fn p1_a_converter_runs_under_limits_and_without_our_keys() {
    let script = "echo \"The plum tree wants memory $(ulimit -v), time $(ulimit -t), core $(ulimit -c), soil ${PERPLEXITY_API_KEY:-none} and ${HOME:-none}.\"";
    let ran = Converting::with(script).await.ask(QUESTION).await;
    let expected = "The plum tree wants memory 1048576, time 30, core 0, soil none and none.";
    assert!(ran.stdout.contains(expected), "{ran:?}");
}

#[tokio::test]
async fn a_converter_that_eats_memory_costs_only_its_file() {
    let script = "head -c 3000000000 /dev/zero | tail -n 1 >/dev/null || exit 1";
    let ran = Converting::with(script).await.ask("What do figs want?").await;
    assert!(ran.stdout.contains("Figs want shelter"), "{ran:?}");
    assert!(ran.stdout.contains("1 file was left out: 1 that could not be read."), "{ran:?}");
}

/// Only the processor time counts, so that a busy machine changes no answer.
#[tokio::test]
async fn a_converter_that_spins_is_too_slow() {
    let ran = Converting::with("ulimit -S -t 1; while :; do :; done").await.ask("figs").await;
    assert!(ran.stdout.contains("1 that took too long to convert."), "{ran:?}");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_converter_does_not_outlive_a_killed_server() {
    let converting = Converting::with("echo $$ >${0%/*}/pid; exec sleep 600").await;
    let mut process = converting.world.spawn(&converting.arguments(QUESTION));
    let file = converting.world.data_dir().join("pid");
    let is_written = || std::fs::read_to_string(&file).is_ok_and(|pid| pid.ends_with('\n'));
    eventually("the converter runs", is_written).await;
    let pid = std::fs::read_to_string(&file).unwrap();
    process.kill().await;
    let stat = format!("/proc/{}/stat", pid.trim());
    let is_gone = || match std::fs::read_to_string(&stat) {
        Ok(stat) => stat.rsplit_once(") ").is_some_and(|(_, rest)| rest.starts_with('Z')),
        Err(_) => true,
    };
    eventually("the converter ends", is_gone).await;
}

#[tokio::test]
async fn a_converter_is_named_by_its_name_or_an_absolute_path() {
    let converting = Converting::with("exit 1").await;
    for (text, said) in [
        ("[library.converters]\npandoc = \"./pandoc\"\n", "absolute path"),
        ("[library.converters]\nword = \"antiword\"\n", "library.converters.word"),
    ] {
        std::fs::write(&converting.config, text).unwrap();
        let ran = converting.ask(QUESTION).await;
        assert_eq!(ran.code, Some(2), "{ran:?}");
        assert!(ran.stderr.contains(said), "{ran:?}");
    }
}
