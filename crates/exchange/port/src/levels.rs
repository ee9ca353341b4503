//! A book as prices and shares: what it looks like, what changed from one look to another, and a sum by which a client knows that it has the same.
//!
//! Handing every change to every reader makes slow ones fall behind for ever. Here nothing is queued: each reader receives the difference between the
//! book that it was sent last and the book of now, however much lies between. The numbers say so: each difference names the one that it builds on.

use std::collections::BTreeMap;

use pares_types::{Price, Quantity};

/// Prices of each side that are sent.
pub const DEPTH: usize = 100;
/// Prices of each side that the sum is made of.
const SUMMED: usize = 10;

/// The best prices of each side, best first, with the shares shown there.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Levels {
    /// Of buyers, the highest first.
    pub bids: Vec<(Price, Quantity)>,
    /// Of sellers, the lowest first.
    pub offers: Vec<(Price, Quantity)>,
}

impl Levels {
    /// The changes that make this of `before`: prices with their shares now, 0 for one that is gone.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self { bids: changed(&before.bids, &self.bids), offers: changed(&before.offers, &self.offers) }
    }

    /// CRC-32 (IEEE) of the text of the ten best bids, then the ten best offers, each `price:shares;` in whole price units and shares.
    #[must_use]
    pub fn sum(&self) -> u32 {
        let best = self.bids.iter().take(SUMMED).chain(self.offers.iter().take(SUMMED));
        let text: String = best.map(|(price, shares)| format!("{}:{};", price.0, shares.0)).collect();
        crc32(text.as_bytes())
    }
}

fn changed(before: &[(Price, Quantity)], after: &[(Price, Quantity)]) -> Vec<(Price, Quantity)> {
    let (old, new): (BTreeMap<_, _>, BTreeMap<_, _>) =
        (before.iter().copied().collect(), after.iter().copied().collect());
    let gone = before
        .iter()
        .filter(|(price, _)| !new.contains_key(price))
        .map(|(price, _)| (*price, Quantity::ZERO));
    gone.chain(after.iter().copied().filter(|(price, shares)| old.get(price) != Some(shares))).collect()
}

/// Bit by bit: a book's best prices are some hundred bytes.
fn crc32(bytes: &[u8]) -> u32 {
    const POLYNOMIAL: u32 = 0xedb8_8320;
    !bytes.iter().fold(u32::MAX, |sum, byte| {
        (0..8).fold(sum ^ u32::from(*byte), |sum, _| (sum >> 1) ^ (POLYNOMIAL * (sum & 1)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn levels(bids: &[(i64, u64)], offers: &[(i64, u64)]) -> Levels {
        let side = |side: &[(i64, u64)]| {
            side.iter().map(|(price, shares)| (Price(*price), Quantity(*shares))).collect()
        };
        Levels { bids: side(bids), offers: side(offers) }
    }

    #[test]
    fn a_difference_names_what_came_what_changed_and_what_is_gone() {
        let before = levels(&[(9, 5), (8, 5)], &[(10, 1)]);
        let after = levels(&[(9, 4), (7, 1)], &[(10, 1)]);
        assert_eq!(after.since(&before), levels(&[(8, 0), (9, 4), (7, 1)], &[]));
        assert_eq!(after.since(&after), Levels::default());
        assert_eq!(after.since(&Levels::default()), after);
    }

    #[test]
    fn the_sum_is_the_known_crc_of_the_text() {
        assert_eq!(crc32(b"123456789"), 0xcbf4_3926);
        let book = levels(&[(9, 4), (7, 1)], &[(10, 1)]);
        assert_eq!(book.sum(), crc32(b"9:4;7:1;10:1;"));
        let deep: Vec<(i64, u64)> = (1..=20).map(|price| (price, 1)).collect();
        assert_eq!(levels(&[], &deep).sum(), levels(&[], &deep[..10]).sum());
    }
}
