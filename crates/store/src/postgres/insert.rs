//! Inserts jobs. The key, the conversation and the quotas are checked while the owner's row is locked.

use std::collections::HashSet;
use std::sync::Arc;

use futures_util::FutureExt as _;
use outlast_core::rules::{AdmittedRows, EarlierCall, FirstCharge, KeyRecord, OwnerUsage};
use outlast_core::{
    EndNotices, Insert, InsertOutcome, Job, JobId, NanoUsd, NewJob, OwnerId, Rev, StoreError, rules,
};

use super::batch::{self, Call};
use super::fault::Fault;
use super::rows::{self, StoredRow, get, params};
use super::step::Durability;
use super::text::escape;
use super::tx::Tx;
use super::{StoreShared, identities, journal, ledger, room, writes};
use crate::columns::{self, Columns as _};
use crate::{tables, unavailable};

const KNOW_OWNER: &str = sql!(postgres::insert::know_owner);
const FORGET_OWNER: &str = sql!(postgres::insert::forget_owner);
const LOCK_OWNER: &str = sql!(postgres::insert::lock_owner);
const STANDING: &str = sql!(postgres::insert::standing);

/// The number of attempts for an insert whose commit remains unacknowledged.
const UNKNOWN_COMMITS: u32 = 3;

/// Inserts, each with the id of its job and the channel for its answer.
type InsertCalls = Vec<Call<(Insert, JobId), InsertOutcome>>;

type InsertDecision = Vec<Result<InsertOutcome, StoreError>>;

impl StoreShared {
    /// Answers the collected calls. Calls share a transaction as long as no key occurs twice in it, because a key finds the
    /// first call's job only after the commit.
    pub(super) async fn insert_together(self: Arc<Self>, mut calls: InsertCalls) {
        // Every transaction locks owners in this order.
        calls.sort_by(|((one, _), _), ((other, _), _)| one.job.owner.cmp(&other.job.owner));
        while !calls.is_empty() {
            let mut named = HashSet::new();
            let (now, later) =
                calls.into_iter().partition(|((insert, _), _)| names_new(&mut named, insert));
            calls = later;
            batch::carry_out(now, |inserts| self.insert_all(inserts)).await;
        }
    }

    async fn insert_all(&self, inserts: Arc<[(Insert, JobId)]>) -> Result<InsertDecision, Fault> {
        let (mut tries, mut unheard) = (0, None);
        let (mut decided, rev) = loop {
            let together = (Arc::clone(&inserts), self.notices);
            let step = self.try_step(Durability::Commit, &together, |(inserts, notice), tx| {
                add_all(tx, inserts, *notice).boxed()
            });
            tries += 1;
            match step.await {
                Ok(done) => break done,
                // If the job exists after all, it is found by its id.
                Err(fault @ Fault::CommitUnknown(_)) if tries < UNKNOWN_COMMITS => {
                    unheard = Some(fault);
                }
                Err(fault) => return Err(unheard.unwrap_or(fault)),
            }
        };
        self.owed_words.notify_one();
        for inserted in decided.iter_mut().flatten() {
            let (InsertOutcome::New(job) | InsertOutcome::Existing { job, .. }) = inserted;
            if job.rev == Rev::default() {
                job.rev = rev;
            }
        }
        Ok(decided)
    }
}

/// Returns true if no call before this one has the same key or the same question.
fn names_new(named: &mut HashSet<(OwnerId, CallName)>, insert: &Insert) -> bool {
    let Some(key) = &insert.key else { return true };
    let owner = &insert.job.owner;
    let is_new_key = named.insert((owner.clone(), CallName::Key(key.text.clone())));
    let question = key.identity.as_ref().map(|identity| CallName::Question(identity.question));
    is_new_key && question.is_none_or(|question| named.insert((owner.clone(), question)))
}

/// A name under which a call finds its job.
#[derive(PartialEq, Eq, Hash)]
enum CallName {
    Key(String),
    Question([u8; 32]),
}

/// Inserts under these ids, one after the other, in one transaction.
async fn add_all(
    tx: &mut Tx,
    inserts: &[(Insert, JobId)],
    notice: EndNotices,
) -> Result<InsertDecision, Fault> {
    let mut decided = Vec::with_capacity(inserts.len());
    for (insert, id) in inserts {
        let owner = escape(insert.job.owner.as_str());
        let mut is_new_owner = false;
        decided.push(match decide(tx, insert, *id, &owner, notice, &mut is_new_owner).await {
            Ok(inserted) => Ok(inserted),
            Err(Fault::Refused(refusal)) => {
                // Nothing else was written for this owner.
                if is_new_owner {
                    tx.load([(FORGET_OWNER, &[&owner])]).await?;
                }
                Err(refusal)
            }
            Err(fault) => return Err(fault),
        });
    }
    Ok(decided)
}

