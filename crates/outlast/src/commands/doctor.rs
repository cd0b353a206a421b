//! `outlast doctor`: checks that everything a server needs is there. Changes nothing.

mod check;
mod local;
mod oauth;
mod provider;
mod researcher;
mod store;

use std::process::ExitCode;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use crate::cli::{DoctorArgs, Global};
use crate::config::{Flags, Places, ShownConfig};
use crate::error::CommandResult;
use crate::ui;
use check::{Check, Verdict, run_bounded};

/// A check and its name.
type NamedCheck = (&'static str, Check);

pub(super) async fn run(global: &Global, args: DoctorArgs) -> CommandResult {
    if let Some(dir) = &args.try_locks {
        return Ok(store::try_locks(dir));
    }
    let begun = Instant::now();
    let flags = super::flags_of(global, &[])?;
    let (checks, servers) = checks(flags).await;
    let failed = checks.iter().any(|(_, check)| check.verdict == Verdict::Fail);
    if args.json {
        let listed: Vec<_> = checks.iter().map(|(name, check)| check.json(name)).collect();
        let elapsed = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let version = env!("CARGO_PKG_VERSION");
        let report = json!({
            "ok": !failed, "version": version, "elapsed_ms": elapsed, "checks": listed,
            "servers": servers,
        });
        ui::json(&report);
    } else {
        for (name, check) in &checks {
            ui::print_finding(check.verdict, name, &check.line, check.fix.as_deref());
        }
        ui::remark(&summary(&checks, begun.elapsed()));
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Runs all checks concurrently, each of which ends by itself or is ended; also returns the servers of the clients that
/// were found.
async fn checks(flags: Flags) -> (Vec<NamedCheck>, Vec<Value>) {
    let showing = ShownConfig::read(flags);
    let places = Places::read();
    let configuration = local::configuration(&showing, places.as_ref());
    let config = showing.ok().and_then(|showing| showing.config.ok());
    let found = Arc::new(OnceLock::new());
    let (
        [store, worker],
        [locks],
        (providers, clock),
        researcher,
        issuer,
        [ports],
        [clients, wrapped],
    ) = tokio::join!(
        run_bounded(store::inspect(config.as_ref())),
        run_bounded(store::locks(config.as_ref())),
        provider::providers_and_clock(config.as_ref()),
        researcher::checks(config.as_ref()),
        oauth::issuer(config.as_ref()),
        run_bounded(local::ports),
        run_bounded({
            let found = Arc::clone(&found);
            move || {
                let servers = local::servers(places.as_ref());
                let checks = [local::clients(places.as_ref()), [local::check_wrapped(&servers)]];
                let _ = found.set(servers);
                checks.map(|[check]| check)
            }
        }),
    );
    let servers = found.get().into_iter().flatten().flat_map(|(client, servers)| {
        let client = client.id();
        servers.iter().map(move |server| {
            let wrapped = server.wrapped_by.is_some();
            json!({ "client": client, "server": server.name, "wrapped": wrapped })
        })
    });
    let servers = servers.collect();
    let [pdftotext, pandoc] = provider::converters(config.as_ref());
    let data =
        config.as_ref().map_or_else(Check::skip_unconfigured, |it| local::data_dir(&it.data_dir));
    let tools =
        config.as_ref().map_or_else(Check::skip_unconfigured, |it| local::tools(&it.data_dir));
    let mut all = vec![("configuration", configuration), ("data", data), ("store", store)];
    all.extend(store::owner(config.as_ref()).map(|owner| ("owner", owner)));
    all.extend([("sqlite", local::sqlite()), ("locks", locks)]);
    all.extend(providers.into_iter().map(|provider| ("provider", provider)));
    all.extend(researcher);
    all.extend([("clock", clock), ("pdftotext", pdftotext), ("pandoc", pandoc)]);
    all.extend([("citations", provider::citations(config.as_ref())), ("ports", ports)]);
    all.extend(issuer.map(|issuer| ("oauth", issuer)));
    all.extend([("clients", clients), ("servers", wrapped), ("tools", tools), ("worker", worker)]);
    (all, servers)
}

fn summary(checks: &[NamedCheck], elapsed: Duration) -> String {
    let count = |verdict| checks.iter().filter(|(_, check)| check.verdict == verdict).count();
    let said = match (count(Verdict::Fail), count(Verdict::Warn)) {
        (0, 0) => "All is well".to_owned(),
        (0, 1) => "Ready, with one warning".to_owned(),
        (0, warnings) => format!("Ready, with {warnings} warnings"),
        (1, _) => "One thing must be fixed".to_owned(),
        (failures, _) => format!("{failures} things must be fixed"),
    };
    format!("\n{said}. ({} checks in {})", checks.len(), ui::ago(elapsed))
}
