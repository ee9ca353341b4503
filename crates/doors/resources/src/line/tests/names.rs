//! Names that stand, or may stand, for another request.

use pares_types::Side;

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

#[test]
fn repeated_mass_cancel_is_answered_to_who_asked_for_it() {
    let mut line = up();
    let (buys, first) = (mass_cancel(7, Some(Side::Buy)), gone(7, 1));
    assert_eq!(told(&mut line, buys, first), LineTold::Answer(first));
    assert_eq!(told(&mut line, buys, repeat(first)), LineTold::Answer(repeat(first)));
    for other in [mass_cancel(7, Some(Side::Sell)), mass_cancel(7, None)] {
        assert_eq!(told(&mut line, other, repeat(first)), USED);
    }
    let mut line = up();
    let refused = Answer { status: Status::Refused, reason: Reason::DuplicateRequest, ..repeat(first) };
    for answer in [repeat(first), Answer { repeat: false, ..refused }, repeat(first)] {
        let told = told(&mut line, buys, answer);
        assert!(told == USED || told == LineTold::Answer(answer) && answer.status == Status::Refused);
    }
}

#[test]
fn mass_cancel_in_flight_is_answered_at_next_gateway() {
    let mut line = up();
    let (buys, first) = (mass_cancel(7, Some(Side::Buy)), gone(7, 1));
    line.ask(buys, 1).unwrap();
    line.on_lost();
    line.ask(mass_cancel(8, None), 1).unwrap();
    line.on_signed_on(4, None);
    assert_eq!(hears(&mut line, repeat(first)), LineTold::Answer(repeat(first)));
    assert_eq!(told(&mut line, buys, repeat(first)), LineTold::Answer(repeat(first)));
    assert_eq!(hears(&mut line, repeat(gone(8, 2))), USED, "no gateway had it from this line");
}

/// A follower has the stream sent again, with the answer to an earlier request of the name.
#[test]
fn replayed_answer_is_not_taken_for_one_to_new_mass_cancel() {
    let mut line = live(10);
    line.follow(ShardId(0), 3);
    line.ask(mass_cancel(7, Some(Side::Sell)), 1).unwrap();
    let replayed = GatewayFrame::Reply(Reply::Answer(gone(7, 3)));
    assert!(matches!(hear(&mut line, replayed)[..], [Effect::Stream(ShardId(0), 3, _)]));
    assert_eq!(hears(&mut line, repeat(gone(7, 3))), USED);
    let first = gone(9, 10);
    assert_eq!(told(&mut line, mass_cancel(9, None), first), LineTold::Answer(first), "that is new");
}

#[test]
fn answered_mass_cancels_are_remembered_within_bounds() {
    let mut line = up();
    let (names, last) = (MASS_CANCELS_MAX as u64, MASS_CANCELS_MAX as u64 + 1);
    (1..=last).for_each(|name| _ = told(&mut line, mass_cancel(name, None), gone(name, name)));
    assert_eq!(line.mass_cancels.len() as u64, names);
    assert_eq!(told(&mut line, mass_cancel(1, None), repeat(gone(1, 1))), USED);
    let second = repeat(gone(2, 2));
    assert_eq!(told(&mut line, mass_cancel(2, None), second), LineTold::Answer(second));
}
