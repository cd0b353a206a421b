//! Checks that questions are answered: twenty-five questions, each with the file that has the answer.

use std::fs;
use std::path::{Path, PathBuf};

use outlast_core::ResearchKind;

use super::bench::{Bench, ask, library, of_kind, research};

/// Questions about this project's own documents.
const OURS: &[(&str, &str)] = &[
    ("How does a job survive a crash of the server?", "ARCHITECTURE.md"),
    ("What does PERPLEXITY_TIMEOUT_MS limit?", "README.md"),
    ("Which setting says how many jobs run at a time?", "docs/configuration.md"),
    ("What happens when the disk is full?", "docs/faults.md"),
    ("What does STORE_CORRUPT mean and what should I do?", "docs/faults.md"),
    ("How do I add outlast to Claude?", "README.md"),
    ("What is left after a kill -9?", "ARCHITECTURE.md"),
    ("How should tests be named?", "CONTRIBUTING.md"),
    ("Which crates may the engine use?", "ARCHITECTURE.md"),
    ("What happens if the clock is set back?", "docs/faults.md"),
    ("Which tests show requirement B9a?", "docs/requirements.md"),
    ("Why is rustls used with ring?", "docs/project/dependencies.md"),
    ("How is a cancel handled while the request is on its way?", "ARCHITECTURE.md"),
];

/// Questions about a company's handbook, a garden guide, workshop notes and a web page, which share many words.
const THEIRS: &[(&str, &str)] = &[
    ("How many vacation days do I have?", "handbook/leave.md"),
    ("Do I need a doctor's note when I am ill?", "handbook/leave.md"),
    ("Until when can I hand in a receipt to be reimbursed?", "handbook/expenses.md"),
    ("What should I do if my laptop is stolen?", "handbook/security.md"),
    ("How fast must I answer a page when on call?", "handbook/oncall.md"),
    ("My compost heap smells, what is wrong?", "garden/compost.md"),
    ("How do I keep slugs out of a raised bed?", "garden/slugs.md"),
    ("When should roses be cut back?", "garden/roses.adoc"),
    ("How hot should the iron be for lead-free solder?", "workshop/soldering.rst"),
    ("What does error E17 mean?", "workshop/pump-log.txt"),
    ("How long does the meter's battery last?", "site/meter-faq.html"),
    ("Why do my tomatoes split?", "garden/tomatoes.md"),
];

pub(crate) fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/corpus")
}

/// This project's documents, without its code.
pub(crate) fn our_documents() -> Bench {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let bench = Bench::new();
    let named = ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/project/dependencies.md"];
    for name in named {
        bench.write(name, fs::read(root.join(name)).unwrap());
    }
    for entry in fs::read_dir(root.join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|ending| ending == "md") {
            let name = format!("docs/{}", path.file_name().unwrap().to_string_lossy());
            bench.write(&name, fs::read(&path).unwrap());
        }
    }
    bench
}

#[tokio::test]
async fn the_right_file_is_among_the_first_three_sources() {
    let ours = our_documents();
    let theirs = Bench::new();
    let asked = [(ours.library(), OURS), (library(&[corpus()], &theirs.cache()), THEIRS)];
    let mut misses = Vec::new();
    for (library, questions) in asked {
        for (question, file) in questions {
            let report = ask(&library, &research(question)).await;
            let files = report.files();
            let first: Vec<_> = files.iter().take(3).collect();
            if !first.contains(&file) {
                misses.push(format!("{question}\n    wanted {file}, got {files:?}"));
            }
        }
    }
    println!("{} of 25 answered", 25 - misses.len());
    assert!(misses.len() <= 3, "missed:\n  {}", misses.join("\n  "));
    for miss in misses {
        println!("missed: {miss}");
    }
}

/// Questions about this project's own documents, with a text that the first passage of the report must contain.
const FIRST: &[(&str, &str)] = &[
    ("What is the default of OUTLAST_CONCURRENCY?", "`OUTLAST_CONCURRENCY` | number, `5`"),
    ("What does exit code 3 mean?", "3 still running when the time given ended"),
    ("How often does an idle worker look for the commits of other processes?", "every 250 ms"),
    ("How long is the lease, and how often is it renewed?", "30 s, renewed every 10 s"),
    ("What does return_large_blocks do?", "large blocks"),
    ("What is JOB_EXPIRED?", "there is no job with this id any more"),
    ("What is read from OUTLAST_ALLOWED_ORIGINS?", "OUTLAST_ALLOWED_ORIGINS"),
    ("Which variable holds the folders of a library?", "OUTLAST_LIBRARY"),
    ("How do I see the whole id in a table?", "Piped tables hold whole ids"),
    ("What does `outlast worker --until-idle` do?", "--until-idle"),
    ("Why is jsonc-parser used?", "jsonc-parser"),
];

/// `scripts/library-questions` asks 160 about the documents of eight packages.
#[tokio::test]
async fn the_first_passage_answers_the_question() {
    let ours = our_documents();
    let library = ours.library();
    let mut misses = Vec::new();
    for (question, said) in FIRST {
        let report = ask(&library, &research(question)).await;
        let first = report.text.split("[1]").next().unwrap_or("");
        let first = first.split_once("## Best passages").map_or("", |(_, first)| first);
        if !first.contains(said) {
            misses.push(format!("{question}\n    wanted {said:?}, got {first}"));
        }
    }
    println!("{} of {} answered first", FIRST.len() - misses.len(), FIRST.len());
    assert!(misses.len() <= 2, "missed:\n  {}", misses.join("\n  "));
}

/// Not a check: prints whole reports, to be read as a newcomer would. `... --ignored --nocapture print_reports`
#[tokio::test]
#[ignore = "prints reports for people to read"]
async fn print_reports() {
    let (ours, theirs) = (our_documents(), Bench::new());
    let theirs = library(&[corpus()], &theirs.cache());
    for (question, _) in OURS {
        println!("{}\n\n==========\n", ours.ask(question).await.text);
    }
    for (question, _) in THEIRS {
        println!("{}\n\n==========\n", ask(&theirs, &research(question)).await.text);
    }
    for kind in [ResearchKind::Ask, ResearchKind::Results] {
        println!("{}\n\n==========\n", ask(&ours.library(), &of_kind(kind, OURS[0].0)).await.text);
    }
    println!("{}", ours.ask("How do penguins breed in zero gravity?").await.text);
}
