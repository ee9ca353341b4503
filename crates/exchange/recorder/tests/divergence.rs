//! Venues of which some compute something else: who is found, who is not, and when a shard halts (design section 3).
#![allow(clippy::unwrap_used)] // a test may panic; clippy lets tests unwrap, but not what they share

use pares_recorder::evidence::RECENT;
use pares_recorder::{Acceptance, Disputed, Divergence, NOBODY, Offer, Source, Statement, Verdict};
use pares_types::{Epoch, GatewayId, Position, RequestId, VenueId, VenueSet, Voters};
use proptest::prelude::*;

const EPOCH: Epoch = Epoch(3);
/// States are hashed at multiples of this.
const HASH_EVERY: u64 = 8;

/// What a venue hands out about a position; `wrong` is 0 for one that works.
fn says(venue: u16, position: u64, wrong: u32) -> Offer {
    let state_hash = position.is_multiple_of(HASH_EVERY).then_some(position ^ u64::from(wrong) << 32);
    let request = RequestId::new(GatewayId(1), position + 1);
    let said = Statement { request, content: wrong, state_hash };
    Offer { source: Source::Venue, venue: VenueId(venue), epoch: EPOCH, position: Position(position), said }
}

/// One recorder, which shuts out whom it finds.
struct Recorder {
    shard: Acceptance,
    /// Who wrote what was taken, and whom it was found wrong by.
    taken: Vec<VenueId>,
    found: Vec<(Position, VenueSet)>,
    disputed: Vec<Disputed>,
}

impl Recorder {
    fn new(venues: u16) -> Self {
        let shard = Acceptance::new(EPOCH, VenueSet::first(venues));
        Self { shard, taken: Vec::new(), found: Vec::new(), disputed: Vec::new() }
    }

    fn hears(&mut self, offer: &Offer) -> Verdict {
        let verdict = self.shard.offer(offer);
        match verdict {
            Verdict::Take => {
                self.shard.take(offer);
                self.taken.push(offer.venue);
            }
            Verdict::Found => assert!(self.shard.has_finding()),
            _ => {}
        }
        if let Some(finding) = self.shard.take_finding() {
            self.found.push((finding.dispute.position, finding.outvoted));
            let outvoted = finding.outvoted.iter();
            self.disputed.extend(outvoted.map(|venue| self.shard.shut_out(venue)));
        }
        verdict
    }

    /// All that is handed out, each venue's in its order, in turns of `schedule`; then the rest.
    fn hears_all(&mut self, logs: &[Vec<Offer>], schedule: &[(usize, usize)]) {
        let mut read = vec![0; logs.len()];
        let rest =
            (0..logs.len()).cycle().map(|venue| (venue, usize::MAX)).take(logs.len() * logs.len() * 64);
        for (venue, most) in schedule.iter().map(|&(venue, most)| (venue % logs.len(), most)).chain(rest) {
            for _ in 0..most {
                let Some(offer) = logs[venue].get(read[venue]) else { break };
                if self.hears(offer) == Verdict::Wait {
                    break;
                }
                read[venue] += 1;
            }
        }
    }
}

/// What each venue hands out: the positions that it owns, and all of them where states are hashed. `wrong` says from which
/// position on a venue is wrong, and in which way.
fn logs(owners: &[u8], wrong: &[Option<(u64, u32)>]) -> Vec<Vec<Offer>> {
    let hand_out = |(venue, wrong): (u16, &Option<(u64, u32)>)| {
        let mut log = Vec::new();
        for (position, owner) in (0..).zip(owners) {
            if position % HASH_EVERY == 0 || owner & 1 << venue != 0 {
                let how = wrong.filter(|&(from, _)| position >= from).map_or(0, |(_, how)| how);
                log.push(says(venue, position, how));
            }
        }
        log
    };
    (0..).zip(wrong).map(hand_out).collect()
}

fn schedules() -> impl Strategy<Value = Vec<(usize, usize)>> {
    prop::collection::vec((0_usize..5, 1_usize..30), 0..120)
}

