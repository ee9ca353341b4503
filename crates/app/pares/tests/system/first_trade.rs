//! Two members, one trade: the whole way through, with the README's numbers.

use pares_client::{Client, Role, Update};
use pares_types::{ClientOrderId, Price, Quantity, Reason, Side, Status};

use crate::common::exchange::{Exchange, small};
use crate::common::{PATIENCE, cancel, limit, record};

/// The next update, whatever it is.
fn next(client: &mut Client) -> Update {
    let mut updates = Vec::new();
    client.flush().unwrap();
    assert!(client.wait(PATIENCE).unwrap(), "an update comes");
    client.poll(|update| updates.push(update)).unwrap();
    assert_eq!(updates.len(), 1, "{updates:?}");
    updates.remove(0)
}

#[test]
fn two_members_trade_and_both_are_told() {
    let mut exchange = Exchange::start(&small(1));
    let (mut seller, mut buyer) = (exchange.client(0, 7), exchange.client(0, 8));
    let rests = seller.submit_and_wait(&limit(1, 1, Side::Sell, 100, 2_238_200)).unwrap();
    assert_eq!((rests.status, rests.remaining), (Status::Resting, Quantity(100)));

    let filled = buyer.submit_and_wait(&limit(1, 1, Side::Buy, 60, 2_239_000)).unwrap();
    assert_eq!((filled.status, filled.executed, filled.events), (Status::Filled, Quantity(60), 1));
    assert_eq!(filled.position, rests.position.next());

    let Update::Trade(bought) = next(&mut buyer) else { panic!("the buyer is told of its trade") };
    let Update::Trade(sold) = next(&mut seller) else { panic!("the seller is told of its trade") };
    for trade in [bought, sold] {
        assert_eq!((trade.price, trade.quantity), (Price(2_238_200), Quantity(60)), "at the resting price");
        assert_eq!((trade.position, trade.client_order_id), (filled.position, ClientOrderId(1)));
    }
    assert_eq!((bought.side, bought.role, bought.remaining), (Side::Buy, Role::Incoming, Quantity(0)));
    assert_eq!((sold.side, sold.role, sold.remaining), (Side::Sell, Role::Resting, Quantity(40)));

    let gone = seller.submit_and_wait(&cancel(2, 1)).unwrap();
    assert_eq!((gone.status, gone.reason), (Status::Cancelled, Reason::Requested));
    assert_eq!((gone.executed, gone.remaining), (Quantity(60), Quantity(0)));

    let records = record::agreed(&mut exchange);
    record::check_matching(exchange.config(), &records);
    assert_eq!(records.values().map(Vec::len).sum::<usize>(), 3);
}

#[test]
fn a_first_trade_through_two_gateways_is_reported_on_both() {
    let exchange = Exchange::start(&small(2));
    let (mut seller, mut buyer) = (exchange.client(0, 7), exchange.client(1, 8));
    seller.submit_and_wait(&limit(1, 3, Side::Sell, 5, 2_238_200)).unwrap();
    let filled = buyer.submit_and_wait(&limit(1, 3, Side::Buy, 5, 2_238_200)).unwrap();
    assert_eq!((filled.status, filled.executed), (Status::Filled, Quantity(5)));
    assert!(matches!(next(&mut buyer), Update::Trade(trade) if trade.quantity == Quantity(5)));
    assert!(matches!(next(&mut seller), Update::Trade(trade) if trade.quantity == Quantity(5)));
}
