//! `outlast store copy`: copies every job of one store to another.

use std::path::Path;

use outlast_core::StoreError;
use outlast_store::{CopyCounts, CopyError, CopyPass, CopyRefusal, SqliteFile, StorePlace};
use serde_json::json;

use super::restore::IN_USE;
use crate::cli::CopyArgs;
use crate::config::{Config, Secret, StoreUrl};
use crate::error::{CommandError, CommandResult, DONE, OrUsage as _, refuse};
use crate::open_store::store_hint;
use crate::ui;

const ALLOWED: &str = "sqlite:FILE, postgres://USER@HOST/DATABASE, or `-` for the configured store";

pub(super) async fn run(config: &Config, args: &CopyArgs) -> CommandResult {
    let (from, to) = (parse(config, "FROM", &args.from)?, parse(config, "TO", &args.to)?);
    if from == to {
        return refuse("FROM and TO are the same store", "name another TO");
    }
    let mut bar = ui::Bars::one();
    let mut show = |pass, done: u64, total: u64| {
        let percent = (done * 100).checked_div(total);
        let words = match pass {
            CopyPass::Copying => "copied",
            CopyPass::Comparing => "compared",
        };
        bar.show(0, percent, &format!("{done} of {total} jobs {words}"));
    };
    let state_dir = config.state_dir.as_deref();
    let (source, target) = (place(&from, state_dir)?, place(&to, state_dir)?);
    let copied = outlast_store::copy(source, target, &mut show).await;
    drop(bar);
    let copied = copied.map_err(|error| not_copied(error, &from, &to))?;
    match args.json {
        true => ui::json(&json!({
            "from": from.to_string(),
            "to": to.to_string(),
            "jobs": copied.jobs,
            "written": copied.written,
            "unfinished": copied.unfinished,
        })),
        false => ui::line(&format!("{} jobs", copied.jobs)),
    }
    tell(copied, &from, &to);
    DONE
}

fn parse(config: &Config, name: &str, Secret(text): &Secret) -> CommandResult<StoreUrl> {
    if text == "-" {
        return Ok(config.store.clone());
    }
    // Not shown: it may be a mistyped address with a password.
    let parsed = StoreUrl::parse(text, &config.connection_defaults);
    let parsed = parsed.map_err(|why| anyhow::anyhow!("{name} names no store: {why}"));
    parsed.or_usage(format!("give {ALLOWED}"))
}

fn place<'a>(url: &'a StoreUrl, state_dir: Option<&'a Path>) -> CommandResult<StorePlace<'a>> {
    match url {
        StoreUrl::Sqlite(path) => Ok(StorePlace::Sqlite(SqliteFile { path, state_dir })),
        StoreUrl::Postgres(Secret(address)) => Ok(StorePlace::Postgres(address)),
        StoreUrl::Memory => refuse("a memory store cannot be copied", format!("give {ALLOWED}")),
    }
}

fn tell(copied: CopyCounts, from: &StoreUrl, to: &StoreUrl) {
    let CopyCounts { jobs, written, unfinished } = copied;
    ui::mark(ui::LineMark::Good, &format!("copied: {to}"));
    ui::remark(&format!(
        "  {jobs} in both stores, read from both and found equal; {written} written now"
    ));
    if unfinished > 0 {
        ui::remark(&format!(
            "  warning: {unfinished} unfinished: serve only one of the two stores from now on, or both would run and pay for them"
        ));
        ui::remark(&format!(
            "  take {from} away from every server and worker before you serve {to}"
        ));
    }
}

fn not_copied(error: CopyError, from: &StoreUrl, to: &StoreUrl) -> CommandError {
    let (context, hint) = match &error {
        CopyError::From(refusal) => (format!("copy {from}"), hint(refusal, from)),
        CopyError::To(refusal) => (format!("copy to {to}"), hint(refusal, to)),
        CopyError::Differs { .. } => (
            format!("copy {from} to {to}"),
            "run `outlast store check` on the source, and the copy again",
        ),
    };
    let is_usage = matches!(
        error,
        CopyError::To(CopyRefusal::NotEmpty { .. })
            | CopyError::From(CopyRefusal::Missing | CopyRefusal::OldSchema { .. })
            | CopyError::To(CopyRefusal::OldSchema { .. })
    );
    let error = match error {
        CopyError::From(refusal) | CopyError::To(refusal) => anyhow::Error::new(refusal),
        differs @ CopyError::Differs { .. } => anyhow::Error::new(differs),
    };
    let error = error.context(context);
    CommandError::from(error).hint(hint).usage_if(is_usage)
}

fn hint(refusal: &CopyRefusal, url: &StoreUrl) -> &'static str {
    match refusal {
        CopyRefusal::InUse => IN_USE,
        CopyRefusal::Missing => {
            "check its address; `outlast config show` says where the configured one is"
        }
        CopyRefusal::OldSchema { .. } => "run `outlast store migrate --store ADDRESS` first",
        CopyRefusal::NotEmpty { .. } => {
            "name an empty store, or one that holds a part of this very copy"
        }
        CopyRefusal::Store(StoreError::Corrupt { .. }) => {
            "`outlast store check --store ADDRESS` says what is damaged"
        }
        CopyRefusal::Store(error) => store_hint(error, url),
    }
}
