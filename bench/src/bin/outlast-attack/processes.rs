//! Attacks by other processes on this machine: a wrapped server with an endless line, a library whose files are swapped
//! while it is read, and a data directory that others can write.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use crate::target::Target;
use crate::{Setting, Verdict};

/// Reads one request and then writes one line that does not end.
const ENDLESS: &str =
    "import sys\nsys.stdin.readline()\nwhile True: sys.stdout.write('x' * 1000000)";
/// The maximum memory of a wrap process. It holds the line a few times at most.
const MAX_KIB: u64 = 400 * 1024;

/// Wraps a server that writes an endless line: the call ends, and the memory of wrap stays bounded.
pub(crate) async fn endless_line(setting: Setting) -> Verdict {
    let target = Target::new(&setting).await;
    let mut command = target.command(&["wrap", "--", "python3", "-c", ENDLESS]);
    let mut wrapped = command.stdin(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(wrapped.stdout.take().unwrap()).lines();
    let mut stdin = wrapped.stdin.take().unwrap();
    let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "x", "arguments": {} } });
    stdin.write_all(format!("{request}\n").as_bytes()).await.unwrap();
    let mut peak = 0;
    let answer = tokio::time::timeout(Duration::from_secs(60), async {
        let mut next = Box::pin(lines.next_line());
        loop {
            tokio::select! {
                line = &mut next => return Ok(line.ok().flatten().unwrap_or_default()),
                () = tokio::time::sleep(Duration::from_millis(20)) => {
                    peak = peak.max(largest(&target));
                    if peak > MAX_KIB {
                        return Err(format!("wrap took {} MiB for one line", peak / 1024));
                    }
                }
            }
        }
    });
    let verdict = match answer.await {
        Err(_) => Err("the call has no end".to_owned()),
        Ok(Err(how)) => Err(how),
        Ok(Ok(line)) if line.contains("64 MiB") => {
            Ok(format!("the call ended with an error; at most {} MiB", peak / 1024))
        }
        Ok(Ok(line)) => Err(format!("the call was answered with {line:?}")),
    };
    drop(stdin);
    end_all(&target);
    verdict
}

/// Returns the processes of a target.
fn processes(target: &Target) -> Vec<i32> {
    let mark = format!("OUTLAST_DATA_DIR={}/data", target.folder.path().display());
    let entries = fs::read_dir("/proc").unwrap().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let is_its = |pid: &i32| {
        let environment = fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment.split(|byte| *byte == 0).any(|it| it == mark.as_bytes())
    };
    pids.filter(is_its).collect()
}

/// Returns the memory of the largest process of a target that is not Python, in KiB.
fn largest(target: &Target) -> u64 {
    let resident = |pid: i32| {
        let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
        let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name));
        if field("Name:")?.contains("python") {
            return None;
        }
        field("VmRSS:")?.trim().trim_end_matches(" kB").parse().ok()
    };
    processes(target).into_iter().filter_map(resident).max().unwrap_or(0)
}

/// Ends the processes that a target left.
fn end_all(target: &Target) {
    for pid in processes(target).into_iter().filter_map(Pid::from_raw) {
        // A process that has already exited is fine.
        let _ = kill_process(pid, Signal::KILL);
    }
}

/// Swaps files of a library until it is dropped.
struct Swapping {
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Swapping {
    /// Swaps the two files of each pair repeatedly.
    fn start(pairs: Vec<(std::path::PathBuf, std::path::PathBuf)>) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::Relaxed) {
                for (one, other) in &pairs {
                    use rustix::fs::{CWD, RenameFlags, renameat_with};
                    renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE).unwrap();
                }
            }
        });
        Self { stop, thread: Some(thread) }
    }
}

impl Drop for Swapping {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            drop(thread.join());
        }
    }
}

const SECRET: &str = "xyzzyc4n4ry";

