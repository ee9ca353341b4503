//! What many instruments cost: the flow of one spread over many books, and the memory of a book that nobody uses.
//!
//! An exchange lists thousands of instruments, and most of the trading is in a few hundred of them. A flow spread evenly
//! would find every book cold, which no market does; one that stays in ten books finds them all warm. So the k-th
//! instrument gets a share proportional to 1/k (Zipf): of 10,000 the first 300 get about two thirds.

use pares_book::Book;
use pares_flow::{BookMessage, Random};

use crate::Books;

/// The messages spread over `count` instruments: all about one order go to one of them.
///
/// # Panics
/// If there is no instrument, or 2^32 of them.
#[must_use]
pub fn spread(messages: &[BookMessage], count: usize, seed: u64) -> Vec<BookMessage> {
    let mut random = Random::new(seed);
    let sums = Vec::from_iter(shares(count));
    let total = *sums.last().expect("at least one instrument");
    let orders = messages.iter().map(|message| message.id).max().unwrap_or(0);
    let instruments: Vec<u32> = (0..=orders)
        .map(|_| {
            let drawn = random.below(total);
            let place = sums.partition_point(|&sum| sum <= drawn);
            1 + u32::try_from(place).expect("instrument ids are 32 bits wide")
        })
        .collect();
    messages
        .iter()
        .map(|message| BookMessage { instrument: instruments[message.id as usize], ..*message })
        .collect()
}

/// Running sums of 1, 1/2, 1/3, ... in billionths.
fn shares(count: usize) -> impl Iterator<Item = u64> {
    (1..=count as u64).scan(0, |sum, rank| {
        *sum += 1_000_000_000 / rank.min(1_000_000_000);
        Some(*sum)
    })
}

/// Memory of this process that one more book takes before anything happens in it, in bytes: the mean over
/// `count` of them. `None` where the system does not tell.
///
/// # Panics
/// If there is no book.
#[must_use]
pub fn idle_book_bytes<B: Book>(count: usize) -> Option<u64> {
    assert!(count > 0, "no book has no mean");
    let before = resident_bytes()?;
    let books = Books::<B>::with_instruments(count);
    let after = resident_bytes()?;
    drop(std::hint::black_box(books));
    Some(after.saturating_sub(before) / count as u64)
}

/// Memory of this process that is there, in bytes; `None` where the system does not tell.
#[must_use]
pub fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use pares_flow::BookScenario;

    use super::*;

    #[test]
    fn an_order_stays_in_its_instrument() {
        let messages = spread(&BookScenario::ALL[1].messages_of(1, 5_000), 10, 1);
        let mut of_order = BTreeMap::new();
        for message in &messages {
            assert!((1..=10).contains(&message.instrument));
            assert_eq!(*of_order.entry(message.id).or_insert(message.instrument), message.instrument);
        }
    }

    #[test]
    fn a_few_instruments_get_most_of_the_flow() {
        let messages = spread(&BookScenario::ALL[1].messages_of(1, 20_000), 10_000, 1);
        let first = messages.iter().filter(|message| message.instrument <= 300).count();
        assert!((60..68).contains(&(first * 100 / messages.len())), "{first} of {}", messages.len());
    }

    #[test]
    fn one_instrument_gets_it_all() {
        let messages = BookScenario::ALL[1].messages_of(1, 100);
        assert_eq!(spread(&messages, 1, 1), messages);
    }
}
