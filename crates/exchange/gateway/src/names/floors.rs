//! Of each series the number below which names may have been forgotten.
//!
//! There is room for so many of all members. Who has most makes room for one who has at least two fewer: nothing is kept of its lowest series
//! then, and the series' shards refuse what was forgotten.

use std::collections::BTreeMap;

use pares_table::SharedPlaces;
use pares_types::MemberId;

const FLOORS_MAX: usize = 1 << 18;

type Series = (MemberId, u16);

#[derive(Default)]
pub(super) struct Floors {
    floors: BTreeMap<Series, u64>,
    shares: SharedPlaces<MemberId>,
}

impl Floors {
    pub(super) fn is_below(&self, series: Series, number: u64) -> bool {
        self.floors.get(&series).is_some_and(|floor| number < *floor)
    }

    pub(super) fn raise(&mut self, series: Series, to: u64) {
        if let Some(floor) = self.floors.get_mut(&series) {
            *floor = (*floor).max(to);
        } else if self.makes_room(series.0) {
            self.shares.add(series.0);
            self.floors.insert(series, to);
        }
    }

    /// Whether there is room for one more series of the member, once one who has more has made it.
    fn makes_room(&mut self, member: MemberId) -> bool {
        if self.shares.total() < FLOORS_MAX {
            return true;
        }
        let Some(giver) = self.shares.giver(member).filter(|giver| *giver != member) else { return false };
        let lowest = self.floors.range((giver, 0)..).next().map(|(series, _)| *series);
        let lowest = lowest.filter(|series| series.0 == giver).expect("who gives a series has one");
        self.floors.remove(&lowest);
        self.shares.remove(giver);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_with_most_series_make_room_for_others() {
        let mut floors = Floors::default();
        for member in 1..=4 {
            (0..=u16::MAX).for_each(|series| floors.raise((MemberId(member), series), 9));
        }
        assert_eq!(floors.floors.len(), FLOORS_MAX);
        floors.raise((MemberId(5), 7), 3);
        floors.raise((MemberId(5), 7), 2);
        assert!(floors.is_below((MemberId(5), 7), 2) && !floors.is_below((MemberId(5), 7), 3));
        assert_eq!((floors.floors.len(), floors.shares.count(MemberId(4))), (FLOORS_MAX, 65_535));
        assert!(!floors.is_below((MemberId(4), 0), 1) && floors.is_below((MemberId(4), 1), 1));
    }
}
