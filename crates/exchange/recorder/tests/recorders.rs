//! Recorders fed by venues that lag, repeat and die, and the committed stream read from them (paper 1
//! sections 2.2 and 5; design section 4).
#![allow(clippy::unwrap_used)] // a test may panic; clippy lets tests unwrap, but not what they share

use pares_recorder::{Acceptance, Divergence, Offer, Quorum, Source, Statement, Verdict};
use pares_types::{Epoch, GatewayId, Position, RecorderId, RequestId, VenueId, VenueSet};
use proptest::prelude::*;

const EPOCH: Epoch = Epoch(2);

fn offer(source: Source, epoch: Epoch, position: u64) -> Offer {
    let request = RequestId::new(GatewayId(1), position + 1);
    let state_hash = position.is_multiple_of(8).then_some(position * 31);
    let said = Statement { request, content: 0, state_hash };
    Offer { source, venue: VenueId(0), epoch, position: Position(position), said }
}

/// A recorder with the log it writes.
struct Recorder {
    acceptance: Acceptance,
    log: Vec<Offer>,
}

impl Recorder {
    fn new() -> Self {
        Self { acceptance: Acceptance::new(EPOCH, VenueSet::first(2)), log: Vec::new() }
    }

    /// Killed and started again: only its log is left.
    fn restart(&mut self) {
        self.acceptance = Acceptance::new(EPOCH, VenueSet::first(2));
        for record in &self.log {
            self.acceptance.recover(record);
        }
    }

    fn offer(&mut self, offer: &Offer) -> Verdict {
        let verdict = self.acceptance.offer(offer);
        if verdict == Verdict::Take {
            self.acceptance.take(offer);
            self.log.push(*offer);
        }
        verdict
    }

    fn positions(&self) -> Vec<u64> {
        self.log.iter().map(|record| record.position.0).collect()
    }
}

/// Reads `log` from `cursor` until a record must wait.
fn poll(recorder: &mut Recorder, log: &[Offer], cursor: &mut usize, max: usize) {
    for _ in 0..max {
        let Some(record) = log.get(*cursor) else { return };
        if recorder.offer(record) == Verdict::Wait {
            return;
        }
        *cursor += 1;
    }
}

proptest! {
    #[test]
    fn positions_taken_once_in_order_despite_skips(
        // What each of two venues hands out; between them nothing is missing.
        owners in prop::collection::vec(1_u8..4, 1..120),
        schedule in prop::collection::vec((0_usize..3, 1_usize..20), 1..80),
    ) {
        let log_of = |venue: u8| {
            let mine = (0..).zip(&owners).filter(move |(_, owner)| *owner & venue != 0);
            mine.map(|(position, _)| offer(Source::Venue, EPOCH, position)).collect::<Vec<_>>()
        };
        let logs = [log_of(1), log_of(2)];
        let (mut recorder, mut cursors) = (Recorder::new(), [0, 0]);
        for (what, count) in schedule {
            match what {
                2 => {
                    recorder.restart();
                    cursors = [0, 0];
                }
                venue => poll(&mut recorder, &logs[venue], &mut cursors[venue], count),
            }
            prop_assert!(recorder.positions().into_iter().eq(0..recorder.log.len() as u64));
        }
        for _ in 0..owners.len() {
            poll(&mut recorder, &logs[0], &mut cursors[0], usize::MAX);
            poll(&mut recorder, &logs[1], &mut cursors[1], usize::MAX);
        }
        prop_assert!(recorder.positions().into_iter().eq(0..owners.len() as u64));
        prop_assert_eq!(recorder.acceptance.divergence(), None);
    }

    #[test]
    fn a_record_is_committed_once_in_order_when_the_quorum_has_it(
        recorders in 1_usize..5,
        quorum_of in 0_usize..4,
        schedule in prop::collection::vec(0_usize..5, 0..300),
    ) {
        let quorum = 1 + quorum_of % recorders;
        let (mut reader, mut shown) = (Quorum::new(recorders, quorum), vec![0_u64; recorders]);
        let mut committed = 0;
        for recorder in schedule.into_iter().map(|recorder| recorder % recorders) {
            let position = shown[recorder];
            shown[recorder] += 1;
            let have = shown.iter().filter(|&&next| next > committed).count();
            let id = RecorderId(u16::try_from(recorder).unwrap());
            let commits = reader.on_record(id, Position(position));
            // The reader has the record of `committed` in hand only if that is the one shown.
            prop_assert_eq!(commits, position == committed && have >= quorum);
            committed += u64::from(commits);
            prop_assert_eq!(reader.committed(), Position(committed));
            let mut sorted = shown.clone();
            sorted.sort_unstable();
            prop_assert_eq!(reader.everywhere(), Position(sorted[0]));
            prop_assert_eq!(committed, sorted[recorders - quorum], "nothing a quorum has is held back");
        }
    }
}

