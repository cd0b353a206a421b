//! The tables: made at the first open, brought up to date by later versions, one process at a time.

use outlast_core::StoreError;
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;
use uuid::Uuid;

use super::fault::Fault;
use crate::unavailable;

/// What brings the tables from one version to the next.
const MIGRATIONS: [&str; 8] = [
    include_str!("migrations/1.sql"),
    include_str!("migrations/2.sql"),
    include_str!("migrations/3.sql"),
    include_str!("migrations/4.sql"),
    include_str!("migrations/5.sql"),
    include_str!("migrations/6.sql"),
    include_str!("migrations/7.sql"),
    include_str!("migrations/8.sql"),
];

/// Makes sure that the tables are those of this version.
pub(super) async fn prepare(client: &mut Client) -> Result<(), Fault> {
    let newest = i32::try_from(MIGRATIONS.len()).unwrap_or(i32::MAX);
    if found(client).await? == Some(newest) {
        return Ok(());
    }
    let tx = client.transaction().await?;
    // One lock for the whole database: there is no table yet that could give it a number.
    tx.batch_execute("select pg_advisory_xact_lock(7308895140523108449)").await?;
    let present = found(tx.client()).await?;
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

/// Whose user may not make or change tables is told who may: that server's database is prepared by `outlast store migrate`.
fn may_not(error: tokio_postgres::Error, present: Option<i32>, newest: i32) -> Fault {
    // Also where the user does not see the schema: there is none then to make tables in.
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

/// The name the store was given when it was made.
pub(super) async fn store_id(client: &Client) -> Result<String, Fault> {
    Ok(client.query_one("select store::text from meta", &[]).await?.try_get(0)?)
}

/// The version of the tables, and the newest one that is known here. `None` where there are no tables.
pub(super) async fn version(client: &Client) -> Result<(Option<u32>, u32), Fault> {
    let version = found(client).await?;
    let newest = u32::try_from(MIGRATIONS.len()).unwrap_or(u32::MAX);
    Ok((version.map(|version| u32::try_from(version).unwrap_or(u32::MAX)), newest))
}

async fn found(client: &Client) -> Result<Option<i32>, Fault> {
    let there: bool =
        client.query_one("select to_regclass('meta') is not null", &[]).await?.try_get(0)?;
    if !there {
        return Ok(None);
    }
    let row = client.query_opt("select schema from meta", &[]).await?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}
