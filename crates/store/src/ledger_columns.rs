//! Converts between ledger rows and the columns of a database.

use outlast_core::{
    ChargeState, Cost, Day, LedgerRow, NanoUsd, OwnerId, SpendBy, SpendSum, StoreError,
};

use crate::columns::{Columns, job_id, report_damage};

/// The amount that a row counts for: `LedgerRow::counts`.
pub(crate) const COUNTED: &str =
    "CASE state WHEN 'spent' THEN amount WHEN 'released' THEN 0 ELSE coalesce(reserved, 0) END";

/// The sum of the amounts that rows count for, at most `NanoUsd::MAX_SUM`. `filter` is empty or an aggregate's FILTER clause.
pub(crate) fn sum_counted(filter: &str) -> String {
    sum_bounded(&format!("({COUNTED}) / 1000000000"), &format!("({COUNTED}) % 1000000000"), filter)
}

/// Sums amounts that are split into dollars and billionths. A plain sum of billionths could overflow, which is an error in
/// SQLite.
fn sum_bounded(dollars: &str, rest: &str, filter: &str) -> String {
    let whole = format!("coalesce(sum({dollars}) {filter}, 0)");
    let rest = format!("coalesce(sum({rest}) {filter}, 0)");
    format!(
        "CAST(CASE WHEN {whole} + {rest} / 1000000000 >= 9223372036 THEN 9223372036854775807
           ELSE {whole} * 1000000000 + {rest} END AS BIGINT)"
    )
}

/// The columns of a list for the model and the cost of the job in the row.
pub(crate) fn charge_columns() -> String {
    let counted = sum_counted("");
    format!(
        "(SELECT model FROM ledger WHERE job = jobs.id ORDER BY run DESC LIMIT 1) AS model,
         (SELECT CASE count(*) WHEN 0 THEN NULL ELSE {counted} END FROM ledger
          WHERE job = jobs.id AND state <> 'released') AS charged,
         (SELECT count(*) FROM ledger WHERE job = jobs.id AND state IN ('reserved', 'maybe')) AS open_charges"
    )
}

/// Sums the days in `ledger_days` that match a condition: of one owner or all owners, from a given day on. Each table has a
/// part of every day.
pub(crate) fn sums(by: SpendBy, condition: &str, tables: &[&str]) -> String {
    let key = match by {
        SpendBy::Day => "CAST(day AS TEXT)",
        SpendBy::Provider => "provider",
        SpendBy::Model => "CASE WHEN has_model THEN model END",
        SpendBy::Owner => "owner",
    };
    let part = |state| sum_bounded("dollars", "rest", &format!("FILTER (WHERE state = '{state}')"));
    let parts: Vec<String> =
        tables.iter().map(|table| format!("SELECT * FROM {table} WHERE {condition}")).collect();
    format!(
        "SELECT {key} AS key, {} AS spent, {} AS reserved, {} AS maybe, CAST(sum(runs) AS BIGINT) AS runs
         FROM ({}) AS days GROUP BY 1 HAVING sum(runs) > 0",
        part("spent"),
        part("reserved"),
        part("maybe"),
        parts.join(" UNION ALL "),
    )
}

/// Sorts sums by their keys.
pub(crate) fn in_order(mut sums: Vec<SpendSum>) -> Vec<SpendSum> {
    sums.sort_by(|one, other| one.key.cmp(&other.key));
    sums
}

/// A ledger row, or a row of its sums.
pub(crate) trait LedgerColumns: Columns {
    fn nanos(&self, column: &str) -> Result<Option<NanoUsd>, Self::Fault> {
        Ok(self.maybe_number(column)?.map(|nanos| NanoUsd(nanos.unsigned_abs())))
    }

    fn spend_sum(&self, by: SpendBy) -> Result<SpendSum, Self::Fault> {
        let key = self.maybe_text("key")?;
        let amount = |column| Ok::<_, Self::Fault>(NanoUsd(self.count(column)?));
        Ok(SpendSum {
            key: match (by, key) {
                (SpendBy::Day, Some(day)) => {
                    let day = day.parse().map_err(|_| StoreError::Corrupt {
                        at: format!("day {day} of the ledger"),
                    })?;
                    Day(day).to_string()
                }
                (_, Some(key)) => key,
                (_, None) => SpendSum::UNKNOWN_MODEL.to_owned(),
            },
            spent: amount("spent")?,
            reserved: amount("reserved")?,
            maybe: amount("maybe")?,
            runs: self.count("runs")?,
        })
    }

    fn ledger_row(&self) -> Result<LedgerRow, Self::Fault> {
        let job = self.text("job")?;
        let (kind, amount) = (self.text("kind")?, self.nanos("amount")?);
        let cost = match (kind.as_str(), amount) {
            ("reported", Some(amount)) => Cost::Reported(amount),
            ("computed", Some(amount)) => Cost::Computed(amount),
            ("estimate", Some(amount)) => Cost::Estimate(amount),
            ("unknown", None) => Cost::Unknown,
            _ => return Err(report_damage(&job, "amount").into()),
        };
        let state = ChargeState::parse(&self.text("state")?);
        Ok(LedgerRow {
            run: self.small("run")?,
            owner: OwnerId::new(self.text("owner")?),
            provider: self.text("provider")?,
            model: self.maybe_text("model")?,
            at: self.time("at")?,
            reserved: self.nanos("reserved")?,
            cost,
            state: state.ok_or_else(|| report_damage(&job, "state"))?,
            remote: self.maybe_text("remote")?,
            run_id: self.maybe_text("run_id")?,
            job: job_id(&job)?,
        })
    }
}

impl<T: Columns> LedgerColumns for T {}
