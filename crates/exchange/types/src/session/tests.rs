//! Sessions as numbers, and which request an answer can be of.

use super::*;
use crate::{GatewayId, NewOrder};

#[test]
fn an_answer_fits_requests_of_its_own_kind_only() {
    let (client_order_id, target, instrument) = (ClientOrderId(5), ClientOrderId(1), InstrumentId(3));
    let order = NewOrder::limit(Side::Buy, Price(1), Quantity(1));
    let requests = [
        ClientRequest::Enter { client_order_id, instrument, order },
        ClientRequest::Amend { client_order_id, target, terms: NewTerms::new(Price(1), Quantity(1)) },
        ClientRequest::Cancel { client_order_id, target },
        ClientRequest::MassCancel { client_order_id, instrument, side: None },
        ClientRequest::MassCancel { client_order_id, instrument: InstrumentId(0), side: None },
    ];
    let request = RequestId::new(GatewayId(1), 5);
    let other = OrderId(RequestId::new(GatewayId(1), 1));
    let cases = [
        (OrderId(request), 3, Status::Resting, [true, false, false, false, false]),
        (OrderId(request), 3, Status::Refused, [true, true, true, true, false]),
        (OrderId(request), 3, Status::MassCancelled, [false, false, false, true, false]),
        (OrderId(request), 4, Status::MassCancelled, [false; 5]),
        (OrderId(request), 0, Status::MassCancelled, [false, false, false, false, true]),
        (OrderId(request), 0, Status::Accepted, [false; 5]),
        (other, 3, Status::Resting, [false, true, false, false, false]),
        (other, 3, Status::Cancelled, [false, true, true, false, false]),
        (other, 3, Status::Refused, [false, true, true, false, false]),
    ];
    for (order, instrument, status, expected) in cases {
        let answer = Answer {
            client_order_id,
            request,
            order,
            shard: ShardId(0),
            position: Position(9),
            instrument: InstrumentId(instrument),
            status,
            reason: Reason::None,
            executed: Quantity::ZERO,
            remaining: Quantity::ZERO,
            events: 0,
            repeat: true,
            number: 0,
            asked: RequestDigest::UNKNOWN,
        };
        let found = requests.map(|request| answer.can_be_of(&request));
        assert_eq!(found, expected, "{status:?} of {order} in {instrument}");
    }
}
