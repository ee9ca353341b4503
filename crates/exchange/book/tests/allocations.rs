//! In steady state a book allocates nothing: once its tables are as large as they need to be, a day of orders goes
//! through them without a call to the allocator.

use pares_book::{Book, FastBook, Instrument, Symbol};
use pares_random::Random;
use pares_types::{
    Amendment, ClientOrderId, Command, Event, EventSink, GatewayId, InstrumentId, MemberId, NewOrder,
    OrderId, Price, Quantity, Request, RequestId, ShardId, Side, TimeInForce, Timestamp,
};
/// Takes events and forgets them.
struct Nothing;

impl EventSink for Nothing {
    fn event(&mut self, _event: Event) {}
}

fn request(random: &mut Random, sequence: u64) -> Request {
    let side = if random.below(2) == 0 { Side::Buy } else { Side::Sell };
    let price = Price((9_900 + random.below(200).cast_signed()) * 100);
    let quantity = Quantity(1 + random.below(1_000));
    let target = OrderId(RequestId::new(GatewayId(1), sequence.saturating_sub(random.below(4_000)).max(1)));
    let member = target.0.sequence() % 16;
    let (member, command) = match random.below(100) {
        0..=44 => (sequence % 16, Command::Enter(NewOrder::limit(side, price, quantity))),
        45..=49 => {
            let ioc = NewOrder { time_in_force: TimeInForce::Ioc, ..NewOrder::limit(side, price, quantity) };
            (sequence % 16, Command::Enter(ioc))
        }
        50..=59 => (member, Command::Amend(Amendment::new(target, price, quantity))),
        _ => (member, Command::Cancel { target }),
    };
    Request {
        id: RequestId::new(GatewayId(1), sequence),
        stamp: Timestamp(sequence),
        member: MemberId(member as u32),
        client_order_id: ClientOrderId(sequence),
        instrument: InstrumentId(1),
        shard: ShardId(0),
        command,
    }
}

#[test]
fn steady_state_allocates_nothing() {
    let mut book = FastBook::new(Instrument::listed(InstrumentId(1), Symbol::new("X").unwrap()));
    let mut random = Random::new(7);
    let mut apply = |sequences: std::ops::Range<u64>| {
        let counted = allocation_counter::measure(|| {
            for sequence in sequences {
                book.apply(&request(&mut random, sequence), &mut Nothing);
            }
        });
        counted.count_total
    };
    assert!(apply(1..1_000_000) > 0, "the counter counts, and tables grow at first");
    assert_eq!(apply(1_000_000..2_000_000), 0, "a million requests later");
}
