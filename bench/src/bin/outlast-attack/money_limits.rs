//! Money limits under attack: caps above a limit, a clock that is far ahead, and a data directory that is rolled back.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::target::{START, Target, start};
use crate::{Setting, Verdict};

/// Starts sessions at a vendor that caps them, under a limit for a job and one for the day.
pub(crate) async fn caps(setting: Setting) -> Verdict {
    let mut target = Target::new(&setting).await;
    let url = target.simulator.url().to_owned();
    target.set("OUTLAST_PROVIDERS", "anthropic");
    target.set("ANTHROPIC_API_KEY", "sk-ant-attack");
    target.set("ANTHROPIC_BASE_URL", &url);
    target.set("OUTLAST_TOOLS", "research-jobs");
    target.set("OUTLAST_MAX_USD_PER_JOB", "1.20");
    target.set("OUTLAST_MAX_USD_PER_DAY", "5");
    let mut server = target.serve(&[]).await;
    let mut started = 0;
    for number in 0..8 {
        let scenario = "ok;words=60;delay_ms=0;hold";
        let answer = server.call(START, start(number, scenario)).await;
        started += usize::from(answer["isError"] != true);
    }
    let mut caps = Vec::new();
    for _ in 0..450 {
        caps = sessions(&target);
        if caps.len() >= started {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let (highest, all) = (caps.iter().max().copied().unwrap_or(0), caps.iter().sum::<u64>());
    if started == 0 || caps.len() < started {
        return Err(format!("{} of {started} sessions were created", caps.len()));
    }
    if highest > 120 {
        return Err(format!("a session may cost {highest} cents, and the limit is 120"));
    }
    if all > 500 {
        return Err(format!("the sessions of a day may cost {all} cents, and the limit is 500"));
    }
    Ok(format!("{} sessions of at most {highest} cents, {all} in all", caps.len()))
}

/// Returns the caps of the sessions that were created, in cents.
fn sessions(target: &Target) -> Vec<u64> {
    let requests = target.simulator.requests();
    let created = requests.iter().filter(|seen| {
        seen.method == "POST" && seen.path.split('?').next() == Some("/v1/sessions")
    });
    let amount = |body: &Value| body["budget"]["max_list_cost"]["amount"].as_str()?.parse().ok();
    created.filter_map(|seen| amount(&seen.body)).collect()
}

/// Starts the program with a clock that is 401 days ahead, several times within that day.
pub(crate) async fn clock(setting: Setting) -> Verdict {
    let target = Target::new(&setting).await;
    let mut server = target.serve(&[]).await;
    server.structured(START, start(0, "cost;total=0.5|ok;words=60;delay_ms=0")).await;
    target.all_become("succeeded").await?;
    server.close_input();
    server.ended().await;
    let before = spent(&target).await?;
    let shift = target.folder.path().join("shift");
    fs::write(&shift, (401_u64 * 86_400_000).to_string()).unwrap();
    for number in 1..=3 {
        let mut ahead = target.serve(&["--clock-file", shift.to_str().unwrap()]).await;
        ahead.structured(START, start(number, "ok;words=60;delay_ms=0")).await;
        target.all_become("succeeded").await?;
        ahead.close_input();
        ahead.ended().await;
    }
    let after = spent(&target).await?;
    match after >= before && before > 0.0 {
        true => Ok(format!("${before} before, ${after} after three starts 401 days ahead")),
        false => Err(format!("the ledger had ${before}, and has ${after} after a wrong clock")),
    }
}

async fn spent(target: &Target) -> Result<f64, String> {
    let (_, printed, said) = target.run(&["spend", "--json"]).await;
    let found: Value = serde_json::from_str(&printed).map_err(|_| said)?;
    found["total_usd"].as_f64().ok_or_else(|| format!("no total: {found}"))
}

/// Rolls the whole data directory back to a snapshot after its jobs were paid for.
pub(crate) async fn roll_back(setting: Setting) -> Verdict {
    let target = Target::new(&setting).await;
    let jobs: u64 = 6;
    let mut server = target.serve(&["--no-worker"]).await;
    for number in 0..jobs {
        let number = usize::try_from(number).unwrap();
        server.structured(START, start(number, "ok;words=60;delay_ms=0")).await;
    }
    server.close_input();
    server.ended().await;
    let data = target.folder.path().join("data");
    let snapshot = target.folder.path().join("snapshot");
    copy_folder(&data, &snapshot);
    let (code, _, said) = target.run(&["worker", "--until-idle"]).await;
    if code != Some(0) {
        return Err(format!("the worker fails: {said}"));
    }
    target.paid(jobs)?;
    fs::remove_dir_all(&data).unwrap();
    copy_folder(&snapshot, &data);
    let (code, _, said) = target.run(&["worker", "--until-idle"]).await;
    target.paid(jobs).map_err(|how| format!("after a roll-back: {how}"))?;
    if code == Some(0) || !said.contains("restore") {
        return Err(format!("a directory that was rolled back is used: {code:?} {said}"));
    }
    Ok(format!("{jobs} submits, and the rolled-back directory is refused"))
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let (kind, target) = (entry.file_type().unwrap(), to.join(entry.file_name()));
        if kind.is_dir() {
            copy_folder(&entry.path(), &target);
        } else if kind.is_file() {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
