//! What a member can always ask, of whichever gateway is there.

use std::time::Duration;

use pares_client::{Client, InstrumentStatus, List, ListEnd, ListRequest, OrderStatus, Update};
use pares_types::{ClientOrderId, Command, InstrumentId, Position, Price, Reason, Rule, Side, Status};

use crate::common::exchange::{Exchange, gateway, small};
use crate::common::{eventually, limit};

const PRICE: i64 = 2_238_200;

/// What came, up to the end of a list.
#[derive(Default)]
struct Told {
    orders: Vec<OrderStatus>,
    instruments: Vec<InstrumentStatus>,
    tick_rows: usize,
    end: Option<ListEnd>,
}

impl Told {
    fn take(&mut self, update: Update) {
        match update {
            Update::OrderStatus(status) => self.orders.push(status),
            Update::Instrument(status) => self.instruments.push(status),
            Update::TickRow { .. } => self.tick_rows += 1,
            Update::ListEnd(end) => assert_eq!(self.end.replace(end), None),
            _ => {}
        }
    }

    fn read(mut self, client: &mut Client, is_done: impl Fn(&Self) -> bool) -> Self {
        eventually("it is told", || {
            client.flush().unwrap();
            client.wait(Duration::from_millis(10)).unwrap();
            client.poll(|update| self.take(update)).unwrap();
            is_done(&self)
        });
        self
    }
}

fn request(list: List) -> ListRequest {
    ListRequest { token: 5, list, instrument: None }
}

fn list(client: &mut Client, list: List) -> Told {
    client.list(&request(list)).unwrap();
    let told = Told::default().read(client, |told| told.end.is_some());
    let end = told.end.unwrap();
    let count = (told.orders.len() + told.instruments.len()) as u32;
    assert_eq!(end, ListEnd { request: request(list), count, reason: Reason::None });
    told
}

fn names(told: &Told) -> Vec<u64> {
    let mut names: Vec<u64> = told.orders.iter().map(|one| one.client_order_id.0).collect();
    names.sort_unstable();
    names
}

/// But for how far a gateway has read.
fn instruments(client: &mut Client) -> Vec<InstrumentStatus> {
    let told = list(client, List::Instruments);
    assert_eq!(told.tick_rows, told.instruments.iter().map(|one| usize::from(one.tick_rows)).sum::<usize>());
    told.instruments.into_iter().map(|one| InstrumentStatus { next: Position(0), ..one }).collect()
}

/// The other gateway has read as much.
fn wait_for_orders(client: &mut Client, orders: u32) {
    eventually("the gateway has read all", || client.own_limits_and_wait().unwrap().orders == orders);
}

fn connect_to_the_one_that_was_killed(exchange: &mut Exchange) -> Client {
    let mut client = None;
    eventually("it is back", || {
        exchange.tick();
        client = exchange.connect(0, 7, exchange.tls()).ok();
        client.is_some()
    });
    client.unwrap()
}