#[test]
fn what_venues_no_longer_hand_out_comes_from_a_peer() {
    // The venues' records start at 5: what came before was recorded by the peer in an earlier epoch.
    let venue: Vec<_> = (5..9).map(|position| offer(Source::Venue, EPOCH, position)).collect();
    let peer: Vec<_> = (0..9).map(|position| offer(Source::Peer, Epoch(1), position)).collect();
    let (mut recorder, mut from_venue, mut from_peer) = (Recorder::new(), 0, 0);
    poll(&mut recorder, &venue, &mut from_venue, usize::MAX);
    assert_eq!((recorder.log.len(), from_venue), (0, 0), "it waits where it is");
    poll(&mut recorder, &peer, &mut from_peer, 6);
    poll(&mut recorder, &venue, &mut from_venue, usize::MAX);
    assert_eq!(recorder.positions(), [0, 1, 2, 3, 4, 5, 6, 7, 8]);
    assert_eq!(recorder.acceptance.divergence(), None);
}

#[test]
fn undecided_leftovers_of_earlier_epoch_are_skipped() {
    let other = |position| {
        let mut other = offer(Source::Venue, Epoch(1), position);
        other.said.request = RequestId::new(GatewayId(9), 1);
        other
    };
    let venue = [offer(Source::Venue, Epoch(1), 0), other(1), other(2), offer(Source::Venue, EPOCH, 1)];
    let mut recorder = Recorder::new();
    recorder.offer(&offer(Source::Peer, Epoch(1), 0));
    poll(&mut recorder, &venue, &mut 0, usize::MAX);
    assert_eq!(recorder.positions(), [0, 1]);
    assert_eq!(recorder.log[1], venue[3]);
}

#[test]
fn a_record_not_appended_is_offered_again() {
    let mut recorder = Recorder::new();
    let first = offer(Source::Venue, EPOCH, 0);
    assert_eq!(recorder.acceptance.offer(&first), Verdict::Take); // and then the disk was full
    assert_eq!(recorder.acceptance.next(), Position(0));
    assert_eq!(recorder.offer(&first), Verdict::Take);
    assert_eq!(recorder.offer(&first), Verdict::Known);
}

#[test]
fn a_divergence_is_found_after_a_restart_too() {
    let mut recorder = Recorder::new();
    (0..9).for_each(|position| {
        assert_eq!(recorder.offer(&offer(Source::Venue, EPOCH, position)), Verdict::Take)
    });
    recorder.restart();
    let mut other = offer(Source::Venue, EPOCH, 8);
    other.said.state_hash = Some(1);
    assert_eq!(recorder.offer(&other), Verdict::Halted);
    let divergence = Divergence::State { position: Position(8), taken: 248, offered: 1 };
    assert_eq!(recorder.acceptance.divergence(), Some(divergence));
    assert_eq!(recorder.offer(&offer(Source::Venue, EPOCH, 9)), Verdict::Halted);
}

#[test]
fn a_reader_that_starts_at_a_checkpoint_commits_from_there() {
    let mut reader = Quorum::new(2, 2);
    reader.start_at(Position(5));
    for position in 3..7 {
        assert!(!reader.on_record(RecorderId(0), Position(position)));
    }
    let commits: Vec<u64> =
        (4..8).filter(|&position| reader.on_record(RecorderId(1), Position(position))).collect();
    assert_eq!(commits, [5, 6]);
}
