//! Placements: the steps of a move, the file that records them, and what is refused.

use super::*;
use crate::LaneConfig;

const SHARD: ShardId = ShardId(3);

fn set(venues: &[u16]) -> VenueSet {
    venues.iter().copied().map(VenueId).collect()
}

/// Ten shards; shard 3 alone in its lane.
fn config(venues: &[u16]) -> SystemConfig {
    let others = (0..10).filter(|&shard| shard != SHARD.0).collect();
    let lanes = vec![
        LaneConfig { shards: others, venues: vec![0, 1, 2, 3] },
        LaneConfig { shards: vec![SHARD.0], venues: venues.into() },
    ];
    SystemConfig { venues: 4, lanes, ..SystemConfig::default() }
}

/// The placement after these steps of shard 3 to those venues.
fn moved(steps: u64, to: &[u16]) -> Placement {
    let config = config(&[0, 1]);
    (0..steps).fold(config.placement().unwrap(), |placement, _| {
        let next = placement.seats(SHARD).next(set(to)).unwrap();
        placement.with(SHARD, next, &config).unwrap()
    })
}

#[test]
fn who_executes_and_who_votes_at_each_step() {
    let of = |steps| {
        let seats = moved(steps, &[1, 2]).seats(SHARD);
        (seats.all(), seats.voters(), seats.coming())
    };
    let (old, new, both) = (set(&[0, 1]), set(&[1, 2]), set(&[0, 1, 2]));
    assert_eq!(of(0), (old, old.into(), VenueSet::NONE));
    assert_eq!(of(1), (both, old.into(), set(&[2])));
    assert_eq!(of(2), (both, Voters { before: old, after: new }, set(&[2])));
    assert_eq!(of(3), (new, new.into(), VenueSet::NONE));
    assert_eq!(moved(3, &[1, 2]).number(), 3);
}

#[test]
fn a_move_is_taken_back_from_each_step_and_goes_nowhere_else() {
    let (old, new) = (set(&[0, 1]), set(&[1, 2]));
    let [begun, joined] = [1, 2].map(|steps| moved(steps, &[1, 2]).seats(SHARD));
    assert_eq!(begun.next(old), Some(Seats::Settled(old)));
    let back = joined.next(old).unwrap();
    assert_eq!(back, Seats::Moving { before: new, after: old, step: MoveStep::Joined });
    assert_eq!(back.next(old), Some(Seats::Settled(old)));
    assert_eq!([begun, joined].map(|seats| seats.next(set(&[3]))), [None, None]);
}

#[test]
fn every_step_is_read_as_it_is_written() {
    let config = config(&[0, 1]);
    for steps in 0..4 {
        let placement = moved(steps, &[1, 2]);
        let text = placement.text(&config).unwrap();
        assert_eq!(Placement::read(&text, &config, false).unwrap(), placement, "{text}");
    }
}

#[test]
fn a_changed_pares_toml_is_refused_where_it_contradicts() {
    let text = |steps| moved(steps, &[1, 2]).text(&config(&[0, 1])).unwrap();
    let read = |steps, venues: &[u16], starts| Placement::read(&text(steps), &config(venues), starts);
    for steps in 0..4 {
        let error = read(steps, &[0], false).unwrap_err().0;
        assert!(error.contains("put 0, 1 back"), "{error}");
    }
    for (steps, venues, is_fine) in
        [(0, &[0][..], true), (3, &[1, 2], true), (3, &[0], false), (2, &[1, 2], false)]
    {
        let read = read(steps, venues, true);
        assert_eq!(read.is_ok(), is_fine, "{read:?}");
        if let Ok(placement) = read {
            assert_eq!(placement.seats(SHARD), Seats::Settled(set(venues)));
        }
    }
}

#[test]
fn impossible_texts_and_venues_without_shards_are_refused() {
    let config = config(&[0, 1]);
    let good = moved(1, &[1, 2]).text(&config).unwrap();
    for (from, to) in [("to = [1, 2]", ""), ("[1, 2]", "[1, 16]"), ("[1, 2]", "[1, 9]"), ("number", "numbr")]
    {
        assert!(good.contains(from), "{good}");
        Placement::read(&good.replace(from, to), &config, false).unwrap_err();
    }
    let lane = |shard, venue| LaneConfig { shards: vec![shard], venues: vec![venue] };
    let others = LaneConfig { shards: (2..10).collect(), venues: vec![0] };
    let two =
        SystemConfig { venues: 2, lanes: vec![lane(0, 0), lane(1, 1), others], ..SystemConfig::default() };
    let placement = two.placement().unwrap();
    let error = placement.with(ShardId(1), Seats::Settled(set(&[0])), &two).unwrap_err();
    assert!(error.0.contains("venue 1 would execute nothing"), "{}", error.0);
}
