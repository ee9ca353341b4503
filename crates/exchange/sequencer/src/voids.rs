//! Declaring a position void: a request that no venue survives must not be executed by any.
//!
//! A request may bring the matching engine down: a panic, an endless loop, memory without end. It is decided, so every venue
//! executes it, and every venue falls, again after each restart (BATS lost a twelfth of the market to one order type, 2012). The
//! obvious way out, skipping what made one fail, forks the exchange as soon as the failure was not the request's
//! fault: the next venue executes it, hands out a trade, and the two histories differ. So *executed* and *void* exclude
//! each other by agreement, on one word beside the window:
//!
//! ```text
//!               vouch(q), q > p                       void(p)                        vouch(q), q > p
//!   (p, good) ------------------> (q, good)  (p, good) -------> (p, void) -------------------------> (q, good)
//!      a venue has executed all below                 no venue has executed p,      p stands in the table of voids
//!      q and may hand the results out                 and none ever will            before the word moves on
//! ```
//! A venue hands nothing out before it has vouched for it, once per batch: a load if another was first, else one
//! compare-and-swap. A venue that failed at `p` vouches for all below it and then asks for `p` to be void; it gets that only if
//! no venue has vouched for `p`. A venue that had executed `p` and comes too late to vouch is *overruled*: what it
//! has is not the exchange's history, and it restores itself.
//!
//! **A slow venue** may meet the word long after it has moved on. The table tells it: a void is in the table before the word
//! leaves it, so who sees the word beyond `p` sees whether `p` is void.
//!
//! Source: the reliability specification, "poison message"; the paper has nothing on it.

use core::fmt;

use pares_types::Position;

use crate::window::{Memory, Window};

/// Positions of one epoch that can be declared void. An engine that needs more is broken, and its shard stalls.
pub const VOIDS_MAX: usize = 64;

/// The word beside the window: up to where a venue has executed, and whether the position there is void.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vouched {
    /// A venue has executed all below.
    pub to: Position,
    /// No venue has executed, nor will ever execute, the position `to` itself.
    pub is_void: bool,
}

impl Vouched {
    /// All below `to` is executed, nothing is said of `to`.
    #[must_use]
    pub fn good(to: Position) -> Self {
        Self { to, is_void: false }
    }

    /// The packed form, for memories: the position above one bit.
    #[must_use]
    pub fn to_bits(self) -> u64 {
        self.to.0 << 1 | u64::from(self.is_void)
    }

    /// The word of a packed form.
    #[must_use]
    pub fn from_bits(bits: u64) -> Self {
        Self { to: Position(bits >> 1), is_void: bits & 1 == 1 }
    }
}

/// What became of the wish to have a position void.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Voiding {
    /// It is void, for all venues and for good.
    Void,
    /// Another venue has executed it: it stands, and a venue that fails at it takes that venue's state.
    Stands,
    /// Too many positions are void already ([`VOIDS_MAX`]), or this order has no way to agree on it.
    Refused,
}

/// The caller has executed a position that is void. Nothing it has from there on may be handed out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Overruled {
    /// The first such position.
    pub position: Position,
}

impl fmt::Display for Overruled {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "position {} is void but was executed here: restore the shard from the record",
            self.position
        )
    }
}

impl std::error::Error for Overruled {}

/// A void that one handle has heard of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Heard {
    position: Position,
    /// Whether the handle's user learned it before it executed the position.
    in_time: bool,
}

impl<M: Memory> Window<M> {
    /// As [`crate::Sequencer::is_void`].
    #[inline]
    pub(crate) fn void_at(&mut self, position: Position) -> bool {
        self.hear(position);
        if self.voids.is_empty() {
            return false;
        }
        let heard = self.voids.iter_mut().rev().find(|heard| heard.position == position);
        heard.map(|heard| heard.in_time = true).is_some()
    }

    /// Reads what the table has beyond what is known; the user is about to ask or vouch for `at`, so it has
    /// executed what lies before.
    #[inline]
    fn hear(&mut self, at: Position) {
        let count = self.memory().voids();
        while self.voids.len() < count {
            let position = self.memory().void(self.voids.len());
            self.voids.push(Heard { position, in_time: position >= at });
        }
    }

    /// As [`crate::Sequencer::vouch`].
    #[inline]
    pub(crate) fn vouch_for(&mut self, from: Position, to: Position) -> Result<(), Overruled> {
        loop {
            let word = self.memory().vouched();
            if word.is_void && word.to < to {
                self.enter(word.to);
            }
            // After the word: what it has left behind is in the table by now.
            self.hear(to);
            let mut missed = self.voids.iter().filter(|heard| !heard.in_time && heard.position >= from);
            if let Some(first) = missed.find(|heard| heard.position < to) {
                return Err(Overruled { position: first.position });
            }
            if word.to >= to || self.memory().compare_exchange_vouched(word, Vouched::good(to)).is_ok() {
                return Ok(());
            }
            // Another venue has moved the word, always forward: nobody waits, and soon it is beyond `to`.
        }
    }

    /// As [`crate::Sequencer::void`].
    pub(crate) fn declare_void(&mut self, position: Position) -> Voiding {
        let pending = Vouched { to: position, is_void: true };
        let mut word = self.memory().vouched();
        assert!(
            word.to >= position,
            "{position} is to be void before all below it are vouched for: {word:?}"
        );
        if word == Vouched::good(position) {
            if self.memory().voids() == VOIDS_MAX {
                return Voiding::Refused;
            }
            word = match self.memory().compare_exchange_vouched(word, pending) {
                Ok(()) => pending,
                Err(found) => found,
            };
        }
        if word == pending {
            self.enter(position);
            return Voiding::Void;
        }
        if self.void_at(position) { Voiding::Void } else { Voiding::Stands }
    }

    /// Puts the pending void into the table, unless another venue has: there is one at a time, and the next cannot come before
    /// the word has moved on, which is after this.
    fn enter(&self, position: Position) {
        let count = self.memory().voids();
        if count == 0 || self.memory().void(count - 1) < position {
            self.memory().add_void(count, position);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_word_keeps_position_and_mark_apart() {
        for to in [Position(0), Position(7), crate::POSITION_MAX] {
            for is_void in [false, true] {
                let word = Vouched { to, is_void };
                assert_eq!(Vouched::from_bits(word.to_bits()), word);
            }
        }
    }
}
