//! Checkpoints: the state comes back whole, on either book, or not at all.

use pares_book::{Book, FastBook, Listing, NaiveBook, RestingOrder};
use pares_sequencer::Sequencer;
use pares_types::{
    Band, BustedTrade, ClientOrderId, Command, Entry, GatewayId, InstrumentId, Key, Limits, MemberId,
    NewOrder, OpenOrder, OrderId, OrderKind, Peg, Phase, Position, Price, Quantity, Reason, Registration,
    Request, RequestId, Rule, SelfTrade, ShardId, Side, Status, Symbol, TimeInForce, Timestamp,
};
use pares_venue::{CheckpointError, Shard, checkpoint, names};

use crate::rig::{SHARD, Venue, cancel, enter, named, request, window};

/// Orders of every kind, both books in phases of their own, an instrument that came and one that went, a changed
/// rule, a member blocked, a trade busted, gateways with a history, and names.
fn lived() -> Venue<FastBook> {
    let mut venue = plain();
    let plain = |side, price| NewOrder::limit(side, Price(price), Quantity(20));
    let until = TimeInForce::Gtd { until: Timestamp(1 << 40) };
    let peg = |to| OrderKind::Pegged { to, limit: Price(100) };
    let orders = [
        NewOrder { display: Quantity(5), ..plain(Side::Sell, 120) },
        NewOrder { trigger: Some(Price(200)), time_in_force: until, ..plain(Side::Buy, 210) },
        NewOrder { kind: peg(Peg::Best), self_trade: SelfTrade::Decrement, ..plain(Side::Buy, 0) },
        NewOrder { kind: peg(Peg::Mid), time_in_force: TimeInForce::Gtc, ..plain(Side::Buy, 0) },
        NewOrder { time_in_force: TimeInForce::AtClose, ..NewOrder::market(Side::Sell, Quantity(3)) },
    ];
    let enter = orders.map(|order| (2, 1, Command::Enter(order)));
    let add = |symbol| Command::AddInstrument(Symbol::new(symbol).unwrap());
    let bust = BustedTrade {
        position: Position(1),
        index: 0,
        resting: OrderId(RequestId::new(GatewayId(1), 1)),
        incoming: OrderId(RequestId::new(GatewayId(2), 5)),
        price: Price(100),
        quantity: Quantity(1),
        resting_side: Side::Buy,
        resting_owner: (MemberId(1), ClientOrderId(11)),
        incoming_owner: (MemberId(2), ClientOrderId(21)),
    };
    let opening = NewOrder { time_in_force: TimeInForce::AtOpen, ..plain(Side::Sell, 40) };
    let rules = [
        (0, 7, add("NEW")),
        (0, 8, add("NEWER")),
        (0, 8, Command::RemoveInstrument),
        (0, 7, Command::SetRule(Rule::Schedule { at_ns: 9, phase: Some(Phase::OpeningCall) })),
        (0, 7, Command::SetRule(Rule::Tick { from: Price(1_000), tick: Price(500) })),
        (0, 1, Command::SetRule(Rule::DynamicBand(Band::of(900)))),
        (0, 1, Command::Bust(bust)),
        (0, 2, Command::SetPhase(Phase::OpeningCall)),
        (5, 2, Command::Enter(opening)),
        (0, 0, Command::TIME),
        (0, 0, Command::Block { member: MemberId(77) }),
        (0, 0, registered(0, Entry::AddMember)),
        (0, 0, registered(2, Entry::SetKey(Key::Ed25519([9; 32])))),
        (0, 0, registered(0, Entry::SetLimits(Limits { quantity_max: 50, ..Limits::NONE }))),
    ];
    for (sequence, (member, instrument, command)) in (1..).zip(enter.into_iter().chain(rules)) {
        let asked = Request { instrument: InstrumentId(instrument), ..request(3, sequence, command) };
        venue.receive(&[named(member, 1_000 + sequence, asked)]);
    }
    venue.step();
    let fine = |result: &crate::rig::Result| result.outcome.status != Status::Refused;
    assert!(venue.out.all.iter().all(fine), "{:?}", venue.out.all.iter().find(|one| !fine(one)));
    venue
}

fn registered(session: u16, entry: Entry) -> Command {
    Command::Register(Registration { member: MemberId(77), session, entry })
}

