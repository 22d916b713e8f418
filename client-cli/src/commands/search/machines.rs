//! Portions of one machine stand together, so that one machine does not look like many.

use super::candidate::Candidate;
use protocol::ids::HostId;

/// Portions of one machine together, where the first of them stands; else in the order that they have.
pub(super) fn by_machine(candidates: &[Candidate]) -> Vec<&Candidate> {
    let mut machines: Vec<HostId> = Vec::new();
    for candidate in candidates {
        if !machines.contains(&candidate.host()) {
            machines.push(candidate.host());
        }
    }
    let place = |one: &Candidate| machines.iter().position(|host| *host == one.host());
    let mut grouped: Vec<&Candidate> = candidates.iter().collect();
    grouped.sort_by_key(|one| place(one));
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixtures::offers;

    // peers 3.1 #6: one machine is not several offers all over the list.
    #[test]
    fn portions_of_a_machine_stand_together_where_its_first_does() {
        let pool = |gpus| offers::portion_of(1, offers::pool(1, 4, 100), gpus, 100);
        let other = offers::candidate(2, 1, 150);
        let sorted = [pool(1), other, pool(2), pool(4)];
        let shown: Vec<(bool, u16)> = by_machine(&sorted)
            .into_iter()
            .map(|one| (one.host() == sorted[0].host(), one.gpus))
            .collect();
        assert_eq!(shown, [(true, 1), (true, 2), (true, 4), (false, 1)]);
    }
}
