//! What a copy hands out is the moment it was begun at, whatever is asked meanwhile.

use proptest::prelude::*;

use super::model::{IDS, command};
use super::*;
use crate::FastBook;
use crate::market::{Beside, Copied, KEPT_ORDERS_MAX, Pause};

fn write<B: Book>(out: &mut Vec<u8>, book: &B, beside: Beside, _: Pause<'_>) {
    let text = format!("{:?} {:?} {beside:?}\n", book.instrument(), book.snapshot());
    out.extend_from_slice(text.as_bytes());
}

/// All books, at once.
fn written<B: Book>(market: &Market<B>) -> Vec<u8> {
    let mut out = Vec::new();
    for (book, beside) in market.books().iter().zip(market.beside()) {
        write(&mut out, book, beside, &mut || ());
    }
    out
}

/// One step of a test: a request, or so many books of the copy.
type Step = (u32, usize, Command, usize);

fn copies_the_moment<B: Book>(before: &[Step], during: &[Step]) -> Result<(), TestCaseError> {
    let mut rig = Rig::new(&[]);
    let mut market = Market::<B>::new(&[1, 2, 700, 3_000_000_000].map(instrument));
    let mut ask = |market: &mut Market<B>, &(member, id, command, _): &Step| {
        let members = matches!(command, Command::Enter(_) | Command::Amend(_) | Command::Cancel { .. });
        let request = rig.request(if members { member } else { 0 }, IDS[id], command);
        market.apply(&request, &mut Vec::<Event>::new());
    };
    before.iter().for_each(|step| ask(&mut market, step));
    let (expected, mut copied) = (written(&market), Vec::new());
    market.begin_copy(write);
    for step in during {
        ask(&mut market, step);
        (0..step.3).for_each(|_| {
            market.copy_book(&mut copied, &mut || ());
        });
    }
    while market.copy_book(&mut copied, &mut || ()) == Copied::Book {}
    prop_assert_eq!(String::from_utf8(copied), String::from_utf8(expected));
    market.audit();
    Ok(())
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = (0_u32..4, 0..IDS.len(), (1_u64..60).prop_flat_map(command), 0_usize..2);
    prop::collection::vec(step, 0..40)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn a_copy_is_of_one_moment(before in steps(), during in steps()) {
        copies_the_moment::<NaiveBook>(&before, &during)?;
        copies_the_moment::<FastBook>(&before, &during)?;
    }
}

#[test]
fn removed_book_is_copied_as_was_new_one_is_not() {
    let mut rig = Rig::new(&[1, 2, 3]);
    rig.rests(7, 2, Side::Buy, 50_000);
    let expected = written(&rig.market);
    rig.market.begin_copy(write);
    rig.ask(0, 2, Command::RemoveInstrument);
    rig.ask(0, 9, Command::AddInstrument(Symbol::new("NEW").unwrap()));
    rig.ask(0, 2, Command::AddInstrument(Symbol::new("NEW").unwrap()));
    let mut copied = Vec::new();
    while rig.market.copy_book(&mut copied, &mut || ()) == Copied::Book {}
    assert_eq!(copied, expected);
}

#[test]
fn a_copy_begun_anew_is_of_the_later_moment() {
    let mut rig = Rig::new(&[1, 2]);
    rig.market.begin_copy(write);
    rig.rests(7, 2, Side::Buy, 50_000);
    rig.market.begin_copy(write);
    let (expected, mut copied) = (written(&rig.market), Vec::new());
    while rig.market.copy_book(&mut copied, &mut || ()) == Copied::Book {}
    assert_eq!(copied, expected);
    assert_eq!(rig.market.copy_book(&mut copied, &mut || ()), Copied::NoCopy, "it is over");
}

/// Two books with so many orders each, the first of them member 8's, a copy begun, and a mass cancel by a member.
fn mass_cancel_during_a_copy(orders_each: usize, by: u32) -> (Market<FastBook>, Vec<u8>) {
    let mut rig = Rig::new(&[]);
    let mut market = Market::<FastBook>::new(&[1, 2].map(instrument));
    let order = Command::Enter(NewOrder::limit(Side::Buy, Price(50_000), Quantity(10)));
    for number in 0..2 * orders_each as u32 {
        let member = if number < 2 { 8 } else { 7 };
        let request = rig.request(member, 1 + number % 2, order);
        market.apply(&request, &mut Vec::<Event>::new());
    }
    let expected = written(&market);
    market.begin_copy(write);
    let cancel = rig.request(by, 0, Command::MassCancel { side: None });
    market.apply(&cancel, &mut Vec::<Event>::new());
    (market, expected)
}

#[test]
fn a_request_that_would_have_too_much_kept_ends_the_copy() {
    let (mut market, _) = mass_cancel_during_a_copy(KEPT_ORDERS_MAX / 2 + 1, 8);
    let mut copied = Vec::new();
    assert_eq!(market.copy_book(&mut copied, &mut || ()), Copied::NoCopy);
    assert!(copied.is_empty());
}

#[test]
fn what_one_request_may_have_kept_counts_anew_with_each() {
    let (mut market, expected) = mass_cancel_during_a_copy(KEPT_ORDERS_MAX / 2, 8);
    let mut copied = Vec::new();
    while market.copy_book(&mut copied, &mut || ()) == Copied::Book {}
    assert!(copied == expected);
}

#[test]
fn a_mass_cancel_by_a_member_without_orders_has_nothing_kept() {
    let (mut market, expected) = mass_cancel_during_a_copy(KEPT_ORDERS_MAX / 2 + 1, 9);
    let mut copied = Vec::new();
    while market.copy_book(&mut copied, &mut || ()) == Copied::Book {}
    assert!(copied == expected, "the copy is not ended, and nothing has changed");
}