async fn decide(
    tx: &mut Tx,
    insert: &Insert,
    id: JobId,
    owner: &str,
    notice: EndNotices,
    is_new_owner: &mut bool,
) -> Result<InsertOutcome, Fault> {
    let (new, key) = (&insert.job, &insert.key);
    let conversation = new.conversation_id().map(escape);
    let key_text = key.as_ref().map(|key| escape(&key.text));
    let known = format!(
        "{} where jobs.seq in (select job from keys where owner = $1 and text = $2::text
             union all select seq from jobs where id = $3)",
        rows::WHOLE
    );
    let (own_id, subject) = (id.to_string(), new.subject.map(|subject| subject.to_string()));
    let [made, _, known, standing, bytes] = tx
        .load([
            (KNOW_OWNER, &[&owner]),
            (LOCK_OWNER, &[&owner]),
            (&known, &[&owner, &key_text, &own_id]),
            (STANDING, &[&owner, &conversation, &subject]),
            (room::ADD_UP, &[&owner]),
        ])
        .await?;
    *is_new_owner = !made.is_empty();
    let now = tx.now();
    let known: Vec<StoredRow> = known.iter().map(rows::read_stored).collect::<Result<_, _>>()?;
    if let Some(own) = known.iter().find(|stored| stored.record.job.id == id) {
        // Written by an earlier attempt whose commit was not acknowledged.
        return Ok(InsertOutcome::New(own.record.job.clone()));
    }
    let mut insert = insert.clone();
    let before = known.into_iter().next();
    if let Some(key) = key
        && let Some(found) = identities::earlier_call(tx, new, key, owner, before.as_ref()).await?
        && let Some(EarlierCall { job, key, .. }) = rules::attach(&mut insert, found, now)?
    {
        let job = promise(tx, job, new).await?;
        return Ok(InsertOutcome::Existing { job, key });
    }
    let Some(standing) = standing.first() else {
        return Err(unavailable("the owner's jobs could not be counted").into());
    };
    let busy = get::<Option<String>>(standing, "busy")?;
    let spent_today = match rules::counts_toward_day(&insert) {
        true => ledger::sum_of_day(tx, owner, now.day()).await?,
        false => NanoUsd(0),
    };
    let taken = match insert.takeover {
        Some(takeover) => journal::run_left(tx, takeover, new).await?,
        None => None,
    };
    let usage = OwnerUsage {
        lacks_subject: get(standing, "lacks_subject")?,
        busy: busy.map(|busy| columns::job_id(&busy)).transpose()?,
        last_turn: standing.small("last_turn")?,
        unfinished: standing.count("unfinished")?,
        bytes: bytes.first().map_or(Ok(0), |row| row.count("bytes"))?,
        spent_today,
        run_left: taken.as_ref().map(|taken| taken.left.clone()),
    };
    // No worker runs it from the start, because a worker would not know about its job if the answer to the commit is lost.
    // So the job waits until it is claimed by id.
    let AdmittedRows { record, charge, key, identity } =
        rules::admit(insert, &usage, id, notice, now)?;
    let seq: i64 = get(standing, "seq")?;
    rows::add(tx, seq, &record).await?;
    match charge {
        FirstCharge::None => {}
        FirstCharge::Reserve(row) => tx.write(&ledger::ADD, ledger::row(&row)?).await?,
        FirstCharge::Move(run) => ledger::move_row(tx, &run, &record.job).await?,
        FirstCharge::Replace(row) => {
            if let Some(before) = taken.as_ref().and_then(|taken| taken.left.row.as_ref()) {
                ledger::remove(tx, before).await?;
            }
            tx.write(&ledger::ADD, ledger::row(&row)?).await?;
        }
    }
    tx.write(
        sql!(postgres::insert::add_bytes),
        vec![Box::new(owner.to_owned()), Box::new(columns::to_signed(record.bytes))],
    )
    .await?;
    if let Some(taken) = taken {
        journal::move_to(tx, taken, seq).await?;
    }
    let owner = &record.job.new.owner;
    if let Some(identity) = identity {
        tx.write(&identities::ADD, params(tables::identity(owner, &identity, seq)?)).await?;
    }
    if let Some((text, key)) = key {
        tx.write(&rows::TAKE_KEY, params(tables::key(owner, &text, &key, seq)?)).await?;
        if let Some(before) = before {
            keep_by_key(tx, &before.record.job, before.seq, None).await?;
        }
    }
    Ok(InsertOutcome::New(record.job))
}

/// Turns a held job into a promised one if the call that attaches to it returns its id.
async fn promise(tx: &mut Tx, job: Job, new: &NewJob) -> Result<Job, Fault> {
    if !rules::is_promised_by(&job, new) {
        return Ok(job);
    }
    // Lock it and read it again: a worker may be writing to it.
    let ids = vec![job.id.to_string()];
    let select = format!("{} where jobs.id = any($1::text[])", rows::WHOLE);
    let [_, loaded] = tx.load([(writes::LOCK, &[&ids]), (&select, &[&ids])]).await?;
    let Some(row) = loaded.first() else { return Ok(job) };
    let StoredRow { seq, mut record, key } = rows::read_stored(row)?;
    rules::promise(&mut record, new, tx.now());
    let NewJob { visibility, keep, .. } = &record.job.new;
    tx.write(
        sql!(postgres::insert::promise),
        vec![
            Box::new(seq),
            Box::new(columns::word(visibility)?),
            Box::new(keep.map(columns::millis)),
        ],
    )
    .await?;
    rows::save(tx, seq, &record, key.as_ref()).await?;
    // The commit assigns a new one.
    record.job.rev = Rev::default();
    Ok(record.job)
}

/// Computes again the time at which a job becomes removable, after its key changed or moved to another job. Not a change: no
/// rev.
pub(super) async fn keep_by_key(
    tx: &mut Tx,
    job: &outlast_core::Job,
    seq: i64,
    key: Option<&KeyRecord>,
) -> Result<(), Fault> {
    let removable_at = rules::removable_at(job, key).map(outlast_core::Timestamp::as_millis);
    tx.write(sql!(postgres::insert::keep_by_key), vec![Box::new(seq), Box::new(removable_at)]).await
}
