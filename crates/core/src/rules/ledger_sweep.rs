//! The removal of expired rows from the ledger.

use crate::Day;

/// The number of days that a row of the ledger is kept.
const LEDGER_DAYS: i64 = 400;

/// The number of consecutive UTC days on which old rows must have been found before any is removed. One start with a
/// wrong clock must not erase the ledger.
const SWEEP_DAYS: i64 = 8;

/// Returns the last day whose rows are old enough to be removed one day. A sweep that finds such rows is recorded.
pub fn ledger_old_until(today: Day) -> Day {
    Day(today.0.saturating_sub(LEDGER_DAYS))
}

/// Returns the last day whose rows may be removed now; `None` if a day is missing. `sweeps` must record sweeps on
/// consecutive days up to this one, each long enough after that last day.
pub fn ledger_removable_until(sweeps: &[Day], today: Day) -> Option<Day> {
    let first = Day(today.0.saturating_sub(SWEEP_DAYS - 1));
    let mut days = (first.0..=today.0).map(Day);
    days.all(|day| sweeps.contains(&day)).then(|| ledger_old_until(first))
}

/// Returns the first day whose record of a sweep is still needed.
pub fn sweeps_needed_from(today: Day) -> Day {
    Day(today.0.saturating_sub(SWEEP_DAYS))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// G6: a row of day 0 is removed after eight sweeps on consecutive days from day 400 on.
    #[test]
    fn g6_a_row_is_removed_only_after_sweeps_on_eight_consecutive_days() {
        let removable = |sweeps: &[i64], today| {
            let sweeps: Vec<Day> = sweeps.iter().copied().map(Day).collect();
            ledger_removable_until(&sweeps, Day(today))
        };
        assert_eq!(ledger_old_until(Day(400)), Day(0));
        let days: Vec<i64> = (400..=407).collect();
        assert_eq!(removable(&days, 407), Some(Day(0)));
        assert_eq!(removable(&days[1..], 407), None, "seven days");
        assert_eq!(removable(&[401, 400, 402, 404, 405, 406, 407, 408], 408), None, "a gap");
        assert_eq!(removable(&days, 408), None, "today is not recorded");
        assert_eq!(removable(&[5_000], 5_000), None, "a clock that is far ahead once");
        assert!(sweeps_needed_from(Day(407)) <= Day(400));
    }
}
