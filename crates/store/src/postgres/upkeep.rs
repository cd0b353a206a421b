//! Inspections for operators: the state of the database, and its damage.

use std::path::Path;

use outlast_core::StoreError;

use super::connect::Target;
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
        let target = Target::parse(url)?;
        let (client, connection) = target.connect().await?;
        let driving = tokio::spawn(connection);
        let found = async {
            let mut found = look(&client).await?;
            if found.schema.is_some() {
                let database = FoundDatabase::look(&client).await?;
                found.is_identified = database.identity.system.is_some();
                found.outdated = lineage::outdated(&client, &database, state_dir).await?;
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
const QUERIES: [&str; 6] = [
    "select 'job ' || id || ' has no body' as line from jobs
     where not exists (select 1 from bodies where bodies.job = jobs.seq) limit 100",
    "select 'job ' || id || ' has no change number' as line from jobs
     where not exists (select 1 from revs where revs.job = jobs.seq) limit 100",
    "select 'job ' || id || ' is ' || state || ' and has an output' as line from jobs join bodies on bodies.job = jobs.seq
     where state <> 'succeeded' and (output is not null or text is not null) limit 100",
    "select 'owner ' || owners.owner || ' has wrong counts' as line from owners
     where bytes + (select coalesce(sum(room.bytes), 0) from room where room.owner = owners.owner)
       <> (select coalesce(sum(jobs.bytes), 0) from jobs where jobs.owner = owners.owner) limit 100",
    "select 'run ' || run || ' of job ' || job || ' is reserved, and the job is not unfinished' as line from ledger
     where state = 'reserved' and not exists (select 1 from jobs where id = job and ended_at is null) limit 100",
    "select 'the sums of owner ' || owner || ' on day ' || day || ' are not those of the ledger' as line from (
       select * from ledger_days union all select * from ledger_changes union all
       select owner, day, provider, model is not null, coalesce(model, ''), state, -1, -(counted / 1000000000), -(counted % 1000000000)
       from (select *, case state when 'spent' then amount else coalesce(reserved, 0) end as counted
             from ledger where state <> 'released') as counted) as days
     group by owner, day, provider, has_model, model, state
     having sum(runs) <> 0 or sum(dollars) <> 0 or sum(rest) <> 0 limit 100",
];

fn of_row(row: &tokio_postgres::Row) -> Result<Vec<String>, StoreError> {
    match rows::stored(row) {
        Ok(stored) => {
            let times = [row.maybe_time("expires_at")?, row.maybe_time("removable_at")?];
            Ok(problems::of_job(&stored.record, stored.key.as_ref(), times))
        }
        Err(Fault::Refused(StoreError::Corrupt { at })) => Ok(vec![at]),
        Err(other) => Err(other.into()),
    }
}

pub(super) async fn look(client: &tokio_postgres::Client) -> Result<DatabaseInspection, Fault> {
    const SERVER: &str = "select current_setting('server_version') as server, pg_is_in_recovery() as is_standby,
           coalesce(has_schema_privilege(current_schema(), 'create'), false) as may_create,
           (select count(*) from pg_stat_activity where backend_type = 'client backend') as connections,
           current_setting('max_connections')::bigint as allowed";
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
        let jobs = "select (select count(*) from jobs where ended_at is null) as unfinished,
               (select count(*) from workers where seen > (extract(epoch from clock_timestamp()) * 1000)::bigint - 30000
                  or exists (select 1 from pg_locks where locktype = 'advisory' and objsubid = 1 and granted
                    and mode = 'ExclusiveLock'
                    and ((classid::bigint << 32) | objid::bigint) = (lock_class('workers') | workers.nr))) as live_workers";
        let row = client.query_one(jobs, &[]).await?;
        found.unfinished = row.count("unfinished")?;
        found.live_workers = row.small("live_workers")?;
    }
    Ok(found)
}
