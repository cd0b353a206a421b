//! Claims jobs: waiting calls are answered together, and owners are served in turn.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt as _;
use outlast_core::rules::{self, Turn};
use outlast_core::{ClaimedJob, JobId, Profile, StoreError, WorkerId};

use super::StoreShared;
use super::batch::Call;
use super::fault::Fault;
use super::rows::{self, get};
use super::step::Durability;
use super::text::escape;
use super::tx::Tx;
use crate::columns::{Columns as _, to_signed};
use crate::copy_error;

/// Selects owners with due jobs of these profiles ($1) at a time ($2, or the server's), in turn, with at most this many jobs
/// ($3) from the head of their queues: the order of `rules::Turn` and the test of `rules::is_claimable`. The owners of each
/// profile are found in one index step each, however long their queues are.
const CANDIDATES: &str = sql!(postgres::claims::candidates);

/// Locks the first few candidates that no other step holds. The condition on the state is written so that PostgreSQL does not
/// scan an index of the queue.
const LOCK: &str = sql!(postgres::claims::lock);

/// Records that these owners were served, the last one last. The rows are written in the order of the owners' names, so that
/// no two claims wait for each other.
const SERVED: &str = sql!(postgres::claims::served);

/// The number of candidates read in addition to twice the number of wanted jobs: other processes hold some of them.
const SPARE: usize = 8;

/// The maximum number of tries of a claim that got nothing because of other claims, before it reports an empty queue.
const TRIES: u32 = 20;

/// A worker's request for a job.
#[derive(Clone, PartialEq, Eq)]
pub(super) struct ClaimRequest {
    pub(super) worker: WorkerId,
    pub(super) profiles: Vec<Profile>,
    pub(super) lease: Duration,
}

/// The result of one try to claim jobs.
struct ClaimTry {
    claimed: Vec<ClaimedJob>,
    /// There were more jobs than were claimed: other steps held them, or the try ended before it reached them.
    left: bool,
}

impl StoreShared {
    /// Answers the collected calls, those of one worker in one transaction.
    pub(super) async fn claim_together(
        self: Arc<Self>,
        mut calls: Vec<Call<ClaimRequest, Option<ClaimedJob>>>,
    ) {
        while let Some(claim) = calls.first().map(|(claim, _)| claim.clone()) {
            let (now, later): (Vec<_>, _) = calls.into_iter().partition(|(of, _)| *of == claim);
            calls = later;
            let mut claimed = self.claim_some(claim, now.len()).await.map(Vec::into_iter);
            for (_, answer) in now {
                // If the caller has gone away, the job returns to the queue when its worker's lease is not renewed.
                let next = claimed.as_mut().map(Iterator::next);
                let _ = answer.send(next.map_err(|error| copy_error(error)));
            }
        }
    }

    /// Claims as many jobs as are wanted, or as many as there are.
    async fn claim_some(
        &self,
        claim: ClaimRequest,
        count: usize,
    ) -> Result<Vec<ClaimedJob>, StoreError> {
        let (mut all, mut in_vain) = (Vec::new(), 0);
        loop {
            let wanted = (&claim, count - all.len());
            let found = self.try_step(Durability::Commit, &wanted, |(claim, count), tx| {
                pick(tx, claim, *count).boxed()
            });
            let (ClaimTry { mut claimed, left }, rev) = match found.await {
                Ok(found) => found,
                // Keep the jobs that are already claimed; the calls that get nothing ask again.
                Err(_) if !all.is_empty() => return Ok(all),
                Err(fault) => return Err(fault.into()),
            };
            claimed.iter_mut().for_each(|claimed| claimed.job.rev = rev);
            in_vain = if claimed.is_empty() { in_vain + 1 } else { 0 };
            all.append(&mut claimed);
            if !left || all.len() == count || in_vain == TRIES {
                return Ok(all);
            }
            tokio::time::sleep(Duration::from_millis(u64::from(in_vain))).await;
        }
    }
}

/// The priorities and numbers of waiting jobs.
type QueueOrder = Vec<(Reverse<i64>, i64)>;

/// The job at the head of its owner's queue.
struct Head {
    owner: String,
    seq: i64,
}

