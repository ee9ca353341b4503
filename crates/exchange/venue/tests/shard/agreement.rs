//! Venues that receive the same requests in different orders, in pieces, and step at different times end in the
//! same order, state and results.

use std::collections::VecDeque;

use pares_book::{Book, FastBook, NaiveBook};
use pares_types::{
    Amendment, Command, InstrumentId, MemberId, OrderId, Phase, Price, Quantity, Request, Side,
};
use proptest::prelude::*;

use crate::rig::{Venue, cancel, enter, named, request, window};

const GATEWAYS: u16 = 3;
const PHASES: [Phase; 4] = [Phase::Continuous, Phase::OpeningCall, Phase::Continuous, Phase::Halted];

/// One gateway's requests, in its order. Targets are drawn among all gateways' sequences; names among so few
/// that some are used twice.
fn requests_of(gateway: u16) -> impl Strategy<Value = Vec<Request>> {
    let one = (0_u8..16, 1_u32..3, 90_i64..110, 1_u64..30, 0..GATEWAYS, 1_u64..20, 0_u64..200);
    prop::collection::vec(one, 1..40).prop_map(move |drawn| {
        let numbered = (1..).zip(drawn);
        numbered
            .map(|(sequence, (kind, instrument, price, quantity, other, target, name))| {
                let target = request(other, target, Command::TIME).id;
                let amendment = Amendment::new(OrderId(target), Price(price), Quantity(quantity));
                let mass = Command::MassCancel { side: None };
                let everywhere = |request| Request { instrument: InstrumentId(0), ..request };
                let member = MemberId(u32::from(gateway % 2) + 1);
                let drawn = match kind {
                    0 => request(gateway, sequence, mass),
                    1 => everywhere(request(gateway, sequence, mass)),
                    2 => cancel(gateway, sequence, target),
                    3 => request(gateway, sequence, Command::Amend(amendment)),
                    4..8 => enter(gateway, sequence, Side::Buy, price, quantity),
                    8..12 => enter(gateway, sequence, Side::Sell, price, quantity),
                    12 => everywhere(request(gateway, sequence, Command::TIME)),
                    13 => request(gateway, sequence, Command::SetPhase(PHASES[name as usize % PHASES.len()])),
                    14 => everywhere(request(gateway, sequence, Command::Block { member })),
                    _ => everywhere(request(gateway, sequence, Command::Unblock { member })),
                };
                let anywhere = drawn.instrument == InstrumentId(0);
                let instrument = if anywhere { InstrumentId(0) } else { InstrumentId(instrument) };
                let asks = if kind < 12 { member } else { MemberId(0) };
                // The exchange numbers its requests; members use some names twice.
                let name = if kind < 12 { name } else { u64::from(gateway) << 32 | sequence };
                named(asks.0, name, Request { instrument, ..drawn })
            })
            .collect()
    })
}

fn all_requests() -> impl Strategy<Value = Vec<Vec<Request>>> {
    (requests_of(0), requests_of(1), requests_of(2)).prop_map(|(a, b, c)| vec![a, b, c])
}

/// What is left to deliver to one venue, gateway by gateway.
struct Delivery(Vec<VecDeque<Request>>);

impl Delivery {
    fn new(requests: &[Vec<Request>]) -> Self {
        Self(requests.iter().map(|requests| requests.iter().copied().collect()).collect())
    }

    fn next(&mut self, gateway: usize) -> Option<Request> {
        self.0[gateway].pop_front()
    }

    fn rest(&mut self) -> Vec<Request> {
        self.0.iter_mut().flat_map(std::mem::take).collect()
    }
}

/// `whats`: deliver a request of gateway 0, 1 or 2, or step.
fn play<B: Book>(venue: &mut Venue<B>, delivery: &mut Delivery, what: usize) {
    match what {
        0..3 => venue.receive(delivery.next(what).iter()),
        _ => {
            venue.step();
        }
    }
}

fn finish<B: Book>(venue: &mut Venue<B>, delivery: &mut Delivery) {
    venue.receive(&delivery.rest());
    while venue.shard.pending_len() > 0 {
        assert!(venue.step().executed > 0, "with everything received a venue goes on by itself");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn three_venues_agree_whatever_arrives_when(
        requests in all_requests(),
        schedule in prop::collection::vec((0_usize..3, 0_usize..4), 0..300),
        last in 0_usize..3,
    ) {
        let window = window(256);
        let (mut a, mut b, mut c) = (
            Venue::<FastBook>::new(&window), Venue::<NaiveBook>::new(&window), Venue::<FastBook>::new(&window));
        let mut deliveries = [(); 3].map(|()| Delivery::new(&requests));
        for (venue, what) in schedule {
            match venue {
                0 => play(&mut a, &mut deliveries[0], what),
                1 => play(&mut b, &mut deliveries[1], what),
                _ => play(&mut c, &mut deliveries[2], what),
            }
        }
        for venue in [last, (last + 1) % 3, (last + 2) % 3] {
            match venue {
                0 => finish(&mut a, &mut deliveries[0]),
                1 => finish(&mut b, &mut deliveries[1]),
                _ => finish(&mut c, &mut deliveries[2]),
            }
        }
        let total: usize = requests.iter().map(Vec::len).sum();
        prop_assert_eq!(a.out.all.len(), total);
        prop_assert_eq!(&a.out.all, &b.out.all);
        prop_assert_eq!(&a.out.all, &c.out.all);
        prop_assert_eq!(a.shard.state_hash(), b.shard.state_hash());
        prop_assert_eq!(a.shard.state_hash(), c.shard.state_hash());
        a.shard.market().audit();
        b.shard.market().audit();
        for gateway in 0..GATEWAYS {
            let of_gateway = a.order().into_iter().filter(|id| id.gateway().0 == gateway);
            let sequences: Vec<u64> = of_gateway.map(|id| id.sequence()).collect();
            prop_assert!(sequences.is_sorted(), "a gateway's requests keep its order: {:?}", sequences);
        }
    }
}
