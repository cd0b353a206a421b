//! The order in which owners are served. Priority counts within an owner; between owners the slots are shared (F10).

use std::cmp::Ordering;

/// An owner's position among the owners with jobs in the queue: the smallest is served next. The fields are compared
/// in their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Turn {
    /// The number of the owner's running jobs that came from the queue. The owner with the fewest is served first.
    pub running: u64,
    /// The number of the claim that served the owner last, zero before the first. Of owners with equally many running
    /// jobs, the one who has waited longest is served first.
    pub served: u64,
    /// The order in which owners first used the store.
    pub arrived: u64,
}

/// Counts the jobs of another owner, who has `queued` of them in the queue, that are claimed before the job of `mine`
/// that has `before` own ones before it. The count assumes that claims follow one another, no job ends and no job is
/// added.
///
/// Each claim raises its owner's running jobs by one, so my job is claimed when I have `mine.running + before` of
/// them. The other owner is served until they have as many, and once more if they come first among equals: the owner
/// who had to be served to become equal comes after the one who was not.
pub fn jobs_ahead(mine: &Turn, before: u64, other: &Turn, queued: u64) -> u64 {
    let first = match other.running.cmp(&mine.running) {
        Ordering::Greater => true,
        Ordering::Less => false,
        Ordering::Equal => other < mine,
    };
    let until = mine.running + before + u64::from(first);
    until.saturating_sub(other.running).min(queued)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F10: the table of the rule.
    #[test]
    fn f10_the_owner_with_the_fewest_running_jobs_is_next_then_the_one_who_waited_longest() {
        let turn = |running, served, arrived| Turn { running, served, arrived };
        let in_order = [turn(0, 0, 2), turn(0, 0, 3), turn(0, 9, 1), turn(1, 0, 0), turn(1, 4, 0)];
        assert!(in_order.is_sorted(), "{in_order:?}");
    }

    /// Compares with simulated claims, for every small queue of three owners.
    #[test]
    fn the_jobs_ahead_are_those_that_claims_take_first() {
        let numbers = || 0..81_u64;
        for (running, queued) in numbers().flat_map(|a| numbers().map(move |b| (a, b))) {
            let digits = |n: u64| [n / 27, n / 9 % 3, n / 3 % 3].map(|digit| digit % 3);
            let (running, queued) = (digits(running), digits(queued));
            for served in [[0, 0, 0], [3, 1, 2], [1, 0, 2]] {
                check(running, queued, served);
            }
        }
    }

    fn check(running: [u64; 3], queued: [u64; 3], served: [u64; 3]) {
        let start: Vec<Turn> = (0..3)
            .map(|at| Turn { running: running[at], served: served[at], arrived: at as u64 })
            .collect();
        let (mut turns, mut left, mut claims) = (start.clone(), queued, Vec::new());
        while let Some(next) = (0..3).filter(|at| left[*at] > 0).min_by_key(|at| turns[*at]) {
            left[next] -= 1;
            turns[next].running += 1;
            turns[next].served = turns.iter().map(|turn| turn.served).max().unwrap_or(0) + 1;
            claims.push(next);
        }
        for (place, owner) in claims.iter().enumerate() {
            let before = claims[..place].iter().filter(|claim| *claim == owner).count() as u64;
            let others = (0..3).filter(|at| at != owner);
            let counted: u64 =
                others.map(|at| jobs_ahead(&start[*owner], before, &start[at], queued[at])).sum();
            assert_eq!(
                counted + before,
                place as u64,
                "{running:?} {queued:?} {served:?} {claims:?}"
            );
        }
    }
}
