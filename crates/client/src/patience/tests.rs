//! A table of expected results, and thousands of generated sequences compared with a trivial oracle.

use proptest::prelude::*;

use super::*;

fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

struct Case {
    what: &'static str,
    timeout: Option<u64>,
    reset: bool,
    total: Option<u64>,
    /// The times of progress notifications.
    events: &'static [u64],
    /// The limit that is reached, and its time.
    ends: Option<(Limit, u64)>,
}

#[test]
fn limits_are_reached_as_the_table_says() {
    let cases = [
        Case {
            what: "the default waits forever",
            timeout: None,
            reset: false,
            total: None,
            events: &[],
            ends: None,
        },
        Case {
            what: "D2: no progress, the timeout fires",
            timeout: Some(100),
            reset: true,
            total: None,
            events: &[],
            ends: Some((Limit::Idle, 100)),
        },
        Case {
            what: "D3: progress resets the window to now + timeout",
            timeout: Some(100),
            reset: true,
            total: None,
            events: &[99],
            ends: Some((Limit::Idle, 199)),
        },
        Case {
            what: "D4: progress stops, the window's timeout fires",
            timeout: Some(100),
            reset: true,
            total: None,
            events: &[50, 120],
            ends: Some((Limit::Idle, 220)),
        },
        Case {
            what: "D5: many resets keep a call alive",
            timeout: Some(100),
            reset: true,
            total: None,
            events: &[90, 180, 270, 360],
            ends: Some((Limit::Idle, 460)),
        },
        Case {
            what: "D6: with the flag off progress resets nothing",
            timeout: Some(100),
            reset: false,
            total: None,
            events: &[50, 90],
            ends: Some((Limit::Idle, 100)),
        },
        Case {
            what: "D7: the ceiling holds whatever comes",
            timeout: Some(100),
            reset: true,
            total: Some(250),
            events: &[90, 180, 240],
            ends: Some((Limit::Total, 250)),
        },
        Case {
            what: "D7: with a silent server, before a longer window",
            timeout: Some(900),
            reset: true,
            total: Some(300),
            events: &[],
            ends: Some((Limit::Total, 300)),
        },
        Case {
            what: "D7: with the flag off",
            timeout: Some(900),
            reset: false,
            total: Some(300),
            events: &[100],
            ends: Some((Limit::Total, 300)),
        },
        Case {
            what: "D7: alone",
            timeout: None,
            reset: true,
            total: Some(300),
            events: &[100],
            ends: Some((Limit::Total, 300)),
        },
        Case {
            what: "D7: both together: total",
            timeout: Some(100),
            reset: true,
            total: Some(200),
            events: &[99, 100],
            ends: Some((Limit::Total, 200)),
        },
        Case {
            what: "progress at the deadline is late",
            timeout: Some(100),
            reset: true,
            total: None,
            events: &[100],
            ends: Some((Limit::Idle, 100)),
        },
    ];
    for Case { what, timeout, reset, total, events, ends } in cases {
        let mut patience = Patience::new(limits(timeout, reset, total));
        for at in events {
            patience.progress(ms(*at));
        }
        let far = ms(1_000_000);
        match ends {
            None => assert_eq!(patience.look(far), PatienceVerdict::Wait { until: None }, "{what}"),
            Some((limit, due)) => {
                let early = events.iter().all(|at| *at < due);
                if early {
                    let wait = PatienceVerdict::Wait { until: Some(ms(due)) };
                    assert_eq!(patience.look(ms(due) - Duration::from_nanos(1)), wait, "{what}");
                }
                let end = PatienceVerdict::TimedOut { limit, due: ms(due) };
                assert_eq!(patience.look(ms(due)), end, "{what}");
                assert_eq!(patience.look(far), end, "{what}: for good");
            }
        }
    }
}

/// The checklist of timeouts, H: no 32-bit arithmetic, and no overflow.
#[test]
fn a_limit_of_centuries_is_only_long() {
    for long in [ms(1 << 31), ms(1 << 33), Duration::MAX] {
        let limits = RequestLimits {
            timeout: Some(long),
            reset_timeout_on_progress: true,
            ..RequestLimits::default()
        };
        let mut patience = Patience::new(limits);
        assert_eq!(patience.progress(ms(5)), ProgressNote::Counted);
        let until = ms(5).saturating_add(long);
        assert_eq!(patience.look(ms(1 << 30)), PatienceVerdict::Wait { until: Some(until) });
    }
}

fn limits(timeout: Option<u64>, reset: bool, total: Option<u64>) -> RequestLimits {
    RequestLimits {
        timeout: timeout.map(ms),
        reset_timeout_on_progress: reset,
        max_total_timeout: total.map(ms),
    }
}

/// Steps through time by one millisecond and returns the first time at which a limit is reached, and the
/// notifications that counted.
fn oracle(limits: RequestLimits, events: &[u64]) -> (Option<(Limit, u64)>, u64) {
    let mut window_began = 0;
    let mut notes = 0;
    for now in 0..=HORIZON {
        if limits.max_total_timeout.is_some_and(|total| ms(now) >= total) {
            return (Some((Limit::Total, now)), notes);
        }
        if limits.timeout.is_some_and(|window| ms(now - window_began) >= window) {
            return (Some((Limit::Idle, now)), notes);
        }
        for _ in events.iter().filter(|at| **at == now) {
            notes += 1;
            if limits.reset_timeout_on_progress {
                window_began = now;
            }
        }
    }
    (None, notes)
}

const HORIZON: u64 = 400;

fn any_limits() -> impl Strategy<Value = RequestLimits> {
    let timeout = proptest::option::weighted(0.8, 1..120_u64);
    let total = proptest::option::weighted(0.5, 1..300_u64);
    (timeout, any::<bool>(), total)
        .prop_map(|(timeout, reset, total)| limits(timeout, reset, total))
}

fn any_events() -> impl Strategy<Value = Vec<u64>> {
    proptest::collection::vec(0..HORIZON, 0..40).prop_map(|mut events| {
        events.sort_unstable();
        events
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]

    /// D2 to D7 and D10: no limit is reached early or late, and the right limit is named.
    #[test]
    fn the_machine_agrees_with_the_oracle(
        limits in any_limits(),
        events in any_events(),
        looks in proptest::collection::vec(0..HORIZON, 0..20),
    ) {
        let (end, notes) = oracle(limits, &events);
        let mut patience = Patience::new(limits);
        // Intermediate checks must not change anything, because a waiter wakes for many reasons.
        let progress = events.iter().map(|at| (*at, true));
        let mut steps: Vec<(u64, bool)> = progress.chain(looks.iter().map(|at| (*at, false))).collect();
        steps.sort_unstable();
        for (at, is_progress) in steps {
            if is_progress {
                patience.progress(ms(at));
            } else {
                patience.look(ms(at));
            }
        }
        let said = patience.look(ms(HORIZON));
        match end {
            Some((limit, at)) => prop_assert_eq!(said, PatienceVerdict::TimedOut { limit, due: ms(at) }),
            None => prop_assert!(matches!(said, PatienceVerdict::Wait { .. }), "{:?}", said),
        }
        prop_assert_eq!(patience.notes, notes);
    }
}
