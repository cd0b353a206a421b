//! The sharing of limited resources between owners: waiting polls, connections, bytes of requests (F10).

/// The number of owners of a resource: one or several.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// One owner alone, who may use all of it.
    OneOwner,
    /// Several owners: none may take more than it leaves for the others.
    SeveralOwners,
}

/// Returns whether an owner who has `own` of the `taken` parts may take `more`, of `in_all` parts.
///
/// Of several owners the first may take half, the next half of the rest, and so on. A new owner finds a free part as
/// long as there is one, and the owner with the most parts is refused first.
pub fn may_take(own: usize, taken: usize, more: usize, in_all: usize, sharing: Sharing) -> bool {
    let free = in_all.saturating_sub(taken);
    match sharing {
        Sharing::OneOwner => more <= free,
        Sharing::SeveralOwners => own.saturating_add(more) <= free,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F10: the number of the eight parts that each of several owners gets, if they take all they can one after
    /// another.
    #[test]
    fn f10_no_owner_takes_more_than_they_leave_for_others() {
        for (sharing, expected) in
            [(Sharing::SeveralOwners, [4, 2, 1, 1, 0]), (Sharing::OneOwner, [8, 0, 0, 0, 0])]
        {
            let mut got = [0; 5];
            for owner in 0..5 {
                while may_take(got[owner], got.iter().sum(), 1, 8, sharing) {
                    got[owner] += 1;
                }
            }
            assert_eq!(got, expected, "{sharing:?}");
        }
        assert!(!may_take(0, 0, 9, 8, Sharing::OneOwner));
        assert!(may_take(0, 4, 4, 8, Sharing::SeveralOwners));
        assert!(!may_take(1, 4, 4, 8, Sharing::SeveralOwners));
    }
}
