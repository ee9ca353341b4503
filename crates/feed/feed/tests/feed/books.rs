//! The fast books show what the obviously right ones show, after every message, honest or not.

use pares_feed::books::ReceivedBooks;
use pares_feed::itch::{
    AddOrder, Cancelled, Cross, Deleted, Directory, Executed, ExecutedAt, Head, Imbalance, Replaced, Trade,
    TradingAction,
};
use pares_types::{Side, Timestamp};
use proptest::prelude::*;
use zerocopy::{FromZeros, Immutable, IntoBytes};

use crate::tape;
use crate::twin::TwinBooks;

/// What a message says: small numbers, so that messages meet.
#[derive(Clone, Debug)]
struct Said {
    kind: u8,
    locate: u16,
    reference: u64,
    other: u64,
    buys: bool,
    shares: u32,
    price: u32,
    length: usize,
}

fn said() -> impl Strategy<Value = Said> {
    let kind = prop::sample::select(&b"AAAAAAAADDDEEXXUUUCPQIHRSB?"[..]);
    let locate = prop_oneof![8 => 1..3_u16, 1 => Just(0), 1 => Just(u16::MAX)];
    let reference = || prop_oneof![9 => 0..40_u64, 1 => any::<u64>()];
    let price = prop_oneof![9 => 0..12_u32, 1 => any::<u32>()];
    let shares = prop_oneof![9 => 0..5_u32, 1 => any::<u32>()];
    let length = prop_oneof![30 => Just(usize::MAX), 1 => 0..40_usize];
    let numbers = (reference(), reference(), shares, price);
    (kind, locate, numbers, any::<bool>(), length).prop_map(
        |(kind, locate, (reference, other, shares, price), buys, length)| Said {
            kind,
            locate,
            reference,
            other,
            buys,
            shares,
            price,
            length,
        },
    )
}

fn bytes(message: &(impl IntoBytes + Immutable)) -> Vec<u8> {
    message.as_bytes().to_vec()
}

fn message(said: &Said) -> Vec<u8> {
    let head = Head::new(said.kind, said.locate, Timestamp(0));
    let (reference, shares, price) = (said.reference.into(), said.shares.into(), said.price.into());
    let side = if said.buys { b'B' } else { b'S' };
    let mut message = match said.kind {
        b'A' => bytes(&AddOrder { head, reference, side, shares, stock: *b"AAAAAAAA", price }),
        b'D' => bytes(&Deleted { head, reference }),
        b'E' => bytes(&Executed { head, reference, shares, match_number: 1.into() }),
        b'C' => {
            let printable = if said.buys { b'Y' } else { b'N' };
            bytes(&ExecutedAt { head, reference, shares, match_number: 1.into(), printable, price })
        }
        b'X' => bytes(&Cancelled { head, reference, shares }),
        b'U' => bytes(&Replaced { head, original: reference, reference: said.other.into(), shares, price }),
        b'P' => bytes(&Trade { head, shares, price, ..Trade::new_zeroed() }),
        b'Q' => bytes(&Cross { head, shares: said.reference.into(), price, ..Cross::new_zeroed() }),
        b'I' => {
            let direction = if said.buys { b'N' } else { b'O' };
            bytes(&Imbalance { head, direction, near: price, paired: reference, ..Imbalance::new_zeroed() })
        }
        b'H' => bytes(&TradingAction { head, state: b'T', ..TradingAction::new_zeroed() }),
        b'R' => bytes(&Directory { head, stock: *b"BBBB    ", ..Directory::new_zeroed() }),
        _ => bytes(&head),
    };
    message.truncate(said.length);
    message
}

fn listed() -> Vec<Vec<u8>> {
    let list = |locate| {
        let head = Head::new(Directory::KIND, locate, Timestamp(0));
        bytes(&Directory { head, stock: *b"AAAA    ", ..Directory::new_zeroed() })
    };
    [1, 2].map(list).to_vec()
}

fn slices(messages: &[Vec<u8>]) -> Vec<&[u8]> {
    messages.iter().map(Vec::as_slice).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn whatever_comes_the_fast_books_show_what_the_right_ones_show(
        said in prop::collection::vec(said(), 1..150),
        orders_max in prop_oneof![Just(12_usize), Just(usize::MAX)],
        seed in any::<u64>(),
    ) {
        let (mut fast, mut twin) = (ReceivedBooks::new(orders_max, seed), TwinBooks::new(orders_max));
        let messages: Vec<Vec<u8>> = listed().into_iter().chain(said.iter().map(message)).collect();
        for message in &messages {
            fast.on_message(message);
            twin.on_message(message);
            twin.assert_shown_by(&fast);
        }
        let mut together = ReceivedBooks::new(orders_max, !seed);
        together.on_messages(&slices(&messages));
        prop_assert_eq!(&together, &fast);
    }
}

#[test]
fn books_of_published_session_are_right() {
    for seed in 0..100 {
        for published in tape(seed).0 {
            let (mut fast, mut twin) = (ReceivedBooks::with_seed(0), TwinBooks::new(usize::MAX));
            published.messages.iter().for_each(|message| twin.on_message(message));
            fast.on_messages(&slices(&published.messages));
            twin.assert_shown_by(&fast);
            assert_eq!(fast.misfits, 0);
        }
    }
}

#[test]
fn books_of_any_depth_are_the_right_ones() {
    let (mut fast, mut twin) = (ReceivedBooks::with_seed(0), TwinBooks::new(usize::MAX));
    let mut seed = 1_u64;
    let mut next = || {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        seed >> 33
    };
    let mut messages = listed();
    for reference in 0..40_000 {
        let head = Head::new(AddOrder::KIND, 1, Timestamp(0));
        let (side, price) = (if next() % 2 == 0 { b'B' } else { b'S' }, (next() as u32 % 5_000).into());
        let add = AddOrder {
            head,
            reference: reference.into(),
            side,
            shares: 7.into(),
            stock: *b"AAAA    ",
            price,
        };
        messages.push(bytes(&add));
        if reference > 10_000 {
            let head = Head::new(Deleted::KIND, 1, Timestamp(0));
            messages.push(bytes(&Deleted { head, reference: (next() % reference).into() }));
        }
    }
    for batch in messages.chunks(3_000) {
        fast.on_messages(&slices(batch));
        batch.iter().for_each(|message| twin.on_message(message));
        twin.assert_shown_by(&fast);
    }
}

#[test]
fn books_equal_if_they_show_the_same() {
    let add = |reference| {
        let head = Head::new(AddOrder::KIND, 1, Timestamp(0));
        let (side, stock) = (b'B', *b"AAAA    ");
        let (shares, price) = (7.into(), 9.into());
        bytes(&AddOrder { head, reference: u64::into(reference), side, shares, stock, price })
    };
    let of = |references: &[u64]| {
        let mut books = ReceivedBooks::with_seed(0);
        listed().iter().for_each(|message| books.on_message(message));
        references.iter().for_each(|reference| books.on_message(&add(*reference)));
        books
    };
    assert_eq!(of(&[1, 2, 3]), of(&[3, 1, 2]));
    assert_ne!(of(&[1, 2, 3]), of(&[1, 2]));
    let references: Vec<u64> =
        of(&[3, 1, 2]).book(1).unwrap().orders(Side::Buy).map(|(_, _, reference)| reference).collect();
    assert_eq!(references, [1, 2, 3], "queues are in the order of their references");
}
