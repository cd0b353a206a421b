//! The table, row by row.

use super::*;
use crate::rules::tests::{NOW, failure as earlier, remote, running};
use crate::{JobState, ResumePolicy, StateKind};

const PAID: RecoverySemantics =
    RecoverySemantics { resend: ResendPolicy::Never, resume: ResumePolicy::Always, can_stop: true };
const KEYED: RecoverySemantics = RecoverySemantics {
    resend: ResendPolicy::WithKey,
    resume: ResumePolicy::Always,
    can_stop: false,
};
/// As an answer that exists only on its connection.
const FLEETING: RecoverySemantics =
    RecoverySemantics { resend: ResendPolicy::Never, resume: ResumePolicy::Never, can_stop: false };
/// As a search of the user's own files.
const FREE: RecoverySemantics = RecoverySemantics {
    resend: ResendPolicy::Idempotent,
    resume: ResumePolicy::Never,
    can_stop: false,
};
const PLAIN: RetryPolicy = RetryPolicy { base: Duration::from_secs(2), jitter: 0.0 };

fn error(problem: ProviderErrorKind) -> ProviderError {
    let detail = Some("secret".to_owned());
    ProviderError { detail, ..ProviderError::new(problem, "it went wrong") }
}

fn beginning() -> Checkpoint {
    Checkpoint::Beginning { key: "k".to_owned() }
}

fn under_way() -> Checkpoint {
    Checkpoint::Running(remote())
}

enum Expected {
    RetryAt(Checkpoint),
    Fail(Code),
}
use Expected::{Fail, RetryAt};

