//! Which records are taken, which wait, and what halts a shard.

use super::*;
use pares_types::GatewayId;

fn id(sequence: u64) -> RequestId {
    RequestId::new(GatewayId(1), sequence)
}

impl Acceptance {
    fn offer_and_take(&mut self, offer: &Offer) -> Verdict {
        let verdict = self.offer(offer);
        if verdict == Verdict::Take {
            self.take(offer);
        }
        verdict
    }
}

fn offer(position: u64, sequence: u64) -> Offer {
    let state_hash = position.is_multiple_of(4).then_some(position);
    Offer {
        source: Source::Venue,
        venue: VenueId(0),
        epoch: Epoch(2),
        position: Position(position),
        said: Statement { request: id(sequence), content: 0, state_hash },
    }
}

#[test]
fn paper1_s5_each_position_once_second_venue_ignored() {
    let mut shard = Acceptance::new(Epoch(2), VenueSet::first(2));
    assert_eq!(shard.offer_and_take(&offer(0, 1)), Verdict::Take);
    assert_eq!(shard.offer_and_take(&offer(0, 1)), Verdict::Known);
    assert_eq!(shard.next(), Position(1));
}

#[test]
fn a_record_ahead_of_its_turn_waits() {
    let mut shard = Acceptance::new(Epoch(2), VenueSet::first(2));
    assert_eq!(shard.offer_and_take(&offer(1, 2)), Verdict::Wait);
    assert_eq!(shard.next(), Position(0));
}

#[test]
fn empty_recorder_starts_at_peers_log_without_skips() {
    let mut shard = Acceptance::new(Epoch(2), VenueSet::first(2));
    let from = |source, position| Offer { source, ..offer(position, position + 1) };
    assert_eq!(shard.offer_and_take(&from(Source::Venue, 9)), Verdict::Wait);
    assert_eq!(
        shard.offer_and_take(&from(Source::Peer, 9)),
        Verdict::Wait,
        "what it left out may lie before"
    );
    assert_eq!(shard.offer_and_take(&from(Source::WholePeer, 7)), Verdict::Take);
    assert_eq!(shard.offer_and_take(&from(Source::WholePeer, 9)), Verdict::Wait);
    assert_eq!(shard.offer_and_take(&from(Source::Venue, 8)), Verdict::Take);
}

#[test]
fn earlier_life_decision_is_void_from_venue_not_peer() {
    let mut shard = Acceptance::new(Epoch(2), VenueSet::first(2));
    let old = Offer { epoch: Epoch(1), ..offer(0, 1) };
    assert_eq!(shard.offer_and_take(&old), Verdict::Void);
    assert_eq!(shard.offer_and_take(&Offer { source: Source::Peer, ..old }), Verdict::Take);
}

#[test]
fn another_request_at_a_taken_position_halts_the_shard() {
    let mut shard = Acceptance::new(Epoch(2), VenueSet::first(2));
    shard.offer_and_take(&offer(0, 1));
    assert_eq!(shard.offer_and_take(&offer(0, 2)), Verdict::Halted);
    assert_eq!(
        shard.divergence(),
        Some(Divergence::Request { position: Position(0), taken: id(1), offered: id(2) })
    );
    assert_eq!(shard.offer_and_take(&offer(1, 3)), Verdict::Halted);
}

#[test]
fn another_state_at_a_taken_position_halts_the_shard() {
    let mut shard = Acceptance::new(Epoch(2), VenueSet::first(2));
    shard.offer_and_take(&offer(0, 1));
    let (taken, mut other) = (offer(0, 1), Offer { venue: VenueId(1), ..offer(0, 1) });
    other.said.state_hash = Some(77);
    assert_eq!(shard.offer_and_take(&other), Verdict::Halted);
    let taken = taken.said.state_hash.unwrap();
    let divergence = Divergence::State { position: Position(0), taken, offered: 77 };
    assert_eq!(shard.divergence(), Some(divergence));
}

#[test]
fn differing_result_halts_shard_before_state_check() {
    let mut shard = Acceptance::new(Epoch(2), VenueSet::first(2));
    (0..3).for_each(|position| assert_eq!(shard.offer_and_take(&offer(position, 1)), Verdict::Take));
    let mut other = Offer { venue: VenueId(1), ..offer(2, 1) };
    other.said.content = 9;
    assert_eq!(shard.offer_and_take(&other), Verdict::Halted);
    let divergence = Divergence::Content { position: Position(2), taken: 0, offered: 9 };
    assert_eq!(shard.divergence(), Some(divergence));
}

#[test]
fn what_an_earlier_life_recorded_is_held_against_nobody() {
    let mut shard = Acceptance::new(Epoch(2), VenueSet::first(2));
    shard.recover(&Offer { epoch: Epoch(1), ..offer(0, 1) });
    let mut replayed = offer(0, 1);
    replayed.said.state_hash = Some(77);
    assert_eq!(shard.offer(&replayed), Verdict::Known, "perhaps the one that was wrong is right now");
    assert_eq!(shard.offer(&Offer { venue: VenueId(1), ..replayed }), Verdict::Known);
    assert_eq!(shard.offer(&Offer { venue: VenueId(1), ..offer(0, 1) }), Verdict::Halted);
}

#[test]
fn recovery_continues_after_the_last_record() {
    let mut shard = Acceptance::new(Epoch(2), VenueSet::first(2));
    shard.recover(&offer(7, 8));
    shard.recover(&offer(8, 9));
    assert_eq!(shard.offer_and_take(&offer(9, 10)), Verdict::Take);
}

#[test]
#[should_panic(expected = "gap in the recorder's own log")]
fn a_gap_in_its_own_log_stops_a_recorder() {
    let mut shard = Acceptance::new(Epoch(2), VenueSet::first(2));
    shard.recover(&offer(0, 1));
    shard.recover(&offer(2, 3));
}
