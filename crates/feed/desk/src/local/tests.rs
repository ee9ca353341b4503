//! Servers over one window, as they would run, one call at a time.

use pares_sequencer::LocalWindow;

use super::*;
use crate::item::{ItemBody, ItemName, TraderId};

const EPOCH: Epoch = Epoch(1);

/// A server with its log of submissions and its log of the stream.
struct Server {
    stream: LocalStream,
    window: LocalWindow,
    submitted: Vec<Vec<u8>>,
    log: Vec<Vec<u8>>,
    number: u16,
}

fn servers(quorum: u16) -> [Server; 2] {
    let window = LocalWindow::new(16, EPOCH, Position(0));
    [0, 1].map(|number| Server {
        stream: LocalStream::new(number, 2, quorum, EPOCH),
        window: window.clone(),
        submitted: Vec::new(),
        log: Vec::new(),
        number,
    })
}

fn name(trader: u32, number: u64) -> ItemName {
    ItemName { trader: TraderId(trader), number }
}

impl Server {
    /// A trader submits a message here.
    fn submit(&mut self, name: ItemName) -> Vec<u8> {
        let mut body = Vec::new();
        ItemBody::Message { to: TraderId(0), text: "hello" }.write(&mut body);
        let request = RequestId::new(GatewayId(self.number), self.submitted.len() as u64 + 1);
        let mut record = Vec::new();
        SubmittedItem { name, request, stamp_ns: 0, kind: 1, body: &body }.write(&mut record);
        self.submitted.push(record.clone());
        record
    }

    /// The same, and takes it in.
    fn submit_own(&mut self, name: ItemName) -> Vec<u8> {
        let record = self.submit(name);
        assert_eq!(self.stream.on_submitted(&record), Ok(true));
        record
    }

    /// Proposes, learns, and appends what it can.
    fn turn(&mut self) -> Result<usize, ProposeError> {
        let ordered = self.stream.order(&mut self.window)?;
        let mut record = Vec::new();
        while self.stream.next_record(&mut record) {
            self.log.push(record.clone());
            self.stream.take(&record);
        }
        self.window.raise_recorded(self.stream.told());
        Ok(ordered)
    }
}

#[test]
fn two_servers_reading_crosswise_keep_one_stream() {
    let [mut one, mut two] = servers(1);
    let (a, b, c) = (one.submit(name(1, 1)), two.submit(name(2, 1)), one.submit(name(1, 2)));
    for record in [&a, &c, &b] {
        assert_eq!(one.stream.on_submitted(record), Ok(true));
    }
    for record in [&b, &a, &c] {
        assert_eq!(two.stream.on_submitted(record), Ok(true));
    }
    two.turn().unwrap();
    one.turn().unwrap();
    assert_eq!(one.log, two.log);
    assert_eq!((one.log.len(), one.stream.told()), (3, Position(3)));
    assert_eq!(OrderedItem::read(&one.log[0]).unwrap().item.name, name(2, 1), "two came first");
}

#[test]
fn what_a_trader_repeats_at_another_server_is_a_repeat_on_both() {
    let [mut one, mut two] = servers(1);
    let (first, again) = (one.submit(name(1, 1)), two.submit(name(1, 1)));
    for server in [&mut one, &mut two] {
        for record in [&first, &again] {
            server.stream.on_submitted(record).unwrap();
        }
        server.turn().unwrap();
    }
    assert_eq!(one.log, two.log);
    let repeat = OrderedItem::read(&one.log[1]).unwrap();
    assert_eq!((repeat.repeats, repeat.item.body), (Some(Position(0)), &[][..]));
}

#[test]
fn server_past_window_refilled_by_peer() {
    let [mut one, mut two] = servers(1);
    for number in 1..=40 {
        one.submit_own(name(1, number));
        one.turn().unwrap();
    }
    assert!(matches!(two.turn(), Err(ProposeError::TooFarBehind { .. })));
    let recorded = two.window.recorded();
    assert_eq!(two.stream.on_peer_record(0, &one.log[1], recorded), Ok(Offered::Early));
    for record in &one.log {
        assert_eq!(two.stream.on_peer_record(0, record, recorded), Ok(Offered::Take));
        two.log.push(record.clone());
        two.stream.take(record);
    }
    assert_eq!(two.stream.on_peer_record(0, &one.log[39], recorded), Ok(Offered::Known));
    let record = two.submit(name(2, 1));
    assert_eq!(two.stream.on_submitted(&one.submitted[39]), Ok(false), "it is ordered already");
    for server in [&mut two, &mut one] {
        server.stream.on_submitted(&record).unwrap();
        server.turn().unwrap();
    }
    assert_eq!((one.log.len(), one.log == two.log), (41, true));
}