/// A shard with orders on both books, gateways with a history, and names.
fn plain() -> Venue<FastBook> {
    let mut venue = Venue::new(&window(64));
    let on_two = |request| Request { instrument: pares_types::InstrumentId(2), ..request };
    venue.receive(&[
        enter(1, 1, Side::Buy, 100, 10),
        enter(2, 5, Side::Sell, 100, 4),
        enter(2, 6, Side::Sell, 105, 9),
        on_two(enter(1, 2, Side::Buy, 50, 1)),
        enter(1, 9, Side::Buy, 99, 3),
        cancel(1, 10, enter(1, 9, Side::Buy, 99, 3).id),
    ]);
    venue.step();
    venue
}

fn restore<B: Book>(bytes: &[u8]) -> Result<Shard<B>, CheckpointError> {
    Shard::restore(SHARD, bytes)
}

#[test]
fn a_checkpoint_of_one_book_restores_on_the_other() {
    let mut venue = lived();
    let bytes = venue.checkpoint();
    let restored = restore::<NaiveBook>(&bytes).unwrap();
    assert_eq!(restored.position(), venue.shard.position());
    assert_eq!(restored.state_hash(), venue.shard.state_hash());
    assert_eq!(restored.register(), venue.shard.register());
    assert_eq!(restored.register().key(MemberId(77), 2), Some(Key::Ed25519([9; 32])));
    let books = restored.books().iter().map(Book::snapshot);
    assert!(books.eq(venue.shard.books().iter().map(Book::snapshot)));
}

#[test]
fn a_restored_shard_writes_the_same_checkpoint() {
    let bytes = lived().checkpoint();
    let mut again = Vec::new();
    restore::<NaiveBook>(&bytes).unwrap().checkpoint(&mut again);
    assert_eq!(again, bytes);
}

#[test]
fn damage_to_any_byte_is_refused() {
    let mut bytes = lived().checkpoint();
    for at in 0..bytes.len() {
        for flip in [0x01, 0x80] {
            bytes[at] ^= flip;
            assert!(restore::<FastBook>(&bytes).is_err(), "bit {flip:02x} of byte {at}");
            bytes[at] ^= flip;
        }
    }
    assert!(restore::<FastBook>(&bytes).is_ok());
}

#[test]
fn truncated_or_extended_checkpoint_is_refused() {
    let mut bytes = lived().checkpoint();
    for length in 0..bytes.len() {
        assert!(restore::<FastBook>(&bytes[..length]).is_err(), "the first {length} bytes");
    }
    bytes.push(0);
    assert!(restore::<FastBook>(&bytes).is_err());
}

#[test]
fn a_checkpoint_of_another_shard_is_refused() {
    let bytes = lived().checkpoint();
    let other = Shard::<FastBook>::restore(ShardId(SHARD.0 + 1), &bytes);
    assert_eq!(other.err(), Some(CheckpointError::OtherShard(SHARD)));
}

#[test]
fn a_restored_shard_has_the_instruments_it_had_then() {
    let venue = lived();
    let restored = restore::<NaiveBook>(&lived().checkpoint()).unwrap();
    assert_eq!(restored.market().blocked(), [MemberId(77)]);
    assert_eq!(restored.market().deadlines(), venue.shard.market().deadlines());
    let of = |market: &[NaiveBook]| market.iter().map(|book| *book.instrument()).collect::<Vec<_>>();
    let expected: Vec<_> = venue.shard.books().iter().map(|book| *book.instrument()).collect();
    assert_eq!(of(restored.books()), expected);
    assert_eq!(expected.iter().map(|one| one.id.0).collect::<Vec<_>>(), [1, 2, 7]);
}

