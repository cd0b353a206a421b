//! A process that leaves its starter: run as a real program, started by itself.
#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test")]

use std::fs::File;
use std::io::Read as _;
use std::process::{Command, Stdio};

use rustix::io::{FdFlags, fcntl_getfd, fcntl_setfd};
use rustix::process::{Pid, getpid, getppid, getsid};

/// Marks the started process.
const STARTED: &str = "--started";

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [STARTED, starter, inherited] => started(starter, inherited),
        // The question of a test runner that lists tests before it runs them.
        [.., "--ignored"] => {}
        ["--list", ..] => println!("leaving: test"),
        _ => a_started_process_leaves_with_nothing_of_its_starter(),
    }
}

fn a_started_process_leaves_with_nothing_of_its_starter() {
    // A pipe whose end is seen only when the started process has closed its copy.
    let (mut reader, writer) = std::io::pipe().unwrap();
    fcntl_setfd(&writer, fcntl_getfd(&writer).unwrap() - FdFlags::CLOEXEC).unwrap();
    let number = std::os::fd::AsRawFd::as_raw_fd(&writer);
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([STARTED, &getpid().to_string(), &number.to_string()])
        .env(outlast_sys::STARTED_DETACHED, "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    drop(writer);
    let mut answer = String::new();
    let mut output = child.stdout.take().unwrap();
    assert!(child.wait().unwrap().success(), "the first process exits at once");
    reader.read_to_end(&mut Vec::new()).unwrap();
    output.read_to_string(&mut answer).unwrap();
    assert_eq!(answer, "left\n");
    println!("a started process leaves with nothing of its starter: ok");
}

/// Leaves, checks what is left, and reports it.
fn started(starter: &str, inherited: &str) {
    outlast_sys::leave_starter().unwrap();
    let starter = Pid::from_raw(starter.parse().unwrap());
    assert_ne!(getppid(), starter, "it is not a child of its starter");
    assert_eq!(getsid(None).unwrap(), getpid(), "it leads a session");
    if cfg!(target_os = "linux") {
        assert!(File::open(format!("/proc/self/fd/{inherited}")).is_err(), "it holds no pipe");
    }
    #[expect(clippy::disallowed_methods, reason = "a test")]
    let variable = std::env::var_os(outlast_sys::STARTED_DETACHED);
    assert_eq!(variable, None, "what it starts does not leave");
    println!("left");
}
