//! The memory that the real server needs for large reports.

use outlast_testkit::mcp_process::McpProcess;

use crate::support::{World, finished, start};

/// Returns the peak memory of the process, in KiB.
pub(crate) fn peak_kib(server: &McpProcess) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", server.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches("kB").trim().parse().unwrap()
}

/// A report is fetched, stored, read again and answered; a message contains it twice, as MCP requires. The memory of
/// one report is released: without `return_large_blocks` a second one takes as much again.
#[tokio::test]
async fn a_report_of_200_000_words_takes_less_than_four_times_its_size() {
    let world = World::new().await;
    let mut server = world.serve().await;
    // A short one first, so that one-time allocations are not counted.
    let short = start(&mut server, "ok;words=100;delay_ms=0").await;
    finished(&mut server, &short).await;
    let before = peak_kib(&server);
    for most in [4, 6] {
        let long = start(&mut server, "ok;words=200000;delay_ms=0").await;
        // Another process waits: a poll that is parked here may read the report while the worker still has it.
        assert_eq!(world.run(&["jobs", "wait", &long]).await.code, Some(0));
        let answer = finished(&mut server, &long).await;
        let size = answer["response"].as_str().unwrap().len() as u64 / 1024;
        let grown = peak_kib(&server) - before;
        assert!(grown < most * size, "{grown} KiB more with reports of {size} KiB");
    }
}
