//! The index of titles. Only this file knows its tables.

use rusqlite::Connection;

use super::fault::Fault;
use super::sql;
use crate::columns;
use crate::titles::{self, TitleParts};

const ADD: &str = sql!(sqlite::titles::add);

/// Returns whether a segment is complete and not indexed.
pub(super) fn is_owed(connection: &Connection) -> Result<bool, Fault> {
    let newest = sql!(sqlite::titles::owed);
    Ok(end(connection)? < titles::segment_of(sql::value(connection, newest, [])?))
}

/// Indexes the titles of the next segment.
pub(super) fn index_next(connection: &Connection) -> Result<(), Fault> {
    const TITLES: &str = sql!(sqlite::titles::titles);
    // The removal of its newest jobs may have left parts of it.
    const FORGET: &str = sql!(sqlite::titles::forget);
    const FORGET_OLD: &str = sql!(sqlite::titles::forget_old);
    let oldest = sql!(sqlite::titles::index_next_oldest);
    let oldest = titles::segment_of(sql::value(connection, oldest, [])?);
    let segment = end(connection)?.max(oldest);
    let mut statement = connection.prepare_cached(TITLES)?;
    let range = (titles::first_of(segment), titles::first_of(segment + 1));
    let jobs = statement.query_map(range, |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))?;
    let sets = titles::sets(jobs.collect::<Result<Vec<_>, _>>()?.into_iter());
    sql::execute(connection, FORGET_OLD, [oldest])?;
    sql::execute(connection, FORGET, [segment])?;
    for (part, set) in sets {
        sql::execute(connection, ADD, (segment, part, set))?;
    }
    sql::execute(connection, sql!(sqlite::titles::index_next_insert), [segment])?;
    Ok(())
}

/// The segment after the indexed ones.
pub(super) fn end(connection: &Connection) -> Result<i64, Fault> {
    let next = sql!(sqlite::titles::end);
    sql::value(connection, next, [])
}

/// Returns the jobs of these segments whose titles may contain the text, newest first.
pub(super) fn candidates(
    connection: &Connection,
    parts: &TitleParts,
    segments: std::ops::Range<i64>,
    before: i64,
) -> Result<Vec<i64>, Fault> {
    const SEGMENTS: &str = sql!(sqlite::titles::segments);
    let all = format!(
        "SELECT segment, part, jobs FROM title_parts
         WHERE segment IN ({SEGMENTS}) AND part IN (SELECT value FROM json_each(?2))"
    );
    let one = format!(
        "SELECT segment, part, jobs FROM title_parts
         WHERE segment IN ({SEGMENTS}) AND part BETWEEN ?2 AND ?3"
    );
    let set = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
    let segments = columns::json(&segments.collect::<Vec<_>>())?;
    let mut statement = connection.prepare_cached(&all)?;
    let wanted = (&segments, columns::json(&parts.all)?);
    let mut sets = statement.query_map(wanted, set)?.collect::<Result<Vec<_>, _>>()?;
    if let Some((first, last)) = parts.one_from {
        let mut statement = connection.prepare_cached(&one)?;
        let found = statement.query_map((&segments, first, last), set)?;
        sets.extend(found.collect::<Result<Vec<_>, _>>()?);
    }
    Ok(titles::candidates(parts, sets, before))
}
