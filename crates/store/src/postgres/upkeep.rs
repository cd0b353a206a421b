//! Inspections for operators: the state of the database, and its damage.

use std::path::Path;

use outlast_core::StoreError;

use super::connect::DatabaseTarget;
use super::fault::Fault;
use super::lineage::{self, FoundDatabase};
use super::rows::{self, get};
use super::{PostgresStore, schema};
use crate::columns::Columns as _;
use crate::problems;

/// The number of jobs read at a time.
const BATCH: i64 = 200;

/// The result of an inspection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DatabaseInspection {
    /// The version of the server.
    pub server: String,
    /// The schema version of the tables; `None` if there are none yet.
    pub schema: Option<u32>,
    /// The schema version that this program writes.
    pub newest_schema: u32,
    /// True if the user may create tables.
    pub may_create: bool,
    /// True if the server is a standby, which is read-only.
    pub is_standby: bool,
    /// The number of connections to the server, and its limit.
    pub connections: (u32, u32),
    /// The reason why the store is an older copy of itself, if it is.
    pub outdated: Option<String>,
    /// True if the server reveals its identity, so that a dump restored to another server is detected.
    pub is_identified: bool,
    /// Jobs that have not ended.
    pub unfinished: u64,
    /// Workers that hold their lock, or that have sent a heartbeat recently.
    pub live_workers: u32,
}

impl PostgresStore {
    /// Inspects a database without changing anything.
    pub async fn inspect(
        url: &str,
        state_dir: Option<&Path>,
    ) -> Result<DatabaseInspection, StoreError> {
        let target = DatabaseTarget::parse(url)?;
        let (client, connection) = target.connect().await?;
        let driving = tokio::spawn(connection);
        let found = async {
            let mut found = look(&client).await?;
            if found.schema.is_some() {
                let database = FoundDatabase::look(&client).await?;
                found.is_identified = database.identity.system.is_some();
                found.outdated = lineage::explain_outdated(&client, &database, state_dir).await?;
            }
            Ok::<_, Fault>(found)
        };
        let found = found.await;
        driving.abort();
        Ok(found?)
    }

    /// Checks for damage. Returns one line for each problem.
    pub async fn check(&self) -> Result<Vec<String>, StoreError> {
        let mut found = Vec::new();
        for query in QUERIES {
            for row in self.shared.read_all(query, &[]).await? {
                found.push(row.text("line").map_err(StoreError::from)?);
            }
        }
        let select = format!("{} where jobs.seq > $1 order by jobs.seq limit {BATCH}", rows::WHOLE);
        let mut after = 0_i64;
        loop {
            let batch = self.shared.read_all(&select, &[&after]).await?;
            let Some(last) = batch.last() else { break };
            after = get(last, "seq")?;
            for row in &batch {
                found.extend(of_row(row)?);
            }
            if found.len() >= problems::MAX_PROBLEMS {
                break;
            }
        }
        found.truncate(problems::MAX_PROBLEMS);
        Ok(found)
    }
}

/// Checks of rows by queries. Each query selects one line for every problem.
const QUERIES: [&str; 8] = [
    sql!(postgres::upkeep::missing_body),
    sql!(postgres::upkeep::missing_rev),
    sql!(postgres::upkeep::early_output),
    sql!(postgres::upkeep::owner_bytes),
    sql!(postgres::upkeep::reserved_run),
    sql!(postgres::upkeep::day_sums),
    sql!(postgres::upkeep::step_outputs),
    sql!(postgres::upkeep::unread_page),
];

fn of_row(row: &tokio_postgres::Row) -> Result<Vec<String>, StoreError> {
    match rows::read_stored(row) {
        Ok(stored) => {
            let times = [row.maybe_time("expires_at")?, row.maybe_time("removable_at")?];
            Ok(problems::of_job(&stored.record, stored.key.as_ref(), times))
        }
        Err(Fault::Refused(StoreError::Corrupt { at })) => Ok(vec![at]),
        Err(other) => Err(other.into()),
    }
}

pub(super) async fn look(client: &tokio_postgres::Client) -> Result<DatabaseInspection, Fault> {
    const SERVER: &str = sql!(postgres::upkeep::server);
    let server = client.query_one(SERVER, &[]).await?;
    let (schema, newest_schema) = schema::version(client).await?;
    let mut found = DatabaseInspection {
        server: get(&server, "server")?,
        schema,
        newest_schema,
        may_create: get(&server, "may_create")?,
        is_standby: get(&server, "is_standby")?,
        connections: (server.small("connections")?, server.small("allowed")?),
        outdated: None,
        is_identified: true,
        unfinished: 0,
        live_workers: 0,
    };
    if schema == Some(newest_schema) {
        let jobs = sql!(postgres::upkeep::look);
        let row = client.query_one(jobs, &[]).await?;
        found.unfinished = row.count("unfinished")?;
        found.live_workers = row.small("live_workers")?;
    }
    Ok(found)
}