proptest! {
    #[test]
    fn one_wrong_venue_of_three_found_by_next_hash(
        venues in 3_u16..6,
        owners in prop::collection::vec(any::<u8>(), 20..200),
        (who, from) in (0_u16..6, 0_u64..100),
        schedule in schedules(),
    ) {
        let (who, from) = (who % venues, from % owners.len() as u64);
        // Two that work hand everything out: what a wrong one alone would have is never missing.
        let keep = if who == 0 { 0b10 } else { 0b01 };
        let owners: Vec<u8> = owners.iter().map(|owner| owner | keep).collect();
        let mut wrong = vec![None; usize::from(venues)];
        wrong[usize::from(who)] = Some((from, 7));
        let mut recorder = Recorder::new(venues);
        recorder.hears_all(&logs(&owners, &wrong), &schedule);

        prop_assert_eq!(recorder.shard.divergence(), None);
        prop_assert_eq!(recorder.taken.len(), owners.len(), "the others go on to the end");
        for (position, outvoted) in &recorder.found {
            prop_assert_eq!(*outvoted, VenueSet::one(VenueId(who)));
            prop_assert!((from..from + HASH_EVERY).contains(&position.0), "{}", position);
        }
        let last_hash = (owners.len() as u64 - 1) / HASH_EVERY * HASH_EVERY;
        prop_assert!(recorder.found.len() <= 1 && (recorder.found.len() == 1 || last_hash < from));
        prop_assert!(!recorder.shard.is_in_dispute() || last_hash < from);
        for disputed in &recorder.disputed {
            let alone = |position: &u64| recorder.taken[*position as usize] == VenueId(who);
            prop_assert!(disputed.agreed.is_none_or(|agreed| agreed.0 < from));
            prop_assert!(disputed.between.is_none_or(|(first, last)| alone(&first.0) && alone(&last.0)));
        }
    }

    #[test]
    fn recorders_never_believe_different_venues(
        venues in 1_u16..6,
        owners in prop::collection::vec(any::<u8>(), 10..120),
        wrong in prop::collection::vec(prop::option::of((0_u64..60, 1_u32..3)), 5),
        schedules in (schedules(), schedules()),
    ) {
        let logs = logs(&owners, &wrong[..usize::from(venues)]);
        let mut believed: Vec<VenueSet> = Vec::new();
        for schedule in [schedules.0, schedules.1] {
            let mut recorder = Recorder::new(venues);
            recorder.hears_all(&logs, &schedule);
            let out = recorder.found.iter().fold(VenueSet::NONE, |all, (_, outvoted)| all.or(*outvoted));
            // More than half are never found wrong, so any two recorders have a believed venue in common.
            prop_assert!(2 * out.len() < u32::from(venues).max(1), "{:?}", out);
            prop_assert!(venues > 2 || out.is_empty(), "one or two venues cannot be judged");
            believed.push(out);
        }
        let right: Vec<_> = (0..venues).filter(|&venue| wrong[usize::from(venue)].is_none()).collect();
        if 2 * right.len() > usize::from(venues) && venues > 2 {
            for out in &believed {
                prop_assert!(right.iter().all(|&venue| !out.contains(VenueId(venue))), "{:?}", out);
            }
        }
    }
}

fn recorder(venues: u16, positions: u64, by: u16) -> Recorder {
    let mut recorder = Recorder::new(venues);
    (0..positions).for_each(|position| {
        assert_eq!(recorder.hears(&says(by, position, 0)), Verdict::Take);
    });
    recorder
}

#[test]
fn of_two_venues_nobody_knows_which_one_is_wrong() {
    let mut recorder = recorder(2, 8, 0);
    assert_eq!(recorder.hears(&says(1, 5, 7)), Verdict::Halted);
    let divergence = Divergence::Content { position: Position(5), taken: 0, offered: 7 };
    assert_eq!(recorder.shard.divergence(), Some(divergence));
    assert_eq!(recorder.hears(&says(0, 8, 0)), Verdict::Halted);
}

#[test]
fn third_venue_decides_and_blocks_nothing_before() {
    let mut recorder = recorder(3, 9, 0);
    assert_eq!(recorder.hears(&says(1, 8, 7)), Verdict::Known);
    assert!(recorder.shard.is_in_dispute());
    assert_eq!(recorder.hears(&says(0, 9, 0)), Verdict::Take);
    assert_eq!(recorder.hears(&says(2, 8, 0)), Verdict::Found);
    assert_eq!(recorder.found, [(Position(8), VenueSet::one(VenueId(1)))]);
    assert!(!recorder.shard.is_in_dispute());
    assert_eq!(recorder.disputed[0], Disputed::default());
    assert_eq!(recorder.hears(&says(1, 10, 0)), Verdict::Void, "nothing of it is taken any more");
    assert_eq!(recorder.hears(&says(2, 10, 0)), Verdict::Take);
}

