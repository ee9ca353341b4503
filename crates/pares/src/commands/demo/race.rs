//! Who leads: the venue that won most positions in the last second.
//!
//! Nobody appoints a leader, so there is none to ask for. Venues count the positions they won; the one whose
//! count rises faster was first more often.

use std::collections::VecDeque;

use pares_types::VenueId;

use crate::venues::VenueState;

/// Samples over which a venue's share is taken.
const SAMPLES: usize = 4;

/// The race between the venues, sampled.
pub struct Race {
    won: Vec<u64>,
    lately: VecDeque<Vec<u64>>,
}

impl Race {
    /// A race that nobody has won anything in.
    pub fn new(venues: usize) -> Self {
        Self { won: vec![0; venues], lately: VecDeque::new() }
    }

    /// Takes in what the venues say now. One that restarted counts from 0.
    pub fn sample(&mut self, states: &[VenueState]) {
        let gain = |(now, before): (u64, u64)| if now < before { now } else { now - before };
        let won: Vec<u64> = states.iter().map(|state| state.won).collect();
        self.lately.push_back(won.iter().copied().zip(self.won.iter().copied()).map(gain).collect());
        self.won = won;
        if self.lately.len() > SAMPLES {
            self.lately.pop_front();
        }
    }

    /// Forgets the past: what a dead venue won says nothing about who leads.
    pub fn restart(&mut self) {
        self.lately.clear();
    }

    /// The venue that leads; the first if nothing was won.
    pub fn leading(&self) -> VenueId {
        let wins = self.wins();
        let most = wins.iter().max().copied().unwrap_or_default();
        let index = wins.iter().position(|&won| won == most).unwrap_or_default();
        VenueId(u16::try_from(index).expect("at most 16 venues"))
    }

    /// How many of a hundred positions each venue won.
    pub fn shares_percent(&self) -> Vec<u64> {
        let wins = self.wins();
        let all: u64 = wins.iter().sum();
        wins.iter().map(|won| (won * 100 + all / 2) / all.max(1)).collect()
    }

    fn wins(&self) -> Vec<u64> {
        (0..self.won.len()).map(|venue| self.lately.iter().map(|gains| gains[venue]).sum()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(won: [u64; 2]) -> [VenueState; 2] {
        won.map(|won| VenueState { won, ..VenueState::default() })
    }

    #[test]
    fn who_won_most_lately_leads() {
        let mut race = Race::new(2);
        race.sample(&states([1_000, 0]));
        (1..=SAMPLES as u64).for_each(|n| race.sample(&states([1_000 + n, 3 * n])));
        assert_eq!((race.leading(), race.shares_percent()), (VenueId(1), vec![25, 75]));
    }

    #[test]
    fn a_restarted_venue_counts_from_zero() {
        let mut race = Race::new(2);
        race.sample(&states([1_000, 10]));
        race.restart();
        race.sample(&states([5, 20]));
        assert_eq!((race.leading(), race.shares_percent()), (VenueId(1), vec![33, 67]));
    }
}