#[test]
fn other_gateway_answers_all_right_after_a_kill() {
    let mut exchange = Exchange::start(&small(2));
    let mut owner = exchange.client(0, 7);
    let mut other = exchange.client(0, 8);
    let mut operator = exchange.client(0, 0);
    for (number, rule) in [
        (1, Rule::Reference(Price(PRICE - 100))),
        (2, Rule::Reference(Price(PRICE + 100))),
        (3, Rule::StaticBand(pares_types::Band::of(900))),
    ] {
        let changed = pares_types::ClientRequest::Exchange {
            client_order_id: ClientOrderId(number),
            instrument: InstrumentId(1),
            command: Command::SetRule(rule),
        };
        assert_eq!(operator.submit_and_wait(&changed).unwrap().status, Status::Accepted);
    }
    for (name, instrument) in [(1, 1), (2, 2), (3, 3)] {
        owner.submit_and_wait(&limit(name, instrument, Side::Sell, 10, PRICE)).unwrap();
    }
    other.submit_and_wait(&limit(1, 1, Side::Buy, 4, PRICE)).unwrap();
    other.submit_and_wait(&limit(2, 2, Side::Buy, 4, PRICE - 100)).unwrap();
    let mut left = exchange.client(1, 7);
    wait_for_orders(&mut left, 3);
    assert!(exchange.kill(gateway(0)));
    let orders = list(&mut left, List::Orders);
    assert_eq!(names(&orders), [1, 2, 3]);
    assert_eq!(orders.orders.iter().map(|one| one.remaining.0).sum::<u64>(), 26);
    let before = instruments(&mut left);
    assert_eq!(before.iter().map(|one| one.instrument.0).collect::<Vec<_>>(), [1, 2, 3]);
    let [alfa, ..] = before[..] else { panic!("{before:?}") };
    assert_eq!((alfa.last, alfa.reference), (Some(Price(PRICE)), Some(Price(PRICE + 100))));
    assert_eq!((alfa.symbol.to_string(), alfa.static_band), ("ALFA".to_owned(), 900));
    assert_eq!(left.own_limits_and_wait().unwrap().orders, 3);
    let mut others = exchange.client(1, 8);
    assert_eq!(names(&list(&mut others, List::Orders)), [2], "its own only");
    // So does the one that was killed, from the record and checkpoints.
    let mut again = connect_to_the_one_that_was_killed(&mut exchange);
    assert_eq!(instruments(&mut again), before);
    assert_eq!(names(&list(&mut again, List::Orders)), [1, 2, 3]);
    exchange.stop();
    exchange.start_again();
    let mut again = exchange.client(1, 7);
    assert_eq!(instruments(&mut again), before);
}

#[test]
fn twenty_thousand_open_orders_listed_during_trading() {
    const ORDERS: u64 = 20_000;
    let mut config = small(2);
    config.instruments.iter_mut().for_each(|one| one.orders_max = 30_000);
    config.checkpoint_every = 1 << 14;
    let mut exchange = Exchange::start(&config);
    let mut owner = exchange.client(0, 7);
    let (mut sent, mut answered) = (0, 0);
    eventually("all rest", || {
        exchange.tick();
        while sent < ORDERS && sent - answered < 50 {
            sent += 1;
            owner.send(&limit(sent, 1, Side::Sell, 1, 2 * PRICE)).unwrap();
        }
        owner.flush().unwrap();
        owner.wait(Duration::from_millis(10)).unwrap();
        let count = |update| {
            if let Update::Answer(answer) = update {
                assert_eq!(answer.status, Status::Resting);
                answered += 1;
            }
        };
        owner.poll(count).unwrap();
        answered == ORDERS
    });
    let mut asker = exchange.client(1, 7);
    wait_for_orders(&mut asker, ORDERS as u32);
    let mut trader = exchange.client(1, 8);
    // Who asks does not read meanwhile.
    asker.list(&request(List::Orders)).unwrap();
    asker.list(&request(List::Orders)).unwrap();
    asker.flush().unwrap();
    for name in 1..=100 {
        let side = if name % 2 == 1 { Side::Sell } else { Side::Buy };
        let answer = trader.submit_and_wait(&limit(name, 2, side, 5, PRICE)).unwrap();
        assert_eq!(answer.reason, Reason::None);
    }
    let mut ends = Vec::new();
    let mut told = Told::default();
    eventually("both questions are answered", || {
        asker.wait(Duration::from_millis(10)).unwrap();
        let take = |update| match update {
            Update::ListEnd(end) => ends.push((end.reason, end.count)),
            other => told.take(other),
        };
        asker.poll(take).unwrap();
        ends.len() == 2
    });
    assert_eq!(ends, [(Reason::AlreadyAsked, 0), (Reason::None, ORDERS as u32)]);
    assert!(names(&told).into_iter().eq(1..=ORDERS), "each once");
    assert_eq!(list(&mut trader, List::Orders).orders.len(), 0);
}
