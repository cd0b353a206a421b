//! Runs one step of the port as one transaction in two round trips: its reads are sent together with its beginning, its
//! writes together with its commit.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::BytesMut;
use deadpool_postgres::Object;
use outlast_core::{Rev, Timestamp};
use tokio_postgres::types::{IsNull, ToSql, Type, to_sql_checked};
use tokio_postgres::{Row, Statement};

use super::fault::{Fault, within};
use super::lineage::ExpectedLineage;
use crate::{columns, unavailable};

/// A statement with its parameters.
pub(super) type Query<'a> = (&'a str, &'a [&'a (dyn ToSql + Sync)]);

/// A parameter of a statement that is sent later.
pub(super) type Param = Box<dyn ToSql + Sync + Send>;

/// A statement that is sent later, with its parameters.
type Later = (Statement, Vec<Param>);

/// Selects the time of the transaction: the given one, or the server's. Never now(), which may be earlier than a row for
/// which the transaction waited. Also selects the values that show that the tables are those that were opened: a dump may be
/// restored into them while servers run.
const NOW: &str = sql!(postgres::tx::now);

/// Assigns the number of this commit to the changed jobs.
pub(super) const CHANGED: &str = sql!(postgres::tx::changed);

/// The time limit of a rollback. The end of the connection also rolls back the transaction.
const ROLL_BACK: Duration = Duration::from_secs(1);

/// A transaction that is being built.
pub(super) struct Tx {
    client: Object,
    given: Option<i64>,
    now: Timestamp,
    begun: bool,
    writes: Vec<Later>,
    /// Rows for statements that take many rows at once.
    rows: Vec<(&'static str, Statement, Vec<Vec<Param>>)>,
    changed: Vec<i64>,
    begin: &'static str,
    /// The time limit of each statement.
    limit: Duration,
    expected: ExpectedLineage,
}

impl Tx {
    /// Creates a transaction that begins with the first [`Tx::load`]. Uses the time of `given` if it is set.
    pub(super) fn new(
        client: Object,
        given: Option<Timestamp>,
        begin: &'static str,
        limit: Duration,
        expected: ExpectedLineage,
    ) -> Self {
        Self {
            client,
            given: given.map(Timestamp::as_millis),
            now: Timestamp::from_millis(0),
            begun: false,
            writes: Vec::new(),
            rows: Vec::new(),
            changed: Vec::new(),
            begin,
            limit,
            expected,
        }
    }

    /// The time of the latest load.
    pub(super) fn now(&self) -> Timestamp {
        self.now
    }

    /// The time to pass to statements, if it is not the server's.
    pub(super) fn given_seq(&self) -> Option<i64> {
        self.given
    }