#[test]
fn only_sole_claims_since_last_right_state_are_disputed() {
    let mut recorder = recorder(3, 9, 0);
    assert_eq!(recorder.hears(&says(1, 8, 0)), Verdict::Known);
    for position in 9..17 {
        assert_eq!(recorder.hears(&says(0, position, 7)), Verdict::Take);
    }
    assert_eq!(recorder.hears(&says(1, 16, 0)), Verdict::Known);
    assert_eq!(recorder.hears(&says(2, 16, 0)), Verdict::Found);
    let (agreed, between) = (Some(Position(8)), Some((Position(9), Position(16))));
    assert_eq!(recorder.disputed, [Disputed { agreed, count: 8, between }]);
}

#[test]
fn confirmed_results_are_not_disputed_contradicted_are() {
    let mut recorder = recorder(3, 9, 0);
    for position in 9..16 {
        assert_eq!(recorder.hears(&says(0, position, if position < 12 { 0 } else { 7 })), Verdict::Take);
    }
    for position in 10..14 {
        assert_eq!(recorder.hears(&says(1, position, 0)), Verdict::Known);
    }
    assert_eq!(recorder.hears(&says(2, 13, 0)), Verdict::Found);
    // 10 and 11 were confirmed, 12 and 13 contradicted. Of the others nobody else has spoken, which proves nothing.
    let between = Some((Position(0), Position(15)));
    assert_eq!(recorder.disputed, [Disputed { agreed: None, count: 16 - 2, between }]);
}

#[test]
fn three_way_disagreement_halts_shard() {
    let mut recorder = recorder(3, 9, 0);
    assert_eq!(recorder.hears(&says(1, 4, 7)), Verdict::Known);
    assert_eq!(recorder.hears(&says(2, 4, 9)), Verdict::Halted);
}

#[test]
fn unsettled_dispute_halts_shard_in_the_end() {
    let mut recorder = recorder(3, 9, 0);
    assert_eq!(recorder.hears(&says(1, 4, 7)), Verdict::Known);
    let end = 4 + RECENT as u64;
    for position in 9..end {
        assert_eq!(recorder.hears(&says(0, position, 0)), Verdict::Take);
    }
    assert_eq!(recorder.hears(&says(0, end, 0)), Verdict::Halted);
}

#[test]
fn silent_dissenting_venue_is_wrong_if_rest_agree() {
    let mut recorder = recorder(3, 9, 0);
    assert_eq!(recorder.hears(&says(1, 4, 7)), Verdict::Known);
    let end = 4 + RECENT as u64;
    for position in 9..=end {
        assert_eq!(recorder.hears(&says(0, position, 0)), Verdict::Take);
        if position % HASH_EVERY == 0 {
            assert_eq!(recorder.hears(&says(2, position, 0)), Verdict::Known);
        }
    }
    assert_eq!(recorder.found, [(Position(4), VenueSet::one(VenueId(1)))]);
    assert_eq!((recorder.shard.divergence(), recorder.shard.is_in_dispute()), (None, false));
}

#[test]
fn wrong_answer_from_right_state_is_settled_next_error() {
    let mut recorder = recorder(3, 17, 0);
    assert_eq!(recorder.hears(&says(1, 12, 7)), Verdict::Known);
    assert_eq!(recorder.hears(&says(1, 16, 0)), Verdict::Known);
    assert_eq!(recorder.hears(&says(2, 16, 0)), Verdict::Known);
    assert!(
        recorder.shard.is_in_dispute(),
        "where states are hashed all agree, and still somebody was wrong"
    );
    assert_eq!(recorder.hears(&says(2, 11, 0)), Verdict::Known);
    assert_eq!(recorder.hears(&says(1, 11, 7)), Verdict::Found);
    assert!(!recorder.shard.is_in_dispute());
}

#[test]
fn other_request_is_not_awaited_before_majority() {
    let mut other = says(1, 4, 0);
    other.said.request = RequestId::new(GatewayId(1), 99);
    let mut first = recorder(3, 9, 0);
    assert_eq!(first.hears(&other), Verdict::Halted);
    let mut second = recorder(3, 9, 0);
    assert_eq!(second.hears(&says(2, 4, 0)), Verdict::Known);
    assert_eq!(second.hears(&other), Verdict::Found);
    assert_eq!(second.found, [(Position(4), VenueSet::one(VenueId(1)))]);
}

#[test]
fn a_venue_that_says_two_things_is_wrong_about_one_of_them() {
    let mut recorder = recorder(3, 9, 0);
    assert_eq!(recorder.hears(&says(1, 4, 0)), Verdict::Known);
    assert_eq!(recorder.hears(&says(1, 4, 7)), Verdict::Found);
    assert_eq!(recorder.found, [(Position(4), VenueSet::one(VenueId(1)))]);
}

