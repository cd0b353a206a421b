//! The tables: created at the first open and updated by later versions, one process at a time.

use std::path::Path;

use outlast_core::StoreError;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use super::fault::Fault;
use super::lineage::{self, FoundDatabase};
use crate::unavailable;

/// Each migration updates the tables by one version.
const MIGRATIONS: [&str; 13] = [
    include_str!("migrations/1.sql"),
    include_str!("migrations/2.sql"),
    include_str!("migrations/3.sql"),
    include_str!("migrations/4.sql"),
    include_str!("migrations/5.sql"),
    include_str!("migrations/6.sql"),
    include_str!("migrations/7.sql"),
    include_str!("migrations/8.sql"),
    include_str!("migrations/9.sql"),
    include_str!("migrations/10.sql"),
    include_str!("migrations/11.sql"),
    include_str!("migrations/12.sql"),
    include_str!("migrations/13.sql"),
];

/// Ensures that the tables are those of this version. Does not change those of an older copy of the store.
pub(super) async fn prepare(client: &mut Client, state_dir: Option<&Path>) -> Result<(), Fault> {
    let (present, newest) = version(client).await?;
    // Tables of this version are verified when they are opened.
    if present.is_some_and(|present| present < newest) {
        let found = FoundDatabase::look(client).await?;
        if found.is_standby {
            return Err(unavailable(lineage::STANDBY).into());
        }
        if let Some(why) = lineage::explain_outdated(client, &found, state_dir).await? {
            return Err(StoreError::Outdated { why }.into());
        }
    }
    migrate(client).await
}

/// Creates or updates the tables.
pub(super) async fn migrate(client: &mut Client) -> Result<(), Fault> {
    let newest = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
    refuse_other_encodings(client).await?;
    if find_version(client).await? == Some(newest) {
        return Ok(());
    }
    let tx = client.transaction().await?;
    // One lock for the whole database, because there is no table yet that could give the lock a number. The wait lasts as
    // long as another process migrates.
    tx.batch_execute(
        "set local lock_timeout = 0; select pg_advisory_xact_lock(7308895140523108449)",
    )
    .await?;
    let present = find_version(tx.client()).await?;
    let from = usize::try_from(present.unwrap_or(0)).unwrap_or(0);
    if from > MIGRATIONS.len() {
        return Err(StoreError::Newer {
            schema: u32::try_from(present.unwrap_or(0)).unwrap_or(u32::MAX),
        }
        .into());
    }
    for migration in MIGRATIONS.iter().skip(from) {
        tx.batch_execute(migration).await.map_err(|error| may_not(error, present, newest))?;
    }
    match present {
        None => {
            let store = Uuid::new_v4().to_string();
            tx.execute(
                "insert into meta (store, schema) values ($1::text::uuid, $2)",
                &[&store, &newest],
            )
            .await?;
        }
        Some(_) => {
            tx.execute("update meta set schema = $1", &[&newest]).await?;
        }
    }
    tx.commit().await?;
    Ok(())
}

/// Adds a hint to the error of a user who may not create or change tables: `outlast store migrate` prepares the database.
fn may_not(error: tokio_postgres::Error, present: Option<i32>, newest: i32) -> Fault {
    // This also covers a user who does not see the schema: then there is no schema in which to create tables.
    let refusals = [SqlState::INSUFFICIENT_PRIVILEGE, SqlState::INVALID_SCHEMA_NAME];
    if !error.code().is_some_and(|code| refusals.contains(code)) {
        return error.into();
    }
    let found = match present {
        None => "it has no tables yet".to_owned(),
        Some(schema) => format!("its tables are of schema {schema}, and schema {newest} is needed"),
    };
    unavailable(format!(
        "{found}; its user may not make them: run `outlast store migrate` as one who may"
    ))
    .into()
}

/// The version of the tables, or `None` if there are none, and the newest version that this program knows.
pub(super) async fn version(client: &Client) -> Result<(Option<u32>, u32), Fault> {
    let version = find_version(client).await?;
    let newest = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    Ok((version.map(|version| u32::try_from(version).unwrap_or(u32::MAX)), newest))
}

/// Refuses a database whose encoding is not UTF-8: it would refuse questions and reports, or change their bytes.
async fn refuse_other_encodings(client: &Client) -> Result<(), Fault> {
    let row = client.query_one("select current_setting('server_encoding')", &[]).await?;
    match row.try_get(0)? {
        "UTF8" => Ok(()),
        other => Err(unavailable(format!(
            "the database's encoding is {other}, and outlast needs UTF8: create one with \
             `createdb --encoding=UTF8 --template=template0 NAME`"
        ))
        .into()),
    }
}

/// Returns the version of the tables. Reads the catalog table instead of calling `to_regclass`, which answers from a cache
/// that may be older than the lock just taken.
async fn find_version(client: &Client) -> Result<Option<i32>, Fault> {
    let look = "select exists (select from pg_class
         where relname = 'meta' and relkind = 'r' and pg_table_is_visible(oid))";
    let there: bool = client.query_one(look, &[]).await?.try_get(0)?;
    if !there {
        return Ok(None);
    }
    let row = client.query_opt("select schema from meta", &[]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}
