//! The rules for jobs, as pure functions: a record and a time go in, a changed record or a decision comes out. Stores
//! apply the first group under their lock; workers ask the second group for the next step.

mod admit;
mod claim;
mod turn;
mod write;
mod cancel;
mod rescue;
mod restore;
mod expire;
mod prune;
mod room;
mod cap;
mod charge;
mod ledger_sweep;
mod key;
mod identity;
mod share;
mod notice;
mod journal;
mod takeover;
mod question;

mod approach;
mod verdict;
mod retry;
mod failures;
mod send_key;

#[cfg(test)]
pub(crate) mod tests;

pub use admit::{AdmittedRows, FirstCharge, OwnerUsage, admit, attach, counts_toward_day};
pub use approach::{Approach, approach, may_begin_again};
pub use cancel::{cancel, record_late_run, record_stop};
pub use cap::{begins_another_run, lowest_cap, reserve_another_run, reserved_amount};
pub use charge::{RunCharge, charge, is_charged_by_steps, maybe_spent};
pub use claim::{claim, claim_on_insert, is_claimable, is_claimable_by_id};
pub use expire::{expires_at, is_expired, life_ends_at};
pub use identity::{EarlierCall, IdentityRecord, is_promised_by, newest_call, promise};
pub use journal::{
    JOURNAL_ROW_BYTES, JournalUsage, MAX_PAGE_TEXT, MAX_RUN_BYTES, MAX_STEP_OUTPUT, MAX_STEPS,
    StoredStep, begin_step, end_step, is_forgotten, page_bytes, resolve_step, save_page,
    step_bytes,
};
pub use key::{KeyRecord, Replay, record_answer, replay};
pub use ledger_sweep::{ledger_old_until, ledger_removable_until, sweeps_needed_from};
pub use notice::{notice, question_notice, retry_or_give_up};
pub use prune::{is_prunable, removable_at};
pub use question::{MAX_QUESTION, answer, ask, close_question};
pub use rescue::{is_unheld, lease_is_void, rescue};
pub use restore::{RestoredOutcome, restore};
pub use retry::RetryPolicy;
pub use room::{request_bytes, settlement_bytes};
pub use send_key::job_of_key;
pub use share::{Sharing, may_take};
pub use takeover::{RunLeft, release_run, take_over_step};
pub use turn::{Turn, jobs_ahead};
pub use verdict::{End, verdict};
pub use write::{check_lease, checkpoint, settle, show_progress, show_text};