#[test]
fn nothing_is_told_before_a_quorum_has_it() {
    let [mut one, mut two] = servers(2);
    for number in 1..=3 {
        let record = one.submit_own(name(1, number));
        two.stream.on_submitted(&record).unwrap();
    }
    one.turn().unwrap();
    assert_eq!((one.stream.next(), one.stream.told()), (Position(3), Position(0)));
    two.turn().unwrap();
    one.stream.on_have(1, Position(2));
    assert_eq!(one.stream.told(), Position(2));
    one.stream.on_have(1, two.stream.next());
    assert_eq!(one.stream.told(), Position(3));
    two.stream.on_have(0, Position(9));
    assert_eq!(two.stream.told(), Position(3), "no more than what lies here");
    two.stream.on_have(7, Position(9));
}

#[test]
fn a_server_that_starts_again_goes_on_from_its_own_log() {
    let [mut one, _] = servers(1);
    (1..=3).for_each(|number| drop(one.submit_own(name(1, number))));
    one.turn().unwrap();
    let mut again = LocalStream::new(0, 2, 1, EPOCH);
    one.log.iter().for_each(|record| again.recover(record).unwrap());
    assert!(again.recover(&one.log[0]).is_err(), "it does not follow");
    assert_eq!((again.next(), again.told(), again.through(GatewayId(0))), (Position(3), Position(3), 3));
    one.stream = again;
    one.submit_own(name(1, 3));
    one.turn().unwrap();
    assert_eq!(OrderedItem::read(&one.log[3]).unwrap().repeats, Some(Position(2)));
}

#[test]
fn unrecorded_peer_items_refused_contradiction_found() {
    let [mut one, mut two] = servers(1);
    let record = one.submit_own(name(1, 1));
    two.stream.on_submitted(&record).unwrap();
    one.turn().unwrap();
    two.turn().unwrap();
    let after = Position(1);
    let mut other = one.log[0].clone();
    *other.last_mut().unwrap() ^= 1;
    assert_eq!(two.stream.on_peer_record(0, &other, Position(0)), Ok(Offered::Unrecorded));
    assert_eq!(two.stream.on_peer_record(0, &one.log[0], after), Ok(Offered::Known));
    assert_eq!(two.stream.on_peer_record(0, &other, after), Ok(Offered::Contradicts));
    assert!(two.stream.on_peer_record(0, &other[..9], after).is_err());
}

/// A disk is lost after its server was seen to decide: the bytes lie in the log of the peer that took them before, and no quorum has them.
#[test]
fn decided_item_comes_from_its_only_log() {
    let [mut one, mut two] = servers(2);
    one.submit_own(name(1, 1));
    one.turn().unwrap();
    assert_eq!((one.stream.next(), one.stream.told()), (Position(1), Position(0)));
    two.stream.order(&mut two.window).unwrap();
    assert!(two.stream.lacks_bytes());
    let mut other = one.log[0].clone();
    other[40] ^= 1; // another request
    assert_ne!(two.stream.on_peer_record(0, &other, Position(0)), Ok(Offered::Take));
    assert_eq!(two.stream.on_peer_record(0, &one.log[0], Position(0)), Ok(Offered::Take));
    two.stream.take(&one.log[0]);
    one.stream.on_have(1, two.stream.next());
    assert_eq!(one.stream.told(), Position(1));
}

#[test]
fn a_claim_of_more_than_there_is_counts_for_what_there_is() {
    let [mut one, _] = servers(2);
    one.stream.on_have(1, Position(u64::MAX));
    assert_eq!(one.stream.told(), Position(0));
    one.submit_own(name(1, 1));
    one.turn().unwrap();
    assert_eq!(one.stream.told(), Position(1), "what the peer said counts as soon as it is here");
}

#[test]
fn peer_contradicting_window_is_not_believed() {
    let [mut one, mut two] = servers(1);
    [1, 2].into_iter().for_each(|trader| drop(one.submit_own(name(trader, 1))));
    one.turn().unwrap();
    two.stream.order(&mut two.window).unwrap();
    let wrong = OrderedItem { position: Position(0), ..OrderedItem::read(&one.log[1]).unwrap() };
    let mut bytes = Vec::new();
    wrong.write(&mut bytes);
    assert_eq!(two.stream.on_peer_record(0, &bytes, Position(2)), Ok(Offered::Contradicts));
    let again = OrderedItem { repeats: Some(Position(0)), ..OrderedItem::read(&one.log[0]).unwrap() };
    bytes.clear();
    again.write(&mut bytes);
    assert_eq!(two.stream.on_peer_record(0, &bytes, Position(2)), Ok(Offered::Contradicts));
    assert_eq!(two.stream.on_peer_record(0, &one.log[0], Position(2)), Ok(Offered::Take));
}