/// B9 and B9a in one table.
#[test]
fn what_is_retried_where_and_what_is_not() {
    use BeginError::{NotSent, Refused, Unknown};
    let busy = || ProviderErrorKind::Unavailable { retry_after: None };
    let slow = || ProviderErrorKind::RateLimited { retry_after: None };
    let cases = [
        (
            beginning(),
            PAID,
            End::NotBegun(NotSent(error(ProviderErrorKind::Unreachable))),
            RetryAt(Checkpoint::NotBegun),
        ),
        (beginning(), PAID, End::NotBegun(Refused(error(slow()))), RetryAt(Checkpoint::NotBegun)),
        (beginning(), PAID, End::NotBegun(Refused(error(busy()))), RetryAt(Checkpoint::NotBegun)),
        (
            beginning(),
            PAID,
            End::NotBegun(Refused(error(ProviderErrorKind::Unauthorized))),
            Fail(Code::Unauthorized),
        ),
        (
            beginning(),
            PAID,
            End::NotBegun(Refused(error(ProviderErrorKind::QuotaExhausted))),
            Fail(Code::QuotaExhausted),
        ),
        (
            beginning(),
            PAID,
            End::NotBegun(Refused(error(ProviderErrorKind::Retired))),
            Fail(Code::EndpointRetired),
        ),
        (
            beginning(),
            PAID,
            End::NotBegun(Refused(error(ProviderErrorKind::Rejected))),
            Fail(Code::ExecutionError),
        ),
        (beginning(), PAID, End::NotBegun(Unknown(error(busy()))), Fail(Code::SubmitUnknown)),
        (
            beginning(),
            PAID,
            End::NotBegun(Unknown(error(ProviderErrorKind::Malformed))),
            Fail(Code::SubmitUnknown),
        ),
        (
            beginning(),
            KEYED,
            End::NotBegun(Unknown(error(ProviderErrorKind::TimedOut))),
            RetryAt(beginning()),
        ),
        (
            beginning(),
            KEYED,
            End::NotBegun(Unknown(error(ProviderErrorKind::Rejected))),
            Fail(Code::SubmitUnknown),
        ),
        (
            beginning(),
            FREE,
            End::NotBegun(Unknown(error(ProviderErrorKind::Rejected))),
            Fail(Code::ExecutionError),
        ),
        (beginning(), KEYED, End::NotBegun(Refused(error(slow()))), RetryAt(beginning())),
        (
            beginning(),
            KEYED,
            End::NotBegun(NotSent(error(ProviderErrorKind::Unreachable))),
            RetryAt(beginning()),
        ),
        (
            under_way(),
            KEYED,
            End::Broken(error(ProviderErrorKind::RunFailed)),
            RetryAt(Checkpoint::NotBegun),
        ),
        (
            under_way(),
            PAID,
            End::Broken(error(ProviderErrorKind::RunFailed)),
            RetryAt(Checkpoint::NotBegun),
        ),
        (under_way(), PAID, End::Broken(error(ProviderErrorKind::RunLost)), Fail(Code::RunLost)),
        (under_way(), KEYED, End::Broken(error(ProviderErrorKind::RunLost)), Fail(Code::RunLost)),
        (
            under_way(),
            FREE,
            End::Broken(error(ProviderErrorKind::RunLost)),
            RetryAt(Checkpoint::NotBegun),
        ),
        (
            under_way(),
            KEYED,
            End::Broken(error(ProviderErrorKind::StepUnknown)),
            Fail(Code::SubmitUnknown),
        ),
        (
            under_way(),
            PAID,
            End::Broken(error(ProviderErrorKind::RunStopped)),
            Fail(Code::ExecutionError),
        ),
        (
            under_way(),
            FREE,
            End::Broken(error(ProviderErrorKind::RunStopped)),
            Fail(Code::ExecutionError),
        ),
        (
            under_way(),
            PAID,
            End::Broken(error(ProviderErrorKind::TooLarge)),
            Fail(Code::ExecutionError),
        ),
        (under_way(), PAID, End::Broken(error(busy())), RetryAt(under_way())),
        (under_way(), PAID, End::Broken(error(ProviderErrorKind::Malformed)), RetryAt(under_way())),
        (
            under_way(),
            PAID,
            End::Broken(error(ProviderErrorKind::Unauthorized)),
            Fail(Code::Unauthorized),
        ),
        (under_way(), PAID, End::AttemptTimedOut, RetryAt(under_way())),
        (beginning(), PAID, End::AttemptTimedOut, Fail(Code::SubmitUnknown)),
        (beginning(), KEYED, End::AttemptTimedOut, RetryAt(beginning())),
        (under_way(), FLEETING, End::Broken(error(busy())), Fail(Code::SubmitUnknown)),
        (
            under_way(),
            FLEETING,
            End::Broken(error(ProviderErrorKind::Malformed)),
            Fail(Code::SubmitUnknown),
        ),
        (under_way(), FLEETING, End::AttemptTimedOut, Fail(Code::SubmitUnknown)),
        (
            under_way(),
            FLEETING,
            End::Broken(error(ProviderErrorKind::RunTimedOut)),
            RetryAt(Checkpoint::NotBegun),
        ),
        (
            under_way(),
            FLEETING,
            End::Broken(error(ProviderErrorKind::Unauthorized)),
            Fail(Code::Unauthorized),
        ),
        (
            under_way(),
            FLEETING,
            End::Broken(error(ProviderErrorKind::RunFailed)),
            RetryAt(Checkpoint::NotBegun),
        ),
        (
            beginning(),
            FLEETING,
            End::NotBegun(Refused(error(slow()))),
            RetryAt(Checkpoint::NotBegun),
        ),
        (under_way(), FREE, End::Broken(error(busy())), RetryAt(under_way())),
        (under_way(), FREE, End::AttemptTimedOut, RetryAt(under_way())),
        (under_way(), PAID, End::LifeEnded, Fail(Code::Timeout)),
        (under_way(), PAID, End::Panicked, Fail(Code::InternalError)),
        (beginning(), PAID, End::Panicked, Fail(Code::SubmitUnknown)),
        (beginning(), FREE, End::Panicked, Fail(Code::InternalError)),
        (beginning(), KEYED, End::LifeEnded, Fail(Code::SubmitUnknown)),
    ];
    for (at, semantics, end, expected) in cases {
        let job = running(at).0.job;
        let name = format!("{end:?}");
        match (verdict(&job, semantics, end, PLAIN, NOW), expected) {
            (Settlement::Retry { checkpoint, .. }, RetryAt(expected)) => {
                assert_eq!(checkpoint, expected, "{name}");
            }
            (Settlement::Fail { failure, .. }, Fail(code)) => {
                assert_eq!(failure.code, code, "{name}");
                assert!(!failure.message.contains("secret"), "{name}: detail is for the operator");
            }
            (other, _) => panic!("{name}: {other:?}"),
        }
    }
}

