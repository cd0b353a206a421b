//! The data directory belongs to its user alone: the first process creates it with mode 0700, it is not written while
//! others can change it, and no log in it is opened through a symbolic link.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::{Output, Stdio};

use serde_json::json;
use tokio::io::AsyncWriteExt as _;
use tokio::process::Command;

use crate::support::binary;

const WORKFLOW: &str = "[[workflow]]\nname = \"say\"\ncommand = [\"/bin/echo\", \"said\"]\n";

/// Runs the binary with a umask that withholds no permission.
async fn run(root: &Path, arguments: &str, input: &str) -> Output {
    let mut command = Command::new("/bin/sh");
    let script = format!("umask 000; exec \"$BINARY\" {arguments}");
    command
        .args(["-c", &script])
        .env_clear()
        .env("BINARY", binary())
        .env("HOME", root)
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("OUTLAST_DATA_DIR", root.join("data"))
        .env("OUTLAST_TEST_WORKER_IDLE_MS", "0")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    // A process that refuses to start reads nothing.
    drop(stdin.write_all(input.as_bytes()).await);
    drop(stdin);
    let ended = tokio::time::timeout(std::time::Duration::from_secs(60), child.wait_with_output());
    ended.await.expect("it ends").unwrap()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Returns the flags of a server with one workflow, and a session that starts it.
fn server(root: &Path) -> (String, String) {
    let config = root.join("outlast.toml");
    std::fs::write(&config, WORKFLOW).unwrap();
    // In another folder, so that the data directory is first needed for the worker's log.
    let store = root.join("store");
    std::fs::create_dir_all(&store).unwrap();
    let flags = format!(
        "serve --tools jobs --config {} --store sqlite:{}/jobs.db",
        config.display(),
        store.display()
    );
    let greeting = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": { "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let start = json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": { "name": "start_job", "arguments": { "workflow": "say" } } });
    let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
    (flags, format!("{greeting}\n{ready}\n{start}\n"))
}

#[tokio::test]
async fn the_data_directory_is_made_for_its_user_alone_by_wrap_and_by_the_detached_start() {
    let root = tempfile::tempdir().unwrap();
    run(root.path(), "wrap -- cat", "x\n").await;
    assert_eq!(mode(&root.path().join("data")), 0o700, "wrap");

    let root = tempfile::tempdir().unwrap();
    let (flags, session) = server(root.path());
    let served = run(root.path(), &flags, &session).await;
    let data = root.path().join("data");
    assert!(data.join("worker.log").exists(), "{}", stderr(&served));
    assert_eq!(mode(&data), 0o700, "serve");
    assert_eq!(mode(&data.join("worker.log")), 0o600);

    let root = tempfile::tempdir().unwrap();
    run(root.path(), "store check", "").await;
    run(root.path(), "worker --until-idle --library .", "").await;
    assert_eq!(mode(&root.path().join("data")), 0o700, "worker");
}

#[tokio::test]
async fn a_data_directory_that_others_can_write_is_refused_with_the_fix_and_can_be_read() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    run(root.path(), "worker --until-idle --library .", "").await;
    set_mode(&data, 0o755);
    let fine = run(root.path(), "worker --until-idle --library .", "").await;
    assert!(fine.status.success(), "{}", stderr(&fine));
    set_mode(&data, 0o775);
    for command in ["worker --until-idle --library .", "serve --tools research", "wrap -- cat"] {
        let refused = run(root.path(), command, "x\n").await;
        let text = stderr(&refused);
        assert_eq!(refused.status.code(), Some(2), "{command}: {text}");
        assert!(text.contains("other users can write the directory"), "{command}: {text}");
        assert!(text.contains(&format!("chmod go-w {}", data.display())), "{command}: {text}");
        assert!(!data.join("wrap.log").exists(), "{command} wrote into it");
    }
    let doctor = run(root.path(), "doctor", "").await;
    let text = String::from_utf8_lossy(&doctor.stdout).into_owned();
    assert!(text.contains("other users can write the directory"), "{text}");
    assert!(text.contains("chmod go-w"), "{text}");
    assert_eq!(doctor.status.code(), Some(1));
    let listed = run(root.path(), "jobs list", "").await;
    assert!(listed.status.success(), "{}", stderr(&listed));
    set_mode(&data, 0o700);
    let fine = run(root.path(), "worker --until-idle --library .", "").await;
    assert!(fine.status.success(), "{}", stderr(&fine));
}

#[tokio::test]
async fn logs_are_not_opened_through_links() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    std::fs::create_dir(&data).unwrap();
    set_mode(&data, 0o700);
    let (worker, wrap) = (root.path().join("worker victim"), root.path().join("wrap victim"));
    symlink(&worker, data.join("worker.log")).unwrap();
    symlink(&wrap, data.join("wrap.log")).unwrap();
    let (flags, session) = server(root.path());
    let served = run(root.path(), &flags, &session).await;
    // The server itself runs the job all the same.
    let text = String::from_utf8_lossy(&served.stdout).into_owned();
    assert!(text.contains("job_id"), "{text}");
    assert!(stderr(&served).contains("no worker can be started"), "{}", stderr(&served));
    run(root.path(), "wrap -- cat", "x\n").await;
    assert!(!worker.exists() && !wrap.exists());
}
