//! Operators' requests that others went past (R7 of decision 19).

use pares_book::FastBook;
use pares_types::{
    ClientOrderId, Command, GatewayId, InstrumentId, MemberId, Reason, Request, RequestId, Side, Timestamp,
};

use crate::rig::{Venue, enter, named, request, window};

const SECOND: u64 = 1_000_000_000;
const NOON: u64 = 1_000 * SECOND;
const BLOCK: Command = Command::Block { member: MemberId(7) };
const UNBLOCK: Command = Command::Unblock { member: MemberId(7) };

/// One venue that executes what it is given in the order given.
struct Floor {
    venue: Venue<FastBook>,
    sequence: u64,
}

impl Floor {
    fn new() -> Self {
        Self { venue: Venue::new(&window(64)), sequence: 0 }
    }

    fn ask(&mut self, member: u32, stamp: u64, command: Command) -> Reason {
        self.sequence += 1;
        let one = named(member, self.sequence, request(1, self.sequence, command));
        self.take(Request { stamp: Timestamp(stamp), instrument: InstrumentId(0), ..one })
    }

    fn take(&mut self, request: Request) -> Reason {
        self.venue.receive(&[request]);
        self.venue.step();
        self.venue.out.all.last().expect("it is executed").outcome.reason
    }
}

#[test]
fn request_within_a_second_executes_older_is_overtaken() {
    let mut floor = Floor::new();
    assert_eq!(floor.ask(0, NOON, BLOCK), Reason::None);
    assert_eq!(floor.ask(0, NOON - SECOND, UNBLOCK), Reason::None);
    assert_eq!(floor.ask(0, NOON, BLOCK), Reason::None);
    assert_eq!(floor.ask(0, NOON - SECOND - 1, UNBLOCK), Reason::Overtaken);
    assert_eq!(floor.ask(0, NOON - SECOND, UNBLOCK), Reason::None, "one that is late goes past none");
}

#[test]
fn one_that_is_refused_goes_past_others_too() {
    let mut floor = Floor::new();
    assert_eq!(floor.ask(0, NOON + 5 * SECOND, UNBLOCK), Reason::NotBlocked);
    assert_eq!(floor.ask(0, NOON, BLOCK), Reason::Overtaken, "it was called off before it came");
}

#[test]
fn neither_members_nor_clocks_go_past_operators_or_are_late() {
    let mut floor = Floor::new();
    assert_eq!(floor.ask(0, NOON, BLOCK), Reason::None);
    let clock = |sequence, stamp| {
        let id = RequestId::new(GatewayId(2), sequence);
        let told = named(0, ClientOrderId::of_gateway(id).0, request(2, sequence, Command::TIME));
        Request { stamp: Timestamp(stamp), instrument: InstrumentId(0), ..told }
    };
    assert_eq!(floor.take(clock(1, NOON + 60 * SECOND)), Reason::None);
    assert_eq!(floor.ask(9, NOON + 90 * SECOND, Command::Block { member: MemberId(9) }), Reason::None);
    assert_eq!(floor.ask(0, NOON, UNBLOCK), Reason::None);
    assert_eq!(floor.take(clock(2, 1)), Reason::None);
    assert_eq!(floor.take(Request { stamp: Timestamp(1), ..enter(3, 1, Side::Buy, 90, 1) }), Reason::None);
}

#[test]
fn what_is_no_new_request_goes_past_none() {
    let mut floor = Floor::new();
    assert_eq!(floor.ask(0, NOON, BLOCK), Reason::None);
    let again = named(0, 1, request(1, 50, BLOCK));
    let again = Request { stamp: Timestamp(NOON + 60 * SECOND), instrument: InstrumentId(0), ..again };
    assert_eq!(floor.take(again), Reason::DuplicateRequest);
    floor.sequence = 50;
    assert_eq!(floor.ask(0, NOON, UNBLOCK), Reason::None);
}

#[test]
fn a_checkpoint_knows_what_went_past_and_so_does_the_hash() {
    let mut floor = Floor::new();
    let before = floor.venue.shard.state_hash();
    floor.ask(0, NOON, BLOCK);
    assert_ne!(floor.venue.shard.state_hash(), before);
    let bytes = floor.venue.checkpoint();
    floor.venue = Venue::restore(&floor.venue.window, &bytes);
    assert_eq!(floor.ask(0, NOON - 2 * SECOND, UNBLOCK), Reason::Overtaken);
}