#[test]
fn with_one_shut_out_the_two_that_are_left_of_three_must_agree() {
    let mut recorder = recorder(3, 9, 0);
    recorder.shard.shut_out(VenueId(2));
    assert_eq!(recorder.hears(&says(1, 5, 0)), Verdict::Known);
    assert_eq!(recorder.hears(&says(1, 6, 7)), Verdict::Halted);
}

#[test]
fn a_venue_that_is_readmitted_is_taken_from_and_counts_again() {
    let mut recorder = recorder(3, 9, 0);
    recorder.shard.shut_out(VenueId(1));
    assert_eq!(recorder.hears(&says(1, 9, 0)), Verdict::Void);
    recorder.shard.readmit(VenueId(1));
    assert_eq!(recorder.hears(&says(1, 9, 0)), Verdict::Take);
    assert_eq!(recorder.hears(&says(2, 8, 7)), Verdict::Known);
    assert_eq!(recorder.hears(&says(1, 8, 0)), Verdict::Found);
}

#[test]
fn peer_records_of_shut_out_venue_are_accepted() {
    let mut recorder = recorder(3, 9, 0);
    recorder.shard.shut_out(VenueId(2));
    let from_peer = Offer { source: Source::Peer, ..says(2, 9, 7) };
    assert_eq!(recorder.hears(&from_peer), Verdict::Take, "it is recorded, and may be answered");
    assert_eq!(recorder.hears(&says(0, 9, 0)), Verdict::Known);
    assert_eq!(recorder.hears(&says(1, 9, 7)), Verdict::Halted, "what those say who are left counts");
}

#[test]
fn what_nobody_answers_for_is_corrected_by_the_next_to_speak() {
    let mut recorder = recorder(3, 8, 0);
    let wrong = Offer { venue: NOBODY, ..says(0, 8, 7) };
    assert_eq!(recorder.hears(&wrong), Verdict::Take);
    assert_eq!(recorder.hears(&says(0, 8, 0)), Verdict::Known);
    assert_eq!(recorder.hears(&says(1, 8, 0)), Verdict::Known);
    assert_eq!(recorder.hears(&wrong), Verdict::Known);
    assert!(!recorder.shard.is_in_dispute() && recorder.found.is_empty());
    assert_eq!(recorder.hears(&says(2, 8, 7)), Verdict::Found);
}

/// A system of five venues, of which 2, 3 and 4 execute the shard, or only 3 and 4.
fn in_a_lane(venues: impl IntoIterator<Item = u16>, positions: u64) -> Recorder {
    let shard = Acceptance::new(EPOCH, venues.into_iter().map(VenueId).collect::<VenueSet>());
    let mut recorder = Recorder { shard, ..Recorder::new(5) };
    (0..positions).for_each(|at| assert_eq!(recorder.hears(&says(3, at, 0)), Verdict::Take));
    recorder
}

#[test]
fn two_of_three_in_a_lane_are_a_majority_of_five_are_not() {
    let mut recorder = in_a_lane([2, 3, 4], 9);
    assert_eq!(recorder.hears(&says(4, 8, 7)), Verdict::Known);
    assert_eq!(recorder.hears(&says(2, 8, 0)), Verdict::Found);
    assert_eq!(recorder.found, [(Position(8), VenueSet::one(VenueId(4)))]);
    assert_eq!(
        (recorder.hears(&says(4, 9, 0)), recorder.hears(&says(2, 9, 0))),
        (Verdict::Void, Verdict::Take)
    );
}

#[test]
fn a_venue_of_another_lane_is_not_heard() {
    let mut recorder = in_a_lane([2, 3, 4], 9);
    assert_eq!(recorder.hears(&says(0, 9, 0)), Verdict::Void, "what it says is taken from nobody's log");
    for position in [4, 8] {
        assert_eq!(recorder.hears(&says(0, position, 7)), Verdict::Known);
        assert_eq!(recorder.hears(&says(1, position, 7)), Verdict::Known);
    }
    assert!(!recorder.shard.is_in_dispute() && recorder.shard.divergence().is_none());
    let from_peer = Offer { source: Source::Peer, ..says(0, 9, 0) };
    assert_eq!(recorder.hears(&from_peer), Verdict::Take, "it is recorded there");
    assert_eq!(recorder.hears(&says(2, 9, 7)), Verdict::Known);
    assert_eq!(recorder.hears(&says(3, 9, 7)), Verdict::Found, "who executes the shard says what is right");
    assert_eq!(recorder.found, [(Position(9), VenueSet::one(VenueId(0)))]);
}

