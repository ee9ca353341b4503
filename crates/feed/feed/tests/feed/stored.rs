//! A publication that was stored continues as if it had never stopped, and bytes that are none are refused.

use pares_feed::publication::{Publication, PublicationError};
use pares_random::Random;
use pares_types::ShardId;

use crate::{SHARD, Tape, run, tape};

fn stored(publication: &Publication) -> Vec<u8> {
    let mut bytes = Vec::new();
    publication.store(&mut bytes);
    bytes
}

/// The tape of a seed whose publication is stored and brought back after every `pause` records.
fn interrupted(seed: u64, pause: usize) -> Tape {
    let (mut tape, mut records) = (Tape::default(), 0);
    run(seed, |publication, recorded, _| {
        recorded.publish(publication, &mut tape);
        records += 1;
        if records % pause == 0 {
            let bytes = stored(publication);
            *publication = Publication::restore(SHARD, &bytes).unwrap();
            assert_eq!(stored(publication), bytes, "seed {seed}, record {records}");
        }
    });
    tape
}

/// A publication in the middle of its record.
fn halfway(seed: u64) -> Vec<u8> {
    let (mut tape, mut records) = (Tape::default(), 0..400);
    stored(&run(seed, |publication, recorded, _| {
        if records.next().is_some() {
            recorded.publish(publication, &mut tape);
        }
    }))
}

#[test]
fn stored_state_continues_with_same_bytes() {
    for seed in 0..300 {
        assert!(interrupted(seed, 1) == tape(seed), "seed {seed}, after every record");
        let pause = 2 + seed as usize % 50;
        assert!(interrupted(seed, pause) == tape(seed), "seed {seed}, after {pause} records");
    }
}

#[test]
fn one_that_has_not_begun_begins_after_it_was_stored() {
    let bytes = stored(&Publication::new(SHARD, &[]));
    assert_eq!(stored(&Publication::restore(SHARD, &bytes).unwrap()), bytes);
}

#[test]
fn short_long_or_foreign_state_is_refused() {
    let bytes = halfway(1);
    for length in 0..bytes.len() {
        assert!(Publication::restore(SHARD, &bytes[..length]).is_err(), "{length} of {} bytes", bytes.len());
    }
    let refused = |bytes: &[u8]| Publication::restore(SHARD, bytes).err();
    assert_eq!(refused(&[&bytes[..], b"x"].concat()), Some(PublicationError::TrailingBytes(1)));
    assert_eq!(refused(&[b"PARESF00", &bytes[8..]].concat()), Some(PublicationError::Magic));
    let other = Publication::restore(ShardId(4), &bytes).err();
    assert_eq!(other, Some(PublicationError::OtherShard(SHARD)));
}

#[test]
fn a_count_of_more_than_there_is_allocates_nothing() {
    let mut bytes = stored(&Publication::new(SHARD, &[]));
    let last = bytes.len() - 8;
    bytes[last..].copy_from_slice(&u64::MAX.to_le_bytes());
    assert_eq!(Publication::restore(SHARD, &bytes).err(), Some(PublicationError::Truncated));
}

#[test]
fn any_bytes_are_refused_or_restore_identically() {
    let mut restored = 0;
    for seed in 0..40 {
        let bytes = halfway(seed);
        let mut random = Random::new(seed);
        for _ in 0..500 {
            let mut damaged = bytes.clone();
            let [a, b, c, value] = random.bytes(4).try_into().unwrap();
            let at = (usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c)) % damaged.len();
            damaged[at] = value;
            if let Ok(publication) = Publication::restore(SHARD, &damaged) {
                assert!(stored(&publication) == damaged, "seed {seed}, byte {at}");
                restored += 1;
            }
        }
    }
    assert!(restored > 1_000, "{restored} were restored");
}