async fn pick(tx: &mut Tx, claim: &ClaimRequest, count: usize) -> Result<ClaimTry, Fault> {
    let profiles: Vec<String> =
        claim.profiles.iter().map(|profile| escape(profile.as_str())).collect();
    let worker = escape(claim.worker.as_str());
    let (given, candidates) = (tx.given_seq(), 2 * count + SPARE);
    let [_, rows] = tx
        .load([
            (sql!(postgres::claims::know_worker), &[&profiles, &worker]),
            (CANDIDATES, &[&profiles, &given, &to_signed(candidates as u64)]),
        ])
        .await?;
    let heads = in_turn(&rows, candidates)?;
    if heads.is_empty() {
        return Ok(ClaimTry { claimed: Vec::new(), left: false });
    }
    let seqs: Vec<i64> = heads.iter().map(|head| head.seq).collect();
    let wanted = to_signed(count as u64);
    let [locked] = tx.load([(LOCK, &[&seqs, &wanted])]).await?;
    let locked: Vec<i64> =
        locked.iter().map(|row| Ok(row.try_get(0)?)).collect::<Result<_, Fault>>()?;
    let select = format!("{} where jobs.seq = any($1::bigint[])", rows::WHOLE);
    let [loaded] = tx.load([(&select, &[&locked])]).await?;
    let mut loaded: HashMap<i64, rows::StoredRow> = loaded
        .iter()
        .map(|row| rows::read_stored(row).map(|stored| (stored.seq, stored)))
        .collect::<Result<_, _>>()?;
    let (mut claimed, mut served) = (Vec::new(), Vec::new());
    for head in &heads {
        let Some(stored) = loaded.remove(&head.seq) else { continue };
        if !rules::is_claimable(&stored.record, &claim.profiles, tx.now()) {
            continue;
        }
        served.retain(|owner| *owner != head.owner);
        served.push(head.owner.clone());
        claimed.push(hand_over(tx, stored, claim).await?);
    }
    if !served.is_empty() {
        tx.write(SERVED, vec![Box::new(served)]).await?;
    }
    let left = claimed.len() < heads.len();
    Ok(ClaimTry { claimed, left })
}

/// Returns the next jobs in order. Each claim changes its owner's turn.
fn in_turn(rows: &[tokio_postgres::Row], count: usize) -> Result<Vec<Head>, Fault> {
    let mut queues: HashMap<String, (Turn, QueueOrder)> = HashMap::new();
    for row in rows {
        let turn = row.turn()?;
        let head = (Reverse(get::<i64>(row, "priority")?), get::<i64>(row, "seq")?);
        queues.entry(get(row, "owner")?).or_insert_with(|| (turn, Vec::new())).1.push(head);
    }
    for (_, queue) in queues.values_mut() {
        queue.sort_by(|one, other| other.cmp(one));
    }
    let mut served = queues.values().map(|(turn, _)| turn.served).max().unwrap_or(0);
    let mut picked = Vec::new();
    while picked.len() < count {
        let next = queues.iter_mut().filter(|(_, (_, queue))| !queue.is_empty());
        let Some((owner, (turn, queue))) = next.min_by_key(|(_, (turn, _))| *turn) else { break };
        let Some((_, seq)) = queue.pop() else { break };
        served += 1;
        turn.running += 1;
        turn.served = served;
        picked.push(Head { owner: owner.clone(), seq });
    }
    Ok(picked)
}

/// Claims a job by its id.
pub(super) async fn take(
    tx: &mut Tx,
    claim: &ClaimRequest,
    id: &JobId,
) -> Result<Option<ClaimedJob>, Fault> {
    let ids = vec![id.to_string()];
    let select = format!("{} where jobs.id = any($1::text[])", rows::WHOLE);
    let [_, loaded] = tx.load([(super::writes::LOCK, &[&ids]), (&select, &[&ids])]).await?;
    let Some(row) = loaded.first() else { return Ok(None) };
    let stored = rows::read_stored(row)?;
    if !rules::is_claimable_by_id(&stored.record, &claim.profiles, tx.now()) {
        return Ok(None);
    }
    let is_queued = stored.record.job.new.visibility.goes_through_queue();
    let owner = escape(stored.record.job.new.owner.as_str());
    if is_queued {
        tx.write(SERVED, vec![Box::new(vec![owner])]).await?;
    }
    hand_over(tx, stored, claim).await.map(Some)
}

async fn hand_over(
    tx: &mut Tx,
    mut stored: rows::StoredRow,
    claim: &ClaimRequest,
) -> Result<ClaimedJob, Fault> {
    let now = tx.now();
    let lease = rules::claim(&mut stored.record, &claim.worker, now.after(claim.lease), now);
    rows::save(tx, stored.seq, &stored.record, stored.key.as_ref()).await?;
    Ok(ClaimedJob { job: stored.record.job, lease })
}
