//! Held calls whose upstream answers at once: the overhead of a call, for one caller and for many. Several programs are
//! measured in turns, so that other load on the machine affects all of them.

use std::path::PathBuf;
use std::time::Duration;

use outlast_testkit::mcp_process::McpProcess;
use serde_json::json;
use tempfile::TempDir;
use tokio::time::Instant;

use crate::figures::Figures;
use crate::server::{World, cpu_seconds};

/// The number of calls of one program before the next one's turn.
const TURN: usize = 100;
/// The numbers of concurrent calls.
const CALLERS: [usize; 2] = [1, 32];

struct Measured {
    program: PathBuf,
    server: McpProcess,
    calls: Figures,
    /// The total time of all turns, and their processor time.
    span: Duration,
    cpu: f64,
    _folder: TempDir,
}

/// Makes this number of calls of each of these programs.
pub(crate) async fn measure(world: &World, programs: Vec<PathBuf>, calls: usize) {
    for callers in CALLERS {
        let mut measured = Vec::new();
        for program in &programs {
            let folder = tempfile::tempdir().unwrap();
            let its_own = [("OUTLAST_DATA_DIR", folder.path().to_str().unwrap())];
            let mut server =
                world.serve_program(program, &["--tools", "perplexity"], &its_own).await;
            take_turn(&mut server, callers, TURN, &mut Figures::default()).await;
            let program = program.clone();
            let (calls, span) = (Figures::default(), Duration::ZERO);
            measured.push(Measured { program, server, calls, span, cpu: 0.0, _folder: folder });
        }
        for _ in 0..calls.div_ceil(TURN) {
            for it in &mut measured {
                let (since, before) = (Instant::now(), cpu_seconds(it.server.pid()));
                take_turn(&mut it.server, callers, TURN, &mut it.calls).await;
                it.span += since.elapsed();
                it.cpu += cpu_seconds(it.server.pid()) - before;
            }
        }
        for Measured { program, server, calls, span, cpu, _folder } in measured {
            let made = calls.count() as f64;
            println!(
                "{callers:>2} callers, {}: {:.0} calls/s, {:.2} ms of the processor for each",
                program.display(),
                made / span.as_secs_f64(),
                cpu * 1e3 / made
            );
            calls.print("");
            crate::leave(server).await;
        }
    }
}

/// Makes `calls` calls, `callers` at a time; no two ask the same question.
async fn take_turn(server: &mut McpProcess, callers: usize, calls: usize, figures: &mut Figures) {
    let mut under_way = std::collections::HashMap::new();
    let mut sent = 0;
    while sent < calls || !under_way.is_empty() {
        while sent < calls && under_way.len() < callers {
            let asked = format!("Why {}? [[sim:ok;words=4000;delay_ms=0]]", fastrand::u64(..));
            let arguments = json!({ "messages": [{ "role": "user", "content": asked }] });
            let call = json!({ "name": "perplexity_ask", "arguments": arguments });
            let began = Instant::now();
            under_way.insert(server.send("tools/call", call).await, began);
            sent += 1;
        }
        let answer = server.message().await.unwrap();
        server.seen.clear();
        assert_ne!(answer["result"]["isError"], true, "{answer}");
        if let Some(began) = answer["id"].as_u64().and_then(|id| under_way.remove(&id)) {
            figures.add(began.elapsed());
        }
    }
}