/// B9a: the failure states what happened, that it may have been paid for, and what to do.
#[test]
fn b9a_a_lost_answer_is_reported_in_the_words_of_its_error() {
    let said = |end| match verdict(&running(under_way()).0.job, FLEETING, end, PLAIN, NOW) {
        Settlement::Fail { failure, .. } => (failure.message, failure.detail),
        other => panic!("{other:?}"),
    };
    let id = running(under_way()).0.job.id;
    let tail = format!(
        "; it may have been accepted and paid for, so it was not sent again: `outlast jobs retry {id} --again` \
         begins a new run, which may be paid for a second time"
    );
    let broken = said(End::Broken(error(ProviderErrorKind::Unreachable)));
    assert_eq!(broken, (format!("it went wrong{tail}"), Some("secret".to_owned())));
    let (message, _) = said(End::AttemptTimedOut);
    assert!(message.starts_with("no result within ") && message.ends_with(&tail), "{message}");
}

/// P6: if the provider honours the key, the same key is sent again while retries remain. Then the job fails with
/// SUBMIT_UNKNOWN, whatever the last error was.
#[test]
fn p6_a_lost_answer_under_a_key_ends_submit_unknown() {
    let mut job = running(beginning()).0.job;
    let silent = || End::NotBegun(BeginError::Unknown(error(ProviderErrorKind::TimedOut)));
    let Settlement::Retry { failure, checkpoint, .. } = verdict(&job, KEYED, silent(), PLAIN, NOW)
    else {
        panic!("it is sent again")
    };
    assert_eq!((failure.code, checkpoint), (Code::SubmitUnknown, beginning()));
    assert!(failure.message.contains("sent again under the same key"), "{}", failure.message);
    let slow = || BeginError::Refused(error(ProviderErrorKind::RateLimited { retry_after: None }));
    let bad_key = || BeginError::Refused(error(ProviderErrorKind::Unauthorized));
    // Every request that was sent is known to be refused: these failures keep their codes.
    job.new.max_failures = 0;
    for (refused, code) in [(slow(), Code::RateLimited), (bad_key(), Code::Unauthorized)] {
        let settled = verdict(&job, KEYED, End::NotBegun(refused), PLAIN, NOW);
        let Settlement::Fail { failure, .. } = settled else { panic!("{settled:?}") };
        assert_eq!(failure.code, code);
    }
    // After a send of unknown outcome, they leave the job in doubt.
    job.failures.push(failure);
    job.new.max_failures = 1;
    let ends = [silent(), End::NotBegun(slow()), End::NotBegun(bad_key()), End::LifeEnded];
    for end in ends {
        let name = format!("{end:?}");
        let settled = verdict(&job, KEYED, end, PLAIN, NOW);
        let Settlement::Fail { failure, .. } = settled else { panic!("{name}: {settled:?}") };
        assert_eq!(failure.code, Code::SubmitUnknown, "{name}");
        assert!(failure.message.contains("--again"), "{name}: {}", failure.message);
    }
}

/// B9a: a lost run states what may have been paid, and how its owner can begin again.
#[test]
fn b9a_a_lost_run_is_not_begun_again_by_itself() {
    let job = running(under_way()).0.job;
    let settled = verdict(&job, PAID, End::Broken(error(ProviderErrorKind::RunLost)), PLAIN, NOW);
    let Settlement::Fail { failure, .. } = settled else { panic!("{settled:?}") };
    assert_eq!(
        failure.message,
        format!(
            "it went wrong; it may have been paid for, so no other was begun: `outlast jobs retry {} --again` begins \
             a new run, which may be paid for a second time",
            job.id
        )
    );
    assert!(!failure.run_goes_on && !failure.code.is_retryable());
}

