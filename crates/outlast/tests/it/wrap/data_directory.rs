//! `outlast wrap` with a data directory that is unusual or cannot be used.

use serde_json::json;

use super::{Wrapping, text};

/// Runs wrap to its end and returns its output.
async fn refusal(wrapping: &Wrapping) -> String {
    let mut wrapped = wrapping.spawn();
    let (_, code) = wrapped.rest().await;
    assert_eq!(code, Some(2));
    let said = wrapped.stderr().await;
    assert!(said.contains("hint: "), "{said}");
    said
}

#[tokio::test]
async fn h7_a_data_directory_that_cannot_be_used_is_refused_with_its_path() {
    let wrapping = Wrapping::new();
    std::fs::create_dir(wrapping.path("data")).unwrap();
    std::fs::write(wrapping.path("data/wrap"), "").unwrap();
    let said = refusal(&wrapping).await;
    assert!(said.contains(wrapping.path("data/wrap").to_str().unwrap()), "{said}");
    // No user can create files there, not even root.
    let wrapping = Wrapping::new().flags(&["--data-dir", "/sys/kernel"]);
    if rustix::process::geteuid().is_root() {
        let said = refusal(&wrapping).await;
        assert!(said.contains("/sys/kernel"), "{said}");
    }
    let wrapping = Wrapping::new().flags(&["--data-dir", "/proc/self/data"]);
    assert!(refusal(&wrapping).await.contains("/proc/self/data"));
}

#[tokio::test]
async fn h7_a_long_path_works_as_far_as_the_store_allows() {
    let deep = |folders: usize| vec!["d".repeat(100); folders].join("/");
    let short = Wrapping::new();
    let path = short.path(&deep(4));
    let wrapping = short.flags(&["--after", "300ms", "--data-dir", path.to_str().unwrap()]);
    let mut wrapped = wrapping.start().await;
    let until = json!({ "until": wrapping.path("go").to_str().unwrap() });
    let job = wrapped.handed_off("wait", until).await;
    wrapping.release("go");
    let mut answer = wrapped.call("get_result", json!({ "job_id": job })).await;
    while text(&answer).contains("still running") {
        answer = wrapped.call("get_result", json!({ "job_id": job })).await;
    }
    assert_eq!(text(&answer), "wait");
    let long = Wrapping::new();
    let path = long.path(&deep(9));
    let wrapping = long.flags(&["--data-dir", path.to_str().unwrap()]);
    let said = refusal(&wrapping).await;
    assert!(said.contains(path.to_str().unwrap()) && said.contains("too long"), "{said}");
    // Without a file for the store, any path will do.
    let long = Wrapping::new();
    let path = long.path(&deep(9));
    let flags = ["--after", "300ms", "--data-dir", path.to_str().unwrap(), "--store", "memory:"];
    let wrapping = long.flags(&flags);
    let mut wrapped = wrapping.start().await;
    wrapped.handed_off("wait", json!({ "until": wrapping.path("go").to_str().unwrap() })).await;
}