#[test]
fn a_view_says_the_same_as_the_restored_shard() {
    let bytes = lived().checkpoint();
    let (view, _, listings) = checkpoint::view(SHARD, &bytes).unwrap();
    let restored = restore::<NaiveBook>(&bytes).unwrap();
    let mut orders = Vec::new();
    for book in restored.books() {
        let mut tell = |order: &RestingOrder| {
            orders.push(OpenOrder {
                member: order.member,
                client_order_id: order.client_order_id,
                order: order.order,
                instrument: book.instrument().id,
                side: order.side,
                at_market: order.kind == OrderKind::Market,
                remaining: order.remaining,
                executed: order.executed,
            });
        };
        [Side::Buy, Side::Sell].into_iter().for_each(|side| book.for_each_order(side, &mut tell));
        book.for_each_held(&mut tell);
    }
    assert!(orders.len() > 5 && view.orders == orders, "{view:?}");
    assert!(orders.iter().any(|order| order.at_market) && orders.iter().any(|order| order.executed.0 > 0));
    let net = |member, shares| (InstrumentId(1), MemberId(member), shares);
    let bought_four_and_one_of_them_is_void = [net(1, 3), net(2, -3)];
    assert_eq!(view.positions.nets, bought_four_and_one_of_them_is_void);
    assert_eq!((view.position, view.time), (restored.position(), restored.market().time()));
    assert_eq!(view.through.iter().map(|(gateway, _)| gateway.0).collect::<Vec<_>>(), [1, 2, 3]);
    let listing = |book: &NaiveBook| {
        let (instrument, trading) = (*book.instrument(), book.trading());
        Listing { instrument, phase: trading.phase, last: trading.last, reference: trading.reference }
    };
    assert!(
        listings.iter().any(|one| one.last.is_some())
            && listings.iter().copied().eq(restored.books().iter().map(listing))
    );
    assert_eq!(view.quarantined, restored.quarantined());
    assert!(view.timed && !view.kept.is_empty() && !view.floors.is_empty());
}

#[test]
fn view_of_damaged_or_foreign_checkpoint_is_refused() {
    let mut bytes = lived().checkpoint();
    let other = ShardId(SHARD.0 + 1);
    assert_eq!(checkpoint::view(other, &bytes).err(), Some(CheckpointError::OtherShard(SHARD)));
    bytes[100] ^= 1;
    assert_eq!(checkpoint::view(SHARD, &bytes).err(), Some(CheckpointError::Damaged));
}

#[test]
fn an_older_version_is_no_checkpoint() {
    let mut bytes = lived().checkpoint();
    bytes[..8].copy_from_slice(b"PARESCK1");
    assert_eq!(restore::<FastBook>(&bytes).err(), Some(CheckpointError::Magic));
}

#[test]
fn something_else_is_no_checkpoint() {
    assert_eq!(restore::<FastBook>(b"PARESCK0 and so on").err(), Some(CheckpointError::Magic));
}

/// The oldest name is forgotten next, on a restored venue as on the one that took the checkpoint: else one
/// would refuse what the other executes.
#[test]
fn names_are_forgotten_in_the_same_order_after_a_restore() {
    let count = names::NAMES_MAX as u64 + 10;
    let mut venue = Venue::<FastBook>::new(&window(1_024));
    for first in (1..=count).step_by(200) {
        let batch: Vec<_> = (first..(first + 200).min(count + 1))
            .map(|n| cancel(1, n, enter(1, 1, Side::Buy, 1, 1).id))
            .collect();
        venue.receive(&batch);
        venue.step();
        venue.window.raise_recorded(venue.shard.position());
    }
    let checkpoint = venue.checkpoint();
    let mut joined = Venue::<FastBook>::restore(&venue.window, &checkpoint);
    for (sequence, name) in [(1, 1), (2, 11), (3, 12), (4, 14), (5, count)] {
        let again = named(1, name, enter(2, sequence, Side::Buy, 100, 1));
        venue.receive([&again]);
        joined.receive([&again]);
        venue.step();
        joined.step();
        assert_eq!(venue.out.all.last(), joined.out.all.last(), "name {name}");
    }
    assert_eq!(venue.checkpoint(), joined.checkpoint());
}

#[test]
fn only_the_exchange_changes_the_register() {
    let mut venue = plain();
    let hash = venue.shard.state_hash();
    let asked = Request { instrument: InstrumentId(0), ..request(1, 50, registered(0, Entry::AddMember)) };
    venue.receive(&[named(77, 1, asked)]);
    venue.step();
    let outcome = venue.out.all.last().unwrap().outcome;
    assert_eq!((outcome.status, outcome.reason), (Status::Refused, Reason::NotPermitted));
    venue.receive(&[named(0, 1, Request { id: RequestId::new(GatewayId(1), 51), ..asked })]);
    venue.step();
    assert_eq!(venue.out.all.last().unwrap().outcome.status, Status::Accepted);
    assert!(venue.shard.register().members().any(|(member, _)| member == MemberId(77)));
    assert_ne!(venue.shard.state_hash(), hash);
}
