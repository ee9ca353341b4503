//! Tellers: clients that transfer money all the time, and keep every slip.
//!
//! A teller belongs to a cluster and uses its sites. If none of them answers it goes to the other cluster's, under the same number, and
//! repeats what it has no answer for: the sites see to it that this is done once. It does not take that for granted: its slips are held
//! against the books in the end.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pares_link::Door;
use pares_site::protocol::Code;
use pares_site::{CallError, Client};

use crate::bank::VAULT;
use crate::board::{Shared, Tally};

/// Then the teller looks whether it should end, and asks again.
const PATIENCE: Duration = Duration::from_secs(3);
/// How often a teller that is away looks whether its own cluster is back.
const HOMESICK: Duration = Duration::from_secs(1);

/// Before the next customer, when one was refused: an answer of no costs nothing, and would be asked for without end.
const AFTER_NO: Duration = Duration::from_millis(5);

/// What a teller knows of a slip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// Acknowledged: it must be in the books, once.
    Done,
    /// Told that nothing has changed: it must not be in the books.
    Not,
    /// The bank closed before there was an answer: once or not at all.
    Unknown,
}

/// One movement of money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Slip {
    /// Its name in the books.
    pub name: String,
    /// The account that pays.
    pub from: String,
    /// The account that receives.
    pub to: String,
    /// How much.
    pub sum: i64,
    /// What came of it.
    pub fate: Fate,
}

/// Who a teller is.
#[derive(Clone, Debug)]
pub struct Teller {
    /// Unique among all clients.
    pub number: u64,
    /// The cluster it belongs to.
    pub home: u8,
    /// Its own cluster's sites, then the others'.
    pub sites: Vec<Door>,
    /// How many of them are its own cluster's.
    pub own: usize,
    /// All accounts, its own cluster's customers first.
    pub accounts: Vec<String>,
}

impl Teller {
    /// Begins to work, until `close`; gives up what has no answer at `give_up`. Its slips are the thread's result.
    pub fn start(
        self,
        board: &Shared,
        close: &Arc<AtomicBool>,
        give_up: &Arc<AtomicBool>,
    ) -> JoinHandle<Vec<Slip>> {
        let (board, close, give_up) = (board.clone(), Arc::clone(close), Arc::clone(give_up));
        std::thread::spawn(move || {
            let mut client = Client::new(self.number, 0, self.sites.clone());
            let (mut dice, mut slips, mut looked) = (Dice(self.number), Vec::new(), Instant::now());
            while !close.load(Ordering::Relaxed) {
                if looked.elapsed() > HOMESICK {
                    looked = Instant::now();
                    let at_home = self.sites[..self.own].iter().any(|door| door.address() == client.site());
                    if !at_home && board.lock().serves(self.home) {
                        client = Client::new(self.number, slips.len() as u64, self.sites.clone());
                    }
                }
                let (request, mut slip) = self.errand(slips.len(), &mut dice);
                slip.fate = self.carry_out(&request, &mut client, &board, &give_up);
                if slip.fate == Fate::Not {
                    std::thread::sleep(AFTER_NO);
                }
                slips.push(slip);
            }
            slips
        })
    }

    /// What the next customer wants.
    fn errand(&self, count: usize, dice: &mut Dice) -> (String, Slip) {
        let customers = self.accounts.len() / 2;
        let own = &self.accounts[dice.below(customers)];
        let other = &self.accounts[dice.below(self.accounts.len())];
        let (name, sum) = (format!("t{}-{count:08}", self.number), 1 + dice.below(60) as i64);
        let slip = |from: &str, to: &str, sum| Slip {
            name: name.clone(),
            from: from.to_owned(),
            to: to.to_owned(),
            sum,
            fate: Fate::Unknown,
        };
        match dice.below(20) {
            0 => (format!("deposit {own} {sum} {name}"), slip(VAULT, own, sum)),
            1 | 2 => (format!("interest {own} 1 {name}"), slip(VAULT, own, 1)),
            _ => (format!("transfer {own} {other} {sum} {name}"), slip(own, other, sum)),
        }
    }

    fn carry_out(&self, request: &str, client: &mut Client, board: &Shared, give_up: &AtomicBool) -> Fate {
        let (began, repeats) = (Instant::now(), client.repeats());
        let mut answer = client.execute(request.as_bytes(), PATIENCE);
        // Without an answer it is not known whether it was done. Under the same number it is not done again.
        while is_open(&answer, client.repeats() > repeats) && !give_up.load(Ordering::Relaxed) {
            std::thread::sleep(AFTER_NO);
            answer = client.execute_again(request.as_bytes(), PATIENCE);
        }
        let unknown = is_open(&answer, client.repeats() > repeats);
        let mut board = board.lock();
        let tally: &mut Tally = board.tallies.entry(self.home).or_default();
        tally.repeated += client.repeats() - repeats;
        match answer {
            Ok(_) => {
                tally.done(began.elapsed());
                Fate::Done
            }
            Err(CallError::No { code: Code::Refused, .. }) => {
                tally.refused += 1;
                Fate::Not
            }
            Err(_) if unknown => Fate::Unknown,
            Err(_) => {
                tally.turned_away += 1;
                Fate::Not
            }
        }
    }
}

/// Whether what became of a request is not known yet. That a site cannot do it now says nothing of another site that was asked before.
fn is_open(answer: &Result<Vec<u8>, CallError>, repeated: bool) -> bool {
    match answer {
        Ok(_) | Err(CallError::No { code: Code::Refused, .. }) => false,
        Err(CallError::No { .. } | CallError::Shut(_)) => repeated,
        Err(CallError::Silence(_)) => true,
    }
}

/// Enough chance for customers (splitmix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_site_that_cannot_says_nothing_of_one_that_was_asked_before() {
        let no = |code| Err(CallError::No { code, why: String::new() });
        assert!(!is_open(&no(Code::Behind), false));
        assert!(is_open(&no(Code::Behind), true));
        assert!(!is_open(&no(Code::Refused), true) && !is_open(&Ok(Vec::new()), true));
        assert!(is_open(&Err(CallError::Silence(PATIENCE)), false));
    }
}