/// Replaces files of a library with links to a file outside while a question is answered.
pub(crate) async fn library_link(setting: Setting) -> Verdict {
    let target = Target::new(&setting).await;
    let secret = target.folder.path().join("secret.md");
    fs::write(&secret, format!("# Plums\n\nThe plum tree has the password {SECRET}.\n")).unwrap();
    let (books, spare) = folders(&target);
    let mut pairs = Vec::new();
    for number in 0..40 {
        let (file, link) = (books.join(format!("{number}.md")), spare.join(number.to_string()));
        fs::write(&file, format!("# Tree {number}\n\nTree {number} has leaves.\n")).unwrap();
        symlink(&secret, &link).unwrap();
        pairs.push((file, link));
    }
    let _swapping = Swapping::start(pairs);
    let runs = if setting.short { 6 } else { 24 };
    for run in 1..=runs {
        let said = ask(&target, &books, "What is the password of the plum tree?").await?;
        if said.contains(SECRET) {
            return Err(format!("run {run} of {runs} read a file outside of the library"));
        }
    }
    Ok(format!("{runs} runs, and none read outside of the library"))
}

/// Replaces files of a library with FIFOs while a question is answered.
pub(crate) async fn library_fifo(setting: Setting) -> Verdict {
    let target = Target::new(&setting).await;
    let (books, spare) = folders(&target);
    let mut pairs = Vec::new();
    for number in 0..40 {
        let (file, fifo) = (books.join(format!("{number}.md")), spare.join(number.to_string()));
        fs::write(&file, "# Trees\n\nTrees have leaves.\n").unwrap();
        let made = std::process::Command::new("mkfifo").arg(&fifo).status().unwrap();
        assert!(made.success());
        pairs.push((file, fifo));
    }
    let _swapping = Swapping::start(pairs);
    let runs = if setting.short { 6 } else { 24 };
    for _ in 0..runs {
        ask(&target, &books, "What do trees have?").await?;
    }
    Ok(format!("{runs} runs, and all ended"))
}

fn folders(target: &Target) -> (std::path::PathBuf, std::path::PathBuf) {
    let (books, spare) = (target.folder.path().join("books"), target.folder.path().join("spare"));
    fs::create_dir(&books).unwrap();
    fs::create_dir(&spare).unwrap();
    (books, spare)
}

/// Asks a library that has no index of earlier questions.
async fn ask(target: &Target, books: &Path, question: &str) -> Result<String, String> {
    drop(fs::remove_dir_all(target.folder.path().join("data")));
    let arguments = ["research", "--library", books.to_str().unwrap(), question];
    let ran = tokio::time::timeout(Duration::from_secs(15), target.run(&arguments)).await;
    let (_, stdout, _) = ran.map_err(|_| "a run of the library has no end".to_owned())?;
    Ok(stdout)
}

/// Uses a data directory that others can write, and logs that are links.
pub(crate) async fn data_directory(setting: Setting) -> Verdict {
    let target = Target::new(&setting).await;
    let (data, victim) = (target.folder.path().join("data"), target.folder.path().join("victim"));
    // Under a umask that withholds no permission.
    let shell = format!("umask 000; exec {} wrap -- cat", target.binary.display());
    let mut wrapped = target.spawn("/bin/sh", &["-c", &shell]);
    wrapped.close_input();
    wrapped.ended().await;
    end_all(&target);
    let mode = fs::metadata(&data).map_or(0o700, |made| made.mode() & 0o777);
    if mode & 0o022 != 0 {
        return Err(format!("wrap made the data directory with mode {mode:03o}"));
    }
    fs::create_dir_all(&data).unwrap();
    drop(fs::remove_file(data.join("wrap.log")));
    symlink(&victim, data.join("wrap.log")).unwrap();
    let mut wrapped = target.spawn(target.binary.to_str().unwrap(), &["wrap", "--", "cat"]);
    wrapped.close_input();
    wrapped.ended().await;
    end_all(&target);
    if victim.exists() {
        return Err("wrap wrote its log through a link".to_owned());
    }
    fs::remove_file(data.join("wrap.log")).unwrap();
    fs::set_permissions(&data, fs::Permissions::from_mode(0o777)).unwrap();
    for arguments in [&["wrap", "--", "cat"][..], &["worker", "--until-idle"]] {
        let (code, _, stderr) = target.run(arguments).await;
        end_all(&target);
        if code == Some(0) {
            return Err(format!("{} used a data directory that all can write", arguments[0]));
        }
        if !stderr.contains("chmod") {
            return Err(format!("{}: no word of the way out: {stderr}", arguments[0]));
        }
    }
    Ok("mode 0700, no log through a link, nothing written where others can".to_owned())
}