/// E16: a local command has no price.
#[test]
fn e16_what_is_no_research_is_not_said_to_be_paid_for() {
    let mut job = running(under_way()).0.job;
    job.new.request = serde_json::json!({ "message": "go" }).into();
    for end in [End::Broken(error(ProviderErrorKind::RunLost)), End::AttemptTimedOut] {
        let settled = verdict(&job, FLEETING, end, PLAIN, NOW);
        let Settlement::Fail { failure, .. } = settled else { panic!("{settled:?}") };
        assert!(!failure.message.contains("paid"), "{}", failure.message);
        assert!(failure.message.contains("--again"), "{}", failure.message);
    }
}

/// B9a: a failure states whether its run may still continue; no other failure does.
#[test]
fn b9a_a_failure_states_whether_the_run_goes_on() {
    let no_credit = || End::Broken(error(ProviderErrorKind::QuotaExhausted));
    let busy = || End::Broken(error(ProviderErrorKind::Unavailable { retry_after: None }));
    let cases = [
        (under_way(), PAID, End::LifeEnded, true),
        (under_way(), PAID, End::Panicked, true),
        (under_way(), PAID, End::AttemptTimedOut, true),
        (under_way(), KEYED, busy(), true),
        (under_way(), PAID, no_credit(), true),
        (under_way(), FREE, busy(), false),
        (under_way(), FLEETING, no_credit(), false),
        (under_way(), PAID, End::Broken(error(ProviderErrorKind::Unauthorized)), true),
        (under_way(), PAID, End::Broken(error(ProviderErrorKind::Malformed)), true),
        (under_way(), PAID, End::Broken(error(ProviderErrorKind::Rejected)), true),
        (under_way(), PAID, End::Broken(error(ProviderErrorKind::RunFailed)), false),
        (under_way(), PAID, End::Broken(error(ProviderErrorKind::RunStopped)), false),
        (under_way(), PAID, End::Broken(error(ProviderErrorKind::RunLost)), false),
        (under_way(), PAID, End::Broken(error(ProviderErrorKind::TooLarge)), true),
        (Checkpoint::NotBegun, PAID, End::LifeEnded, false),
        (beginning(), KEYED, End::AttemptTimedOut, false),
    ];
    for (at, semantics, end, goes_on) in cases {
        let mut job = running(at).0.job;
        job.new.max_failures = 0;
        let name = format!("{:?} {semantics:?} {end:?}", job.checkpoint);
        let settlement = verdict(&job, semantics, end, PLAIN, NOW);
        let Settlement::Fail { failure, .. } = settlement else { panic!("{name}") };
        assert_eq!(failure.run_goes_on, goes_on, "{name}");
        job.state = JobState::Failed { at: NOW };
        job.failures.push(failure);
        assert_eq!(job.run_left().is_some(), goes_on, "{name}");
        assert_eq!(job.run_left_text().is_some(), goes_on, "{name}");
    }
}

/// B9a: a run that has ended cannot finish, whatever ended it. A run that completed without showing its report is
/// checked again, and nothing is begun in its place. A refusal inside a free run leaves nothing behind.
#[test]
fn b9a_a_run_that_has_ended_is_not_said_to_go_on() {
    let ended = RunStatus::Ended(crate::Cost::Unknown);
    let cases = [
        (ProviderErrorKind::Rejected, ended, None),
        (ProviderErrorKind::QuotaExhausted, ended, None),
        (ProviderErrorKind::Malformed, ended, Some("looks for its report again")),
        (ProviderErrorKind::Rejected, RunStatus::Unknown, Some("may still finish")),
        (ProviderErrorKind::Unauthorized, RunStatus::NotCharged, None),
        (ProviderErrorKind::RateLimited { retry_after: None }, RunStatus::NotCharged, None),
    ];
    for (problem, run, said) in cases {
        let name = format!("{problem:?} {run:?}");
        let mut job = running(under_way()).0.job;
        job.new.max_failures = 0;
        let end = End::Broken(ProviderError { run, ..error(problem) });
        let Settlement::Fail { failure, .. } = verdict(&job, PAID, end, PLAIN, NOW) else {
            panic!("{name}")
        };
        assert_ne!(failure.code, Code::RunLost, "{name}");
        job.state = JobState::Failed { at: NOW };
        job.failures.push(failure);
        let text = job.run_left_text();
        assert_eq!(text.is_some(), said.is_some(), "{name}: {text:?}");
        assert!(text.unwrap_or_default().contains(said.unwrap_or_default()), "{name}");
    }
    let mut job = running(under_way()).0.job;
    job.new.max_failures = 2;
    let completed =
        End::Broken(ProviderError { run: ended, ..error(ProviderErrorKind::Malformed) });
    let settlement = verdict(&job, PAID, completed, PLAIN, NOW);
    let Settlement::Retry { checkpoint, .. } = settlement else { panic!("{settlement:?}") };
    assert_eq!(checkpoint, under_way(), "no other run is begun");
}

