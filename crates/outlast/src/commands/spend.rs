//! `outlast spend`: the ledger, for people and for scripts (G6).

use outlast_core::{Day, NanoUsd, Scope, SpendBy, SpendQuery, SpendSum};
use outlast_engine::Providers;
use serde_json::{Value, json};

use super::engine::with_engine;
use crate::cli::{Global, SpendArgs};
use crate::error::{CommandResult, DONE};
use crate::open_store::OpenStore;
use crate::ui::{self, Cell};

/// The number of days that are shown if none is named.
const DAYS: i64 = 30;

pub(super) async fn run(global: &Global, args: SpendArgs) -> CommandResult {
    let config = super::load_config(global, &[])?;
    let store = OpenStore::to_read(&config).await?;
    with_engine(global, &config, store, Providers::new(), async |session| {
        let until = session.engine.now().day();
        let since = args.since.unwrap_or(Day(until.0 - (DAYS - 1)));
        let by = args.by;
        let scope = match by {
            SpendBy::Owner => Scope::Operator,
            SpendBy::Day | SpendBy::Provider | SpendBy::Model => session.own(),
        };
        let sums = session.engine.spend(&scope, &SpendQuery { by, since }).await?;
        match args.json {
            true => ui::json(&shape(&sums, since, until)),
            false => table(&sums, by, since, until),
        }
        DONE
    })
    .await
}

fn total(sums: &[SpendSum]) -> SpendSum {
    sums.iter().fold(SpendSum { key: "total".to_owned(), ..SpendSum::default() }, |all, sum| {
        SpendSum {
            spent: [all.spent, sum.spent].into_iter().sum(),
            reserved: [all.reserved, sum.reserved].into_iter().sum(),
            maybe: [all.maybe, sum.maybe].into_iter().sum(),
            runs: all.runs + sum.runs,
            ..all
        }
    })
}

fn shape(sums: &[SpendSum], since: Day, until: Day) -> Value {
    let row = |sum: &SpendSum| {
        json!({
            "key": sum.key,
            "usd": sum.spent.as_usd(),
            "reserved_usd": sum.reserved.as_usd(),
            "maybe_spent_usd": sum.maybe.as_usd(),
            "runs": sum.runs
        })
    };
    let total = total(sums);
    json!({
        "since": since.to_string(),
        "until": until.to_string(),
        "total_usd": total.spent.as_usd(),
        "reserved_usd": total.reserved.as_usd(),
        "maybe_spent_usd": total.maybe.as_usd(),
        "rows": sums.iter().map(row).collect::<Vec<_>>()
    })
}

fn table(sums: &[SpendSum], by: SpendBy, since: Day, until: Day) {
    if sums.is_empty() {
        return ui::remark(&format!("Nothing was spent from {since} to {until}."));
    }
    let head = match by {
        SpendBy::Day => "DAY (UTC)",
        SpendBy::Provider => "PROVIDER",
        SpendBy::Model => "MODEL",
        SpendBy::Owner => "OWNER",
    };
    let row = |sum: &SpendSum| {
        let money = [sum.spent, sum.reserved, sum.maybe].map(|money| money.to_string());
        let figures = money.into_iter().chain([sum.runs.to_string()]);
        std::iter::once(sum.key.clone()).chain(figures).map(|text| Cell::plain(&text)).collect()
    };
    let total = total(sums);
    let rows = sums.iter().chain(std::iter::once(&total)).map(row).collect();
    ui::table(&[head, "SPENT", "RESERVED", "MAYBE SPENT", "RUNS"], rows);
    if total.reserved > NanoUsd(0) {
        ui::remark("Reserved: what unfinished jobs usually cost.");
    }
    if total.maybe > NanoUsd(0) {
        ui::remark(
            "Maybe spent: runs that failed, were lost or were cancelled, at what such runs usually cost.",
        );
    }
}
