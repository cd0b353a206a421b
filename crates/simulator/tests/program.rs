//! The program `outlast-simulator`: its arguments, its first lines and its end.
#![expect(clippy::unwrap_used, reason = "a test")]

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Output, Stdio};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_outlast-simulator")).args(arguments).output().unwrap()
}

#[test]
fn a_speed_must_be_above_zero() {
    for speed in ["0", "-1", "NaN", "inf", "fast"] {
        let ran = run(&[&format!("--speed={speed}")]);
        let stderr = String::from_utf8(ran.stderr).unwrap();
        assert_eq!(ran.status.code(), Some(2), "{speed}: {stderr}");
        assert!(stderr.contains("--speed 10") && ran.stdout.is_empty(), "{speed}: {stderr}");
    }
}

#[test]
fn a_port_must_be_a_port() {
    let ran = run(&["--port", "70000"]);
    assert_eq!(ran.status.code(), Some(2));
    assert!(String::from_utf8(ran.stderr).unwrap().contains("70000 is not in 0..=65535"));
}

#[test]
fn the_long_help_lists_the_scenarios() {
    let help = String::from_utf8(run(&["--help"]).stdout).unwrap();
    assert!(help.contains("--clock <CLOCK>") && help.contains("virtual"), "{help}");
    assert!(help.contains(outlast_simulator::GUIDE.lines().next().unwrap()), "{help}");
}

/// Scripts read the address from the first line.
#[test]
fn the_first_line_is_the_address_as_json() {
    let mut program = Command::new(env!("CARGO_BIN_EXE_outlast-simulator"))
        .args(["--seed", "7", "--sonar", "live", "--clock", "virtual"])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(program.stdout.take().unwrap()).read_line(&mut line).unwrap();
    program.kill().unwrap();
    program.wait().unwrap();
    let line: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert!(line["url"].as_str().unwrap().starts_with("http://127.0.0.1:"), "{line}");
}
