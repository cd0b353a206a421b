//! How owners share what there is only so much of: waiting polls, connections, bytes of requests (F10).

/// Whether more than one owner wants a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sharing {
    /// One owner alone, who may take everything.
    OneOwner,
    /// Several: no owner may take more than it leaves for the others.
    SeveralOwners,
}

/// Whether an owner who has `own` of the `taken` parts may take `more`, of which there are `in_all`.
///
/// Of several owners the first may take half, the next half of what is left, and so on: a new owner finds room as
/// long as there is any, and the owner with the most gives way first.
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

    /// F10: so many of eight does each of several owners get who take all they can, one owner after another.
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
