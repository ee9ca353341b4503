//! What a trader says to the next server, and when it leaves one.

use pares_feed::publication::Session;
use pares_types::{Epoch, GatewayId, RequestId};

use super::*;
use crate::blocks::BatchBuilder;
use crate::frame::{DeskRequest, REQUEST_BYTES_MAX};
use crate::item::{ItemName, SubmittedItem};

fn signed_on(stream: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    let signed_on = DeskSignedOn {
        server: 0.into(),
        cut_off: 0,
        reserved: 0,
        trader: 7.into(),
        through: 0.into(),
        next: 0.into(),
        told: 0.into(),
        stream: stream.into(),
    };
    frame::write(&mut bytes, kind::SIGNED_ON, &[signed_on.as_bytes()]);
    bytes
}

/// The trader hears that; what it hands out is dropped.
fn hear(trader: &mut Trader, bytes: &[u8], now_ns: u64) {
    trader.on_bytes(bytes, now_ns);
    trader.hand_out(|_| {}).unwrap();
}

fn requests(trader: &mut Trader) -> Vec<u8> {
    let (output, mut kinds) = (trader.output().to_vec(), Vec::new());
    trader.sent(output.len());
    let mut rest = &output[..];
    while let Some((kind, payload, after)) = frame::split(rest, REQUEST_BYTES_MAX).unwrap() {
        kinds.push(kind);
        if let DeskRequest::Submit { number, .. } = frame::read_request(kind, payload).unwrap() {
            kinds.push(u8::try_from(number).unwrap());
        }
        rest = after;
    }
    kinds
}

#[test]
fn unplaced_items_resubmitted_only_after_admission() {
    let mut trader = Trader::new(TraderId(7), TraderOptions::default());
    let says = ItemBody::Message { to: TraderId(0), text: "good morning" };
    assert_eq!(trader.submit(&says), Ok(1));
    for stream in [5, 5] {
        trader.begin(0);
        assert_eq!(requests(&mut trader), [kind::SIGN_ON]);
        hear(&mut trader, &signed_on(stream), 1);
        assert_eq!(requests(&mut trader), [kind::SUBMIT, 1]);
    }
    let mut placed = Vec::new();
    let bytes = frame::PlacedBytes { number: 1.into(), position: 0.into() };
    frame::write(&mut placed, kind::PLACED, &[bytes.as_bytes()]);
    hear(&mut trader, &placed, 2);
    assert_eq!(trader.unplaced(), 1, "what stands there is not seen yet");
    hear(&mut trader, &block(&[(1, "good morning")]), 3);
    assert_eq!(trader.unplaced(), 0);
}

/// The stream from its beginning: messages of trader 7, with their numbers.
fn block(messages: &[(u64, &str)]) -> Vec<u8> {
    let mut builder = BatchBuilder::new(Session(*b"0000000005"), kind::BLOCK, 0);
    for (position, &(number, text)) in (0..).zip(messages) {
        let (mut body, mut record) = (Vec::new(), Vec::new());
        ItemBody::Message { to: TraderId(0), text }.write(&mut body);
        let name = ItemName { trader: TraderId(7), number };
        let request = RequestId::new(GatewayId(0), position + 1);
        let item = SubmittedItem { name, request, stamp_ns: 0, kind: 1, body: &body };
        OrderedItem { epoch: Epoch(1), position: Position(position), repeats: None, item }.write(&mut record);
        builder.push(&record);
    }
    builder.finish().frames.to_vec()
}

#[test]
fn other_program_numbers_are_not_taken_for_own() {
    let mut trader = Trader::new(TraderId(7), TraderOptions::default());
    trader.begin(0);
    hear(&mut trader, &signed_on(5), 1);
    requests(&mut trader);
    for text in ["one", "two", "three"] {
        trader.submit(&ItemBody::Message { to: TraderId(0), text }).unwrap();
    }
    requests(&mut trader);
    trader.on_bytes(&block(&[(1, "one"), (2, "another"), (4, "a fourth")]), 2);
    let mut renumbered = Vec::new();
    trader
        .hand_out(|news| {
            if let TraderNews::Renumbered { from, to } = news {
                renumbered.push((from, to));
            }
        })
        .unwrap();
    // `two` met other words; `three`, and `two` again as 4, can have no place behind 4.
    assert_eq!(renumbered, [(2, 4), (3, 5), (4, 6)]);
    assert_eq!(
        (trader.unplaced(), requests(&mut trader)),
        (2, vec![kind::SUBMIT, 4, kind::SUBMIT, 5, kind::SUBMIT, 6])
    );
}

#[test]
fn who_is_told_of_another_stream_begins_at_its_first_position() {
    let mut trader = Trader::new(TraderId(7), TraderOptions { from: Some(Position(9)), books: false });
    trader.begin(0);
    let mut bytes = Vec::new();
    frame::write_ended(&mut bytes, CutOff::OtherStream);
    trader.on_bytes(&bytes, 1);
    let mut is_lost = false;
    let left = trader.hand_out(|news| is_lost |= news == TraderNews::Lost);
    assert_eq!(left, Err(Leave::Ended(CutOff::OtherStream)));
    assert!(is_lost && trader.next() == Position(0));
}

#[test]
fn silent_unanswering_server_is_left_sooner() {
    let mut trader = Trader::new(TraderId(7), TraderOptions::default());
    assert!(!trader.is_silent(u64::MAX));
    trader.begin(0);
    assert!(!trader.is_silent(PATIENCE_NS) && trader.is_silent(PATIENCE_NS + 1));
    hear(&mut trader, &signed_on(1), 0);
    assert!(!trader.is_silent(SILENCE_NS) && trader.is_silent(SILENCE_NS + 1));
}

#[test]
fn what_is_too_long_is_not_submitted_and_takes_no_number() {
    let mut trader = Trader::new(TraderId(7), TraderOptions::default());
    let long = "w".repeat(BODY_BYTES_MAX + 1);
    let says = |text| ItemBody::Message { to: TraderId(0), text };
    assert!(matches!(trader.submit(&says(&long)), Err(ItemError::TooLong { .. })));
    assert_eq!((trader.submit(&says("short")), trader.unplaced()), (Ok(1), 1));
}
