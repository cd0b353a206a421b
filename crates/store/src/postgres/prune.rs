//! Removes finished jobs: a read finds them, and small steps remove them.

use std::sync::Arc;

use futures_util::FutureExt as _;
use outlast_core::{Prune, PruneOutcome, Scope, StoreError, Timestamp};

use super::StoreShared;
use super::fault::Fault;
use super::rows::get;
use super::step::Durability;
use super::text::{escape, escape_owner};
use super::tx::Tx;
use crate::columns::Columns as _;

/// The maximum number of jobs that one step removes: a fraction of a second even if each has a long report.
const TOGETHER: usize = 100;

/// `rules::is_prunable` for jobs that expire by age; `$1` is the time. The column contains the rest of the rule.
const EXPIRED: &str = "removable_at <= $1";

/// The same rule for jobs that a person wants to remove.
const ENDED: &str = "ended_at < $1 and conversation is null and remote is distinct from 'owed'
     and not exists (select from job_terms join jobs as report on report.id = job_terms.subject where job_terms.job = jobs.seq)";

/// The treatment of a job that another step has locked.
#[derive(Clone, Copy)]
enum InHand {
    /// Skip it; a later sweep removes it.
    Left,
    /// Wait for the other step: a person who wants to remove the job asks only once.
    WaitedFor,
}

/// Builds the statement that removes the jobs that match the condition, with all their related rows and the jobs about them,
/// in any state.
fn delete(condition: &str, in_hand: InHand) -> String {
    let locked = match in_hand {
        InHand::Left => "skip locked",
        InHand::WaitedFor => "",
    };
    format!(
        "with doomed as (select seq, id from jobs where {condition} order by seq for update {locked}),
           whole as (select seq from doomed
             union select job_terms.job from job_terms join doomed on job_terms.subject = doomed.id),
           gone as (delete from jobs using whole where jobs.seq = whole.seq returning jobs.seq, owner, bytes),
           bodies_gone as (delete from bodies using gone where job = gone.seq),
           revs_gone as (delete from revs using gone where job = gone.seq),
           keys_gone as (delete from keys using gone where job = gone.seq),
           room_left as (insert into room (owner, bytes) select owner, -sum(bytes)::bigint from gone group by owner)
         select count(*) as jobs from gone"
    )
}

impl StoreShared {
    /// Removes the jobs that `prune` names.
    pub(super) async fn prune(
        self: &Arc<Self>,
        scope: &Scope,
        prune: &Prune,
    ) -> Result<PruneOutcome, StoreError> {
        let owner = escape_owner(scope);
        let jobs = match prune {
            Prune::Expired => {
                self.shorten_ledger(scope).await?;
                self.remove(EXPIRED, InHand::Left, self.now(), owner.clone()).await?
            }
            Prune::EndedBefore(moment) => {
                self.remove(ENDED, InHand::WaitedFor, *moment, owner.clone()).await?
            }
            Prune::Conversation(conversation) => {
                let conversation = escape(conversation.as_str());
                let named = (conversation, owner.clone());
                let step = self.step(Durability::Commit, named, |(conversation, owner), tx| {
                    remove_conversation(tx, conversation, owner).boxed()
                });
                step.await?.0
            }
        };
        let next = self.read(sql!(postgres::prune::prune), &[&owner]).await?;
        let next_expiry = match next.first() {
            Some(row) => row.maybe_time("next")?,
            None => None,
        };
        Ok(PruneOutcome { jobs, next_expiry })
    }

    async fn remove(
        self: &Arc<Self>,
        condition: &'static str,
        in_hand: InHand,
        moment: Timestamp,
        owner: Option<String>,
    ) -> Result<u32, StoreError> {
        let select =
            format!("select seq from jobs where {condition} and ($2::text is null or owner = $2)");
        let found = self.read(&select, &[&moment.as_millis(), &owner]).await?;
        let found: Vec<i64> = found.iter().map(|row| get(row, "seq")).collect::<Result<_, _>>()?;
        let mut removed = 0;
        for some in found.chunks(TOGETHER) {
            let some = RemoveSome { condition, in_hand, moment, seqs: some.to_vec() };
            let step =
                self.step(Durability::Commit, some, |some, tx| remove_some(tx, some).boxed());
            removed += step.await?.0;
        }
        Ok(removed)
    }
}

/// Removes those of the jobs for which the condition is still true.
struct RemoveSome {
    condition: &'static str,
    in_hand: InHand,
    moment: Timestamp,
    seqs: Vec<i64>,
}

async fn remove_some(tx: &mut Tx, some: &RemoveSome) -> Result<u32, Fault> {
    let condition = format!("{} and seq = any($2::bigint[])", some.condition);
    let delete = delete(&condition, some.in_hand);
    let [gone] = tx.load([(&delete, &[&some.moment.as_millis(), &some.seqs])]).await?;
    gone.first().map_or(Ok(0), |row| row.small("jobs"))
}

/// Removes a conversation, of one owner or of all owners who have one with that name.
async fn remove_conversation(
    tx: &mut Tx,
    conversation: &String,
    owner: &Option<String>,
) -> Result<u32, Fault> {
    const TURNS: &str = "conversation = $1 and ($2::text is null or owner = $2)";
    // Lock the owners' rows, so that no turn is inserted meanwhile.
    let lock = format!(
        "select owner from owners where owner in (select owner from jobs where {TURNS}) order by owner for update"
    );
    let turns = format!("select id, ended_at from jobs where {TURNS} order by seq");
    let ended = format!("{TURNS} and ended_at is not null and remote is distinct from 'owed'");
    let delete = delete(&ended, InHand::WaitedFor);
    let [_, turns] =
        tx.load([(&lock, &[conversation, owner]), (&turns, &[conversation, owner])]).await?;
    for row in &turns {
        if get::<Option<i64>>(row, "ended_at")?.is_none() {
            let id = row.job_id()?;
            return Err(StoreError::ConversationBusy(id).into());
        }
    }
    if turns.is_empty() {
        return Err(StoreError::NotFound.into());
    }
    let [gone] = tx.load([(&delete, &[conversation, owner])]).await?;
    gone.first().map_or(Ok(0), |row| row.small("jobs"))
}
