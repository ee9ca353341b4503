//! Names that stand, or may stand, for another request.

use pares_types::{NewOrder, Price, Side};

use super::*;

#[test]
fn another_request_of_a_name_in_flight_is_refused() {
    let mut line = up();
    line.ask(cancel(7), 1).unwrap();
    let other = ClientRequest::Cancel { client_order_id: ClientOrderId(7), target: ClientOrderId(2) };
    assert_eq!(line.ask(other, 2), Err(Refused::Differs));
    let effects = hear(&mut line, answered(7, 0));
    assert_eq!(effects, [Effect::Told(1, LineTold::Answer(answer(7, 0)))]);
}

fn mass_cancel(name: u64, side: Option<Side>) -> ClientRequest {
    let (client_order_id, instrument) = (ClientOrderId(name), replies::ACME);
    ClientRequest::MassCancel { client_order_id, instrument, side }
}

/// The first answer to a mass cancel.
fn gone(name: u64, number: u64) -> Answer {
    Answer { status: Status::MassCancelled, reason: Reason::None, ..replies::answer(name, number) }
}

fn repeat(answer: Answer) -> Answer {
    Answer { repeat: true, number: 0, ..answer }
}

/// What waiter 1 receives for that request, if the gateway answers so.
fn told(line: &mut Line<u32>, request: ClientRequest, answer: Answer) -> LineTold {
    line.ask(request, 1).unwrap();
    hears(line, answer)
}

fn hears(line: &mut Line<u32>, answer: Answer) -> LineTold {
    let mut effects = hear(line, GatewayFrame::Reply(Reply::Answer(answer)));
    effects.retain(|effect| matches!(effect, Effect::Told(..)));
    let [Effect::Told(1, told)] = &effects[..] else { panic!("{effects:?}") };
    told.clone()
}

const USED: LineTold = LineTold::Rejected(Reason::DuplicateRequest);

/// The answer to that request.
fn of(request: ClientRequest, answer: Answer) -> Answer {
    Answer { asked: request.asked(), ..answer }
}

#[test]
fn repeated_mass_cancel_is_answered_to_who_asks_the_same() {
    let buys = mass_cancel(7, Some(Side::Buy));
    let first = of(buys, gone(7, 1));
    let mut line = up();
    assert_eq!(told(&mut line, buys, first), LineTold::Answer(first));
    for mut line in [line, up()] {
        assert_eq!(told(&mut line, buys, repeat(first)), LineTold::Answer(repeat(first)));
        for other in [mass_cancel(7, Some(Side::Sell)), mass_cancel(7, None)] {
            assert_eq!(told(&mut line, other, repeat(first)), USED);
        }
    }
}

#[test]
fn mass_cancel_in_flight_is_answered_at_next_gateway() {
    let mut line = up();
    let buys = mass_cancel(7, Some(Side::Buy));
    let first = of(buys, gone(7, 1));
    line.ask(buys, 1).unwrap();
    line.on_lost();
    line.on_signed_on(4, None);
    assert_eq!(hears(&mut line, repeat(first)), LineTold::Answer(repeat(first)));
}

fn enter(name: u64, instrument: InstrumentId, side: Side) -> ClientRequest {
    let order = NewOrder::limit(side, Price(1), Quantity(100));
    ClientRequest::Enter { client_order_id: ClientOrderId(name), instrument, order }
}

/// The stream has the answer to another request of the name: an earlier one, told again; another session's, on its way as this one was asked; or one
/// of another shard.
#[test]
fn answer_to_another_request_of_name_is_not_passed_on() {
    let order = |side| enter(7, replies::ACME, side);
    let other_instrument = enter(7, InstrumentId(18), Side::Sell);
    let cases = [
        (mass_cancel(7, Some(Side::Buy)), mass_cancel(7, Some(Side::Sell)), gone(7, 3)),
        (order(Side::Buy), order(Side::Sell), replies::answer(7, 3)),
        (
            other_instrument,
            order(Side::Sell),
            Answer { instrument: InstrumentId(18), ..replies::answer(7, 3) },
        ),
    ];
    for (first, own, answer) in cases {
        let (answer, mut line) = (of(first, answer), live(10));
        line.follow(ShardId(0), 3);
        line.ask(own, 1).unwrap();
        let streamed = GatewayFrame::Reply(Reply::Answer(answer));
        assert!(matches!(hear(&mut line, streamed)[..], [Effect::Stream(ShardId(0), 3, _)]));
        assert_eq!(hears(&mut line, repeat(answer)), USED);
        line.ask(own, 1).unwrap();
        let own = of(own, Answer { instrument: replies::ACME, number: 10, ..answer });
        assert_eq!(hears(&mut line, own), LineTold::Answer(own), "it was executed, too");
    }
}

#[test]
fn cancel_of_another_order_under_name_is_not_passed_on() {
    let mut line = live(3);
    line.ask(cancel(7), 1).unwrap();
    hear(&mut line, GatewayFrame::Reply(Reply::Cancelled(replies::cancelled(2, 3))));
    let other = of(cancel(7), Answer { order: replies::order_id(2), ..answer(7, 4) });
    assert!(matches!(hear(&mut line, GatewayFrame::Reply(Reply::Answer(other)))[..], [Effect::Stream(..)]));
    hear(&mut line, GatewayFrame::Reply(Reply::Cancelled(replies::cancelled(1, 5))));
    let own = of(cancel(7), Answer { order: replies::order_id(1), ..answer(7, 6) });
    assert_eq!(hears(&mut line, own), LineTold::Answer(own));
}

#[test]
fn refused_cancel_of_another_order_is_not_passed_on() {
    let late = |of, number| {
        let refused = Answer { status: Status::Refused, reason: Reason::UnknownOrder, ..answer(7, number) };
        Answer { order: replies::order_id(of), asked: cancel(7).asked(), ..refused }
    };
    let mut line = live(4);
    line.ask(cancel(7), 1).unwrap();
    let asked = sent(&mut line);
    assert!(matches!(
        hear(&mut line, GatewayFrame::Reply(Reply::Answer(late(2, 4))))[..],
        [Effect::Stream(..)]
    ));
    assert_eq!(sent(&mut line), [*asked.last().unwrap()], "once more: the gateway knows");
    hear(&mut line, GatewayFrame::Reply(Reply::Cancelled(replies::cancelled(1, 5))));
    let own = of(cancel(7), answer(7, 6));
    assert_eq!(hears(&mut line, own), LineTold::Answer(own));
    line.ask(cancel(7), 1).unwrap();
    hear(&mut line, GatewayFrame::Reply(Reply::Answer(late(1, 7))));
    assert_eq!(hears(&mut line, repeat(late(1, 7))), LineTold::Answer(repeat(late(1, 7))));
}