#[test]
fn shut_out_in_another_lane_leaves_the_silent_ones_here() {
    let mut recorder = in_a_lane([2, 3, 4], 9);
    recorder.shard.shut_out(VenueId(0));
    recorder.shard.shut_out(VenueId(1));
    assert_eq!(recorder.hears(&says(4, 8, 7)), Verdict::Known, "a third may yet decide");
    assert_eq!(recorder.hears(&says(2, 8, 0)), Verdict::Found);
}

#[test]
fn of_two_in_a_lane_nobody_knows_whatever_others_say() {
    let mut recorder = in_a_lane([3, 4], 9);
    assert_eq!(recorder.hears(&says(2, 8, 7)), Verdict::Known);
    assert_eq!(recorder.hears(&says(4, 8, 7)), Verdict::Halted);
}

#[test]
fn a_venue_alone_in_its_lane_is_outvoted_by_nobody() {
    let mut recorder = in_a_lane([3], 9);
    for other in [0, 1, 2, 4] {
        assert_eq!(recorder.hears(&says(other, 8, 7)), Verdict::Known);
    }
    assert_eq!(recorder.hears(&says(3, 9, 0)), Verdict::Take);
    assert!(recorder.found.is_empty() && !recorder.shard.is_in_dispute());
}

/// The shard of venues 2, 3 and 4 moves to 0, 1 and 3.
fn moving() -> Recorder {
    let set = |venues: [u16; 3]| venues.into_iter().map(VenueId).collect();
    let mut recorder = in_a_lane([2, 3, 4], 9);
    recorder.shard.reseat(Voters { before: set([2, 3, 4]), after: set([0, 1, 3]) });
    recorder
}

#[test]
fn while_a_shard_moves_a_majority_of_both_sets_is_believed() {
    let mut recorder = moving();
    assert_eq!(recorder.hears(&says(4, 8, 7)), Verdict::Known);
    assert_eq!(recorder.hears(&says(2, 8, 0)), Verdict::Known, "of those who come it is one of three");
    assert_eq!(recorder.hears(&says(0, 8, 0)), Verdict::Found);
    assert_eq!(recorder.found, [(Position(8), VenueSet::one(VenueId(4)))]);
}

#[test]
fn a_dispute_is_judged_again_by_those_who_have_a_vote() {
    let [mut back, mut on] = [moving(), moving()];
    for recorder in [&mut back, &mut on] {
        assert_eq!(recorder.hears(&says(4, 8, 7)), Verdict::Known);
        assert_eq!(recorder.hears(&says(2, 8, 0)), Verdict::Known);
    }
    back.shard.reseat([2, 3, 4].into_iter().map(VenueId).collect::<VenueSet>().into());
    back.shard.judge_again();
    assert_eq!(back.shard.take_finding().map(|finding| finding.outvoted), Some(VenueSet::one(VenueId(4))));
    on.shard.reseat([0, 1, 3].into_iter().map(VenueId).collect::<VenueSet>().into());
    on.shard.judge_again();
    assert!(
        on.shard.is_in_dispute() && !on.shard.has_finding(),
        "of those who have a vote now two were silent"
    );
    assert_eq!(on.hears(&says(0, 8, 0)), Verdict::Found);
    assert_eq!(on.found, [(Position(8), VenueSet::one(VenueId(4)))]);
    assert_eq!(on.hears(&says(2, 9, 0)), Verdict::Take, "what those hand out who have left is taken");
}

/// The shard of venues 2, 3 and 4 has moved to those.
fn moved(venues: &[u16]) -> Recorder {
    let mut recorder = moving();
    recorder.shard.reseat(venues.iter().copied().map(VenueId).collect::<VenueSet>().into());
    recorder
}

#[test]
fn who_has_left_is_found_wrong_by_those_who_came() {
    let mut recorder = moved(&[0, 1, 3]);
    assert_eq!(recorder.hears(&says(4, 9, 7)), Verdict::Take, "it may have vouched for it");
    assert_eq!(recorder.hears(&says(0, 9, 0)), Verdict::Known);
    assert_eq!(recorder.hears(&says(2, 9, 7)), Verdict::Known, "who has left has no vote");
    assert_eq!(recorder.hears(&says(1, 9, 0)), Verdict::Found);
    let both = [2, 4].into_iter().map(VenueId).collect();
    assert_eq!(recorder.found, [(Position(9), both)]);
    assert!(recorder.disputed.iter().any(|disputed| disputed.count == 1), "it was answered as 4 said");
}

#[test]
fn of_two_that_came_nobody_knows_whether_who_has_left_was_right() {
    for venues in [&[0][..], &[0, 1]] {
        let mut recorder = moved(venues);
        assert_eq!(recorder.hears(&says(0, 8, 7)), Verdict::Halted, "{venues:?}: 3 had said otherwise");
    }
}
