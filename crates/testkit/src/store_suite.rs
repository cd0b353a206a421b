//! The contract of [`outlast_core::Store`] as executable tests: every adapter passes every case.
//!
//! `store_suite!(make)` expands to one named test per case, where `make` is a `fn(Arc<dyn Clock>, &Path) ->
//! Arc<dyn Store>` that may put its files under the given directory. Cases move the clock by hand and never
//! sleep.

mod fixture;

pub mod asking;
pub mod cancelling;
pub mod changing;
pub mod claiming;
pub mod continuing;
pub mod conversing;
pub mod holding;
pub mod identities;
pub mod inserting;
pub mod journaling;
pub mod keeping;
pub mod keys;
pub mod leases;
pub mod listing;
pub mod pruning;
pub mod rescuing;
pub mod settling;
pub mod telling;
pub mod spending;
pub mod subjects;
pub mod workers;

pub use fixture::{
    Fixture, LEASE, a_cost, a_failure, a_held_key, a_job, a_key, a_report, a_reservation, a_run,
    an_insert, profiles, worker,
};

/// Expands to one `#[tokio::test]` per case.
#[macro_export]
macro_rules! store_suite {
    ($make:ident) => {
        $crate::store_suite! { @tests $make;
            inserting {
                a_job_reads_back_as_it_was_inserted
                a_job_that_resumes_a_run_starts_at_its_checkpoint
                a_foreign_owner_sees_nothing
                the_operator_sees_every_owner
                a_busy_conversation_takes_no_second_job
                the_same_conversation_name_of_two_owners_means_two_conversations
                concurrent_inserts_into_one_conversation_make_one_job
                turns_count_up_within_a_conversation
                an_owner_cannot_have_more_unfinished_jobs_than_allowed
                an_owner_cannot_store_more_bytes_than_allowed
                results_take_space_until_they_are_removed
                a_finished_job_is_forgotten_when_its_retention_ends
                a_job_kept_forever_is_never_forgotten
            }
            keys {
                the_same_key_and_input_find_the_same_job
                the_same_key_with_other_input_is_a_conflict
                a_key_is_free_again_after_its_window
                a_key_outlives_its_window_while_its_job_is_unfinished
                a_key_belongs_to_its_owner
                a_key_finds_its_job_even_after_its_retention
                a_key_is_answered_before_a_busy_conversation_and_a_full_quota
                many_concurrent_inserts_under_one_key_make_one_job
                a_held_calls_key_is_valid_until_it_was_answered
                a_held_calls_key_expires_after_the_end
                a_research_calls_key_is_valid_for_a_while_after_an_answer
                a_research_calls_failure_is_repeated_only_if_consent_is_needed
                a_research_call_resumes_the_run_of_its_failure
                a_cancelled_held_call_is_not_held
                an_answer_does_not_free_a_callers_own_key
            }
            identities {
                the_same_question_finds_its_job_whatever_else_differs
                a_call_that_names_no_provider_finds_an_unfinished_job_of_any
                a_changed_model_asks_again_once_the_job_has_ended
                a_repeated_call_is_answered_with_the_ended_job_for_a_while
                the_same_question_resumes_the_run_of_its_failure
                a_call_begun_by_the_previous_version_is_found
                the_previous_version_finds_a_call_begun_by_this_one
                a_callers_own_key_decides_before_the_identity
                a_fresh_call_starts_over_and_attaches_to_its_own_job
                a_fresh_call_starts_over_next_to_the_previous_version
                a_task_call_turns_a_held_job_into_a_promised_one
                many_concurrent_calls_of_one_question_make_one_job
                the_identity_of_a_call_is_removed_with_its_job
            }
            holding {
                a_held_call_is_claimed_by_id_and_never_from_the_queue
                claiming_by_id_does_not_register_the_worker_and_needs_the_profile
                held_calls_of_a_dead_worker_are_orphans
                a_task_is_claimed_by_id_and_listed_immediately
                a_held_call_that_never_ran_is_distinguishable
                the_result_of_a_held_call_decides_how_long_it_is_kept
                a_held_call_inserted_with_a_worker_belongs_to_it_from_the_start
            }
            conversing {
                turns_are_read_in_order_and_complete
                conversations_are_listed_by_their_newest_turn
                conversations_are_paged_and_filtered
                a_held_call_makes_no_conversation_until_it_succeeds
            }
            claiming {
                higher_priority_comes_first_then_older
                a_queue_position_follows_the_order_of_claims
                priority_decides_across_profiles
                slots_are_shared_between_owners_and_priority_counts_within_one
                among_equally_busy_owners_the_one_who_waited_longest_is_next
                held_calls_do_not_count_as_turns_of_the_queue
                queue_positions_count_all_owners
                a_refused_insert_does_not_register_its_owner
                a_job_is_not_claimed_before_its_time
                a_job_of_another_profile_is_not_claimed
                a_claim_raises_the_fence_and_starts_the_run
                many_concurrent_workers_claim_each_job_once
            }
            leases {
                a_stale_fence_cannot_write
                another_worker_cannot_write_under_the_same_fence
                no_worker_writes_after_a_cancel
                no_worker_writes_after_a_rescue
                a_lease_on_an_unknown_job_is_lost
                a_late_renewal_succeeds
                a_renewal_reports_exactly_the_lost_leases
                a_renewal_moves_the_end_of_the_lease
                a_checkpoint_is_visible_to_the_next_reader
                progress_never_goes_down_within_an_attempt
            }
            settling {
                a_report_is_returned_byte_for_byte
                a_tool_result_is_returned_unchanged
                a_job_can_fail_for_good
                a_retry_waits_and_remembers_why
                a_release_spends_no_attempt
                a_job_settles_once
                a_result_never_changes_once_it_was_read
            }
            asking {
                m4_a_waiting_job_has_no_worker_until_it_is_answered
                m4_one_of_many_concurrent_answers_counts
                m4_the_deadline_decides_without_an_answer
                m4_only_the_owner_can_answer
                m4_a_stale_lease_asks_nothing
                m4_waiting_jobs_are_listed_and_counted_as_such
                m4_the_question_of_an_ended_job_is_deleted
                m4_a_question_survives_the_crash_of_its_worker
            }
            cancelling {
                a_queued_job_is_cancelled_immediately
                a_cancel_before_the_run_leaves_no_pending_stop
                a_cancel_of_a_request_in_flight_records_that_a_run_may_start
                a_cancel_of_a_remote_run_leaves_a_pending_stop
                a_finished_job_keeps_its_final_state
                a_second_cancel_finds_the_first
                only_the_owner_can_cancel
                a_late_run_of_a_cancelled_job_gets_a_pending_stop
                only_cancelled_jobs_get_a_pending_stop
                pending_stops_are_returned_only_for_the_profile
                pending_stops_are_limited_to_the_requested_number
                pending_stops_are_returned_oldest_first_across_profiles
                a_completed_stop_is_no_longer_pending
                a3_a_stop_stores_the_observed_outcome_of_the_run
                only_a_cancelled_job_can_be_stopped
                no_stop_is_pending_if_no_run_is_known
            }
            rescuing {
                a_crashed_workers_jobs_are_requeued_unchanged
                a_rescue_leaves_other_workers_alone
                a_rescue_finds_nothing_when_nothing_runs
                an_expired_lease_is_rescued_and_a_running_one_is_not
                a_lease_is_expired_at_its_very_end
                b9a_a_request_in_flight_stays_with_a_live_worker_past_its_lease
                f6_a_live_worker_releases_jobs_it_does_not_hold
                a_rescued_job_is_claimed_again_under_a_higher_fence
                a_process_never_proves_its_own_live_worker_dead
            }
            listing {
                a_list_is_newest_first
                pages_cover_everything_once
                pages_are_stable_while_jobs_arrive
                a_list_can_be_narrowed_to_states
                a_search_finds_titles_in_any_case
                a_search_treats_every_character_literally
                an_id_prefix_finds_its_jobs
                a_summary_contains_the_state_of_the_job
                i2_a_list_can_be_of_one_failure_code
                a_summary_says_whether_the_id_was_promised
                an_empty_page_is_not_an_error
                i2_words_of_questions_and_reports_find_their_jobs
                i2_a_list_can_be_narrowed_to_a_provider
                i2_filters_narrow_together_page_by_page
                i2_a_summary_says_what_was_paid
                i2_states_are_counted_up_to_a_bound_and_for_one_owner
                i2_the_words_of_a_removed_job_find_nothing
            }
            changing {
                a_change_wakes_waiting_callers
                a_change_before_the_call_is_not_missed
                each_job_is_reported_once_with_its_latest_state
                nothing_is_reported_twice
                a_wait_without_changes_ends_empty
                progress_is_a_change_and_a_renewal_is_not
                every_kind_of_write_is_seen
                changes_continue_from_the_current_rev
                the_next_due_time_is_the_nearest
                a_rev_of_another_store_is_reset_to_the_current_one
                revs_grow_with_every_change_of_a_job
            }
            pruning {
                a_job_is_removed_when_its_retention_has_ended
                the_next_expiry_is_the_nearest
                an_unfinished_job_is_never_removed
                a_job_with_a_pending_stop_stays_until_it_is_completed
                a_job_stays_as_long_as_its_key_is_valid
                a_held_call_stays_until_it_was_answered
                a_research_call_stays_as_long_as_its_result_is_repeated
                a_key_that_names_another_job_keeps_that_one
                a_key_is_removed_with_the_job_a_person_removed
                a_person_can_remove_jobs_that_ended_before_a_time
                a_conversation_is_removed_whole
                a_busy_conversation_is_not_removed
                a_prune_stays_within_its_scope
                a_removal_is_not_a_change
                many_jobs_are_removed_in_one_call
            }
            telling {
                g7_every_end_leaves_a_notice
                m4_a_question_leaves_a_notice
                a_retry_or_an_unpromised_job_leaves_no_notice
                g7_a_claimed_notice_has_one_caller_until_its_lease_ends
                many_concurrent_callers_claim_each_notice_once
                g7_an_undelivered_notice_is_due_again_after_a_delay
                a_notice_outlives_its_job
                g8_the_text_so_far_is_visible_during_the_attempt
                g8_the_text_so_far_never_outlives_its_attempt
            }
            keeping {
                g3_a_stored_setting_stays_until_it_is_replaced
                m4_a_setting_is_created_once
            }
            spending {
                g6_a_reservation_becomes_what_the_run_cost
                g6_a_start_over_the_days_limit_is_refused_and_leaves_nothing
                g6_concurrent_starts_never_exceed_the_limit
                g6_money_is_refused_last_and_a_repeated_start_reserves_nothing
                g6_a_reservation_that_was_certainly_not_spent_is_released
                g6_a_reservation_that_may_have_been_spent_is_kept
                g6_another_run_of_a_job_is_another_row
                g6_a_resumed_run_is_counted_once
                g6_the_cost_of_a_cancelled_or_failed_run_is_spent_once_it_is_known
                g6_a_refusal_inside_a_free_run_is_released
                g6_each_run_of_a_job_has_its_id_and_its_cost
                g6_a_run_counts_on_the_day_it_was_reserved
                g6_the_ledger_outlives_its_jobs_for_400_days
                g6_an_owner_sees_their_own_and_the_operator_everything
                g6_a_free_job_has_no_row
                g6_a_wrong_clock_does_not_erase_the_ledger
                g6_caps_are_decided_with_the_insert_and_stay_within_the_limits
                g6_another_run_of_a_job_stays_within_the_limits
                g6_sums_of_absurd_amounts_are_the_largest_number
            }
            journaling {
                k2_a_recorded_step_is_never_sent_again
                k3_an_open_step_is_begun_again_only_if_allowed
                k2_a_stale_lease_records_no_step_and_no_page
                k2_a_step_is_begun_by_one_of_many
                k2_a_journal_counts_toward_the_bytes_of_its_owner
                k2_outputs_and_pages_are_cut_and_cleaned
                k2_a_page_stays_as_long_as_a_job_that_has_read_it
                k2_a_journal_belongs_to_its_job
                k10_outputs_of_steps_are_read_by_kind
                k10_old_journals_are_removed_and_their_jobs_stay
                k12_an_interrupted_step_is_resolved_by_its_owner
            }
            continuing {
                k3_a_new_job_takes_over_the_run_of_a_failed_one
                k3_an_open_step_is_sent_once_more_with_consent
                k3_a_run_is_taken_over_once_by_its_owner_with_the_same_settings
                k3_a_refused_start_leaves_the_run_with_its_job
                k3_a_repeated_call_continues_the_run_that_its_failure_left
                k3_a_failed_or_cancelled_run_is_charged_the_sum_of_its_steps
                k3_the_row_of_a_continued_run_counts_once
                k12_a_repeated_command_takes_over_its_steps
            }
            subjects {
                j1_a_report_has_one_unfinished_check
                j1_many_concurrent_calls_make_one_check
                j1_a_check_needs_a_report_of_its_owner
                j1_the_newest_check_is_found_by_its_report
                j1_a_check_is_removed_with_its_report
                j1_a_check_is_kept_as_long_as_its_report
            }
            workers {
                a_worker_is_known_from_its_first_claim
                a_deregistered_worker_is_no_longer_available
                the_jobs_of_a_deregistered_worker_are_rescued_immediately
                a_worker_that_was_declared_dead_is_no_longer_available
                waiting_jobs_are_counted_once
            }
        }
    };
    (@tests $make:ident; $($module:ident { $($case:ident)* })*) => {
        $(
            mod $module {
                use super::$make;

                $(
                    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
                    async fn $case() {
                        let fixture = $crate::store_suite::Fixture::new($make);
                        $crate::store_suite::$module::$case(fixture).await;
                    }
                )*
            }
        )*
    };
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    /// A case that is not listed would never run.
    #[test]
    fn no_case_is_forgotten() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store_suite");
        let listed = include_str!("store_suite.rs");
        let mut cases = 0;
        for file in fs::read_dir(folder).unwrap() {
            let source = fs::read_to_string(file.unwrap().path()).unwrap();
            for line in source.lines() {
                let Some(rest) = line.strip_prefix("pub async fn ") else { continue };
                let case = rest.split('(').next().unwrap();
                assert!(listed.lines().any(|line| line.trim() == case), "{case} is not listed");
                cases += 1;
            }
        }
        assert!(cases > 100, "{cases} cases were found");
    }
}
