//! Who leads: the venue whose results were first on record in the last second.
//!
//! Nobody appoints a leader, so there is none to ask for; and a venue cannot tell, because proposals that agree
//! both stand. The record tells: each position is recorded once, from the venue that was first with it.

use std::collections::VecDeque;

use pares_types::VenueId;

/// Samples over which a venue's share is taken.
const SAMPLES: usize = 5;

/// The race between the venues, sampled.
pub struct Race {
    firsts: Vec<u64>,
    lately: VecDeque<Vec<u64>>,
}

impl Race {
    /// A race in which nobody has been first yet.
    pub fn new(venues: usize) -> Self {
        Self { firsts: vec![0; venues], lately: VecDeque::new() }
    }

    /// Takes in how many positions of the whole record each venue was first with.
    pub fn sample(&mut self, firsts: &[u64]) {
        self.lately.push_back(firsts.iter().zip(&self.firsts).map(|(now, before)| now - before).collect());
        self.firsts.copy_from_slice(firsts);
        if self.lately.len() > SAMPLES {
            self.lately.pop_front();
        }
    }

    /// Forgets the past: what a dead venue did says nothing about who leads.
    pub fn restart(&mut self) {
        self.lately.clear();
    }

    /// The venue that leads; the first if nobody was ahead.
    pub fn leading(&self) -> VenueId {
        let sums = self.sums();
        let most = sums.iter().max().copied().unwrap_or_default();
        let index = sums.iter().position(|&sum| sum == most).unwrap_or_default();
        VenueId(u16::try_from(index).expect("at most 16 venues"))
    }

    /// How many of a hundred positions each venue was first with.
    pub fn shares_percent(&self) -> Vec<u64> {
        let sums = self.sums();
        let all: u64 = sums.iter().sum();
        sums.iter().map(|sum| (sum * 100 + all / 2) / all.max(1)).collect()
    }

    fn sums(&self) -> Vec<u64> {
        (0..self.firsts.len()).map(|venue| self.lately.iter().map(|gains| gains[venue]).sum()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_was_first_most_often_lately_leads() {
        let mut race = Race::new(2);
        race.sample(&[1_000, 0]);
        (1..=SAMPLES as u64).for_each(|n| race.sample(&[1_000 + n, 3 * n]));
        assert_eq!((race.leading(), race.shares_percent()), (VenueId(1), vec![25, 75]));
    }

    #[test]
    fn a_dead_venues_past_is_forgotten() {
        let mut race = Race::new(2);
        race.sample(&[1_000, 10]);
        race.restart();
        race.sample(&[1_000, 20]);
        assert_eq!((race.leading(), race.shares_percent()), (VenueId(1), vec![0, 100]));
    }
}