/// E7: upstream's text is kept whole, except for the words of the request, however the attempt ended.
#[test]
fn e7_what_upstream_said_is_kept_without_what_was_asked() {
    let mut job = running(under_way()).0.job;
    job.new.request =
        serde_json::json!({"messages": [{"content": "Where is Ann's letter?"}]}).into();
    let said = "HTTP 500: cannot read \\\"where is ann's letter\\\", try later";
    let error = |problem| ProviderError { detail: Some(said.to_owned()), ..error(problem) };
    let ends = [
        End::Broken(error(ProviderErrorKind::RunFailed)),
        End::Broken(error(ProviderErrorKind::Rejected)),
        End::Broken(error(ProviderErrorKind::RunLost)),
        End::NotBegun(BeginError::NotSent(error(ProviderErrorKind::Unreachable))),
        End::NotBegun(BeginError::Refused(error(ProviderErrorKind::Rejected))),
        End::NotBegun(BeginError::Unknown(error(ProviderErrorKind::TimedOut))),
    ];
    for end in ends {
        let name = format!("{end:?}");
        let (Settlement::Fail { failure, .. } | Settlement::Retry { failure, .. }) =
            verdict(&job, PAID, end, PLAIN, NOW)
        else {
            panic!("{name}")
        };
        let kept = "HTTP 500: cannot read \\\"[redacted]\\\", try later";
        assert_eq!(failure.detail.as_deref(), Some(kept), "{name}");
    }
}

#[test]
fn leaving_spends_no_attempt() {
    let job = running(under_way()).0.job;
    assert_eq!(verdict(&job, PAID, End::Interrupted, PLAIN, NOW), Settlement::Release);
}

/// B9: N retries are N + 1 attempts.
#[test]
fn the_last_try_fails_for_good() {
    let kinds = (0..4).map(|failures| {
        let mut job = running(under_way()).0.job;
        job.failures = vec![earlier(); failures];
        match verdict(&job, PAID, End::AttemptTimedOut, PLAIN, NOW) {
            Settlement::Retry { .. } => StateKind::Queued,
            Settlement::Fail { .. } => StateKind::Failed,
            other => panic!("{other:?}"),
        }
    });
    use StateKind::{Failed, Queued};
    assert_eq!(kinds.collect::<Vec<_>>(), [Queued, Queued, Failed, Failed]);
}

#[test]
fn a_wait_beyond_the_jobs_life_fails_at_once() {
    let mut job = running(under_way()).0.job;
    for (millis, fails) in [(1_000, true), (2_000, true), (2_001, false)] {
        job.new.life = Some(Duration::from_millis(millis));
        let settlement = verdict(&job, PAID, End::AttemptTimedOut, PLAIN, NOW);
        assert_eq!(matches!(settlement, Settlement::Fail { .. }), fails, "{settlement:?}");
    }
}

#[test]
fn waits_double_spread_and_honour_the_provider() {
    let seconds = Duration::from_secs;
    let jittered = RetryPolicy { jitter: 1.0, ..PLAIN };
    let cases = [
        (PLAIN, 0, None, seconds(2)),
        (PLAIN, 1, None, seconds(4)),
        (PLAIN, 2, None, seconds(8)),
        (PLAIN, 99, None, seconds(300)),
        (jittered, 0, None, seconds(3)),
        (PLAIN, 0, Some(seconds(30)), seconds(30)),
        (PLAIN, 2, Some(seconds(1)), seconds(8)),
        (PLAIN, 0, Some(seconds(86_400)), seconds(300)),
    ];
    for (retrying, failures, asked_for, expected) in cases {
        assert_eq!(retrying.wait(failures, asked_for), expected, "{failures} {asked_for:?}");
    }
}