    /// Runs the queries in order, in one round trip. Each query sees the commits before its start and the earlier writes of
    /// this transaction.
    pub(super) async fn load<const N: usize>(
        &mut self,
        queries: [Query<'_>; N],
    ) -> Result<[Vec<Row>; N], Fault> {
        let now = self.prepare(NOW).await?;
        let mut statements = Vec::with_capacity(N);
        for (sql, _) in queries {
            statements.push(self.prepare(sql).await?);
        }
        let pending = self.take_pending();
        let client = &self.client;
        let begin = (!self.begun).then(|| client.batch_execute(self.begin));
        let given: [&(dyn ToSql + Sync); 1] = [&self.given];
        let mut sent: Vec<Sent<'_, Vec<Row>>> = Vec::with_capacity(pending.len() + N + 2);
        if let Some(begin) = begin {
            sent.push(Box::pin(async { begin.await.map(|()| Vec::new()) }));
        }
        sent.extend(pending.iter().map(|write| execute(client, write)));
        for (statement, (_, params)) in statements.iter().zip(queries) {
            sent.push(Box::pin(client.query(statement, params)));
        }
        sent.push(Box::pin(client.query(&now, &given)));
        self.begun = true;
        let mut answers = within(self.limit, InOrder::new(sent)).await?;
        if let Some(row) = answers.pop().and_then(|rows| rows.into_iter().next()) {
            self.now = Timestamp::from_millis(row.try_get(0)?);
            self.expected.check(row.try_get(1)?, row.try_get(2)?)?;
        }
        let queried = answers.split_off(answers.len() - N);
        let count = "as many answers as queries were expected";
        queried.try_into().map_err(|_| unavailable(count).into())
    }

    /// Adds a statement that is sent with the commit.
    pub(super) async fn write(&mut self, sql: &str, params: Vec<Param>) -> Result<(), Fault> {
        let statement = self.prepare(sql).await?;
        self.writes.push((statement, params));
        Ok(())
    }

    /// Adds a row for a statement that takes each of its columns as an array. The statement is sent once for all its rows,
    /// after the single statements.
    pub(super) async fn write_row(
        &mut self,
        sql: &'static str,
        row: Vec<Param>,
    ) -> Result<(), Fault> {
        if let Some((_, _, rows)) = self.rows.iter_mut().find(|(of, _, _)| *of == sql) {
            rows.push(row);
        } else {
            let statement = self.prepare(sql).await?;
            self.rows.push((sql, statement, vec![row]));
        }
        Ok(())
    }

    async fn prepare(&self, sql: &str) -> Result<Statement, Fault> {
        within(self.limit, self.client.prepare_cached(sql)).await
    }

    /// Takes the statements that are still to be sent.
    fn take_pending(&mut self) -> Vec<Later> {
        let mut pending = std::mem::take(&mut self.writes);
        let rows = std::mem::take(&mut self.rows).into_iter();
        pending.extend(rows.map(|(_, statement, rows)| (statement, columns_of(rows))));
        pending
    }

    /// Assigns a new change number to the job with the commit.
    pub(super) fn record_change(&mut self, seq: i64) {
        self.changed.push(seq);
    }

    /// Sends and commits the writes. Returns the change number, or zero if nothing was changed.
    pub(super) async fn commit(mut self) -> Result<Rev, Fault> {
        let writes = self.take_pending();
        if !self.begun {
            return Ok(Rev::default());
        }
        let statement = self.prepare(CHANGED).await?;
        let Self { client, changed, limit, .. } = self;
        let wake: [&(dyn ToSql + Sync); 1] = [&changed];
        let mut sent: Vec<Sent<'_, Vec<Row>>> = Vec::with_capacity(writes.len() + 1);
        sent.extend(writes.iter().map(|write| execute(&client, write)));
        if !changed.is_empty() {
            sent.push(Box::pin(client.query(&statement, &wake)));
        }
        sent.push(Box::pin(async { client.batch_execute("commit").await.map(|()| Vec::new()) }));
        let mut answers = match within(limit, InOrder::new(sent)).await {
            Ok(answers) => answers,
            Err(fault) => {
                // Closed instead of returned to the pool: the transaction may still be open on it.
                drop(Object::take(client));
                return Err(fault.mark_during_commit());
            }
        };
        answers.pop();
        let rev = match answers.pop().and_then(|rows| rows.into_iter().next()) {
            Some(row) if !changed.is_empty() => columns::rev(row.try_get(0)?),
            Some(_) | None => Rev::default(),
        };
        Ok(rev)
    }

    /// Rolls back the transaction. A connection that does not confirm the rollback is closed.
    pub(super) async fn roll_back(self) {
        if within(ROLL_BACK, self.client.batch_execute("rollback")).await.is_err() {
            drop(Object::take(self.client));
        }
    }
}

fn execute<'a>(client: &'a Object, (statement, params): &'a Later) -> Sent<'a, Vec<Row>> {
    Box::pin(
        async move { client.execute(statement, &borrow_all(params)).await.map(|_| Vec::new()) },
    )
}

/// Borrows the parameters as a statement takes them.
pub(super) fn borrow_all(params: &[Param]) -> Vec<&(dyn ToSql + Sync)> {
    params.iter().map(|param| &**param as _).collect()
}

/// Converts rows to columns, one array for each.
pub(super) fn columns_of(rows: Vec<Vec<Param>>) -> Vec<Param> {
    let width = rows.first().map_or(0, Vec::len);
    let mut columns: Vec<Vec<ArrayElement>> =
        (0..width).map(|_| Vec::with_capacity(rows.len())).collect();
    for row in rows {
        for (column, param) in columns.iter_mut().zip(row) {
            column.push(ArrayElement(param));
        }
    }
    columns.into_iter().map(|column| Box::new(column) as Param).collect()
}

/// An element of an array, with the type that the statement requires.
#[derive(Debug)]
struct ArrayElement(Param);

impl ToSql for ArrayElement {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        self.0.to_sql_checked(ty, out)
    }

    fn accepts(_: &Type) -> bool {
        true
    }

    to_sql_checked!();
}

pub(super) type Sent<'a, T> =
    Pin<Box<dyn Future<Output = Result<T, tokio_postgres::Error>> + Send + 'a>>;

/// Sends requests in order: each future sends its request when it is first polled. Waits for all of them and returns the
/// error of the first that failed, because the later ones failed as a consequence.
pub(super) struct InOrder<'a, T> {
    sent: Vec<Sent<'a, T>>,
    answers: Vec<Option<Result<T, tokio_postgres::Error>>>,
}

impl<'a, T> InOrder<'a, T> {
    pub(super) fn new(sent: Vec<Sent<'a, T>>) -> Self {
        let answers = sent.iter().map(|_| None).collect();
        Self { sent, answers }
    }
}

impl<T: Unpin> Future for InOrder<'_, T> {
    type Output = Result<Vec<T>, tokio_postgres::Error>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let Self { sent, answers } = &mut *self;
        for (request, answer) in sent.iter_mut().zip(answers.iter_mut()) {
            if answer.is_none()
                && let Poll::Ready(done) = request.as_mut().poll(context)
            {
                *answer = Some(done);
            }
        }
        if answers.iter().any(Option::is_none) {
            return Poll::Pending;
        }
        Poll::Ready(std::mem::take(answers).into_iter().flatten().collect())
    }
}
