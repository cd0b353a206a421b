//! A running search: progress, cancellation, and the reports to the engine.

use std::sync::Arc;

use outlast_core::{
    BeginError, Provider, ProviderErrorKind, RecoverySemantics, ResendPolicy, ResumePolicy, Step,
    StopOutcome,
};
use outlast_library::Library;
use serde_json::json;

use super::bench::{Bench, LIMIT, begin, research};

fn many_files(count: usize) -> Bench {
    let bench = Bench::new();
    for number in 0..count {
        bench.write(&format!("{number}.md"), format!("# Tree {number}\n\nIt wants soil.\n"));
    }
    bench
}

#[tokio::test]
async fn progress_has_real_counts_and_never_goes_down() {
    let report = many_files(40).ask("What soil?").await;
    let percents: Vec<_> = report.progress.iter().map(|seen| seen.percent.unwrap()).collect();
    assert!(percents.is_sorted() && percents[0] == 25, "{percents:?}");
    let said: Vec<_> = report.progress.iter().map(|seen| seen.message.as_str()).collect();
    assert_eq!(said[0], "Searching the library...");
    assert!(
        said.contains(&"Reading 1 of 40 files") && said.contains(&"Reading 40 of 40 files"),
        "{said:?}"
    );
    assert!(said.contains(&"Searching 40 passages"), "{said:?}");
    assert_eq!(said.last(), Some(&"Writing the report"));
}

#[tokio::test]
async fn after_a_crash_a_search_is_simply_repeated() {
    let library = Bench::new().library();
    let semantics = RecoverySemantics {
        resend: ResendPolicy::Idempotent,
        resume: ResumePolicy::Never,
        can_stop: true,
    };
    assert_eq!(
        (library.name(), library.recovery_semantics(&json!({}).into())),
        (Library::NAME, semantics)
    );
    let bench = many_files(1);
    let library = bench.library();
    let first = begin(&library, &research("soil")).await.remote();
    let second = begin(&library, &research("soil")).await.remote();
    assert!(first.id != second.id && first.provider == "library", "{first:?} {second:?}");
    let error = library
        .resume(&outlast_core::Request::from(serde_json::Value::Null), &first)
        .await
        .err()
        .unwrap();
    assert_eq!(error.kind, ProviderErrorKind::RunLost);
    assert!(matches!(library.stop(&first).await.unwrap(), StopOutcome::Ended { .. }));
}

#[tokio::test]
async fn an_ask_of_another_kind_is_refused() {
    let error =
        Bench::new().library().begin(&json!({ "messages": 5 }).into(), "key").await.err().unwrap();
    assert!(
        matches!(&error, BeginError::NotSent(error) if error.kind == ProviderErrorKind::Rejected),
        "{error}"
    );
}

#[tokio::test]
async fn missing_folders_are_a_temporary_error() {
    let bench = many_files(1);
    let library = bench.library();
    std::fs::remove_dir_all(bench.books()).unwrap();
    let mut run = begin(&library, &research("soil")).await;
    let error = loop {
        match tokio::time::timeout(LIMIT, run.next()).await.unwrap() {
            Ok(Step::Progress(_)) => {}
            Ok(other) => panic!("{other:?}"),
            Err(error) => break error,
        }
    };
    assert!(!error.kind.is_permanent() && error.sentence.contains("no longer exist"), "{error:?}");
}

/// The runtime waits for its blocking tasks, so its end proves that the worker has ended.
#[test]
fn a_dropped_run_ends_its_worker_before_it_has_read_everything() {
    let bench = Arc::new(many_files(1_500));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let library = bench.library();
    runtime.block_on(async {
        let mut run = begin(&library, &research("soil")).await;
        // Wait until it reads: then it is in the middle of its work.
        loop {
            let Step::Progress(seen) =
                tokio::time::timeout(LIMIT, run.next()).await.unwrap().unwrap()
            else {
                panic!("done too soon")
            };
            if seen.message.starts_with("Reading") {
                break;
            }
        }
    });
    drop(runtime);
    // Unfinished work was not stored, because it is one transaction. A complete index would have been reused.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let report = runtime.block_on(bench.ask("soil"));
    let first = report.progress.iter().find(|seen| seen.message.starts_with("Reading"));
    assert_eq!(first.map(|seen| seen.message.as_str()), Some("Reading 1 of 1,500 files"));
}

/// Dropping `next` loses nothing.
#[tokio::test]
async fn waiting_can_be_abandoned_and_resumed() {
    let bench = many_files(30);
    let mut run = begin(&bench.library(), &research("What soil does tree 7 want?")).await;
    let mut dropped = 0;
    let output = loop {
        let step = tokio::select! {
            biased;
            () = std::future::ready(()), if dropped % 2 == 0 => None,
            step = run.next() => Some(step.unwrap()),
        };
        dropped += 1;
        if let Some(Step::Done { output, .. }) = step {
            break output;
        }
    };
    assert!(dropped > 5);
    assert!(format!("{:?}", output.body).contains("7.md"));
}
