//! All that a publisher needs to continue a shard: its publication, and where the recorders' logs were when it was stored.
//!
//! ```text
//!  count (8) | per recorder: known (8), offset (8), shard (8), position (8) | the publication (`Publication::store`)
//! ```

use pares_feed::publication::Publication;
use pares_log::Offset;
use pares_roles::committed::RecordPlace;
use pares_types::{Position, RecorderId, ShardId};

/// Where each recorder's log was, by recorder; `None`: nowhere yet.
pub(crate) type Places = Vec<Option<RecordPlace>>;

const WORD: usize = 8;

/// A shard's state, written.
pub(crate) fn write(places: &Places, publication: &Publication) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut put = |word: u64| bytes.extend_from_slice(&word.to_le_bytes());
    put(places.len() as u64);
    for place in places {
        put(u64::from(place.is_some()));
        let RecordPlace { offset, shard, position } = place.unwrap_or(NOWHERE);
        [offset.0, shard.0.into(), position.0].into_iter().for_each(&mut put);
    }
    publication.store(&mut bytes);
    bytes
}

const NOWHERE: RecordPlace = RecordPlace { offset: Offset::START, shard: ShardId(0), position: Position(0) };

/// A shard's state, read. `None` if the bytes are none of that shard.
pub(crate) fn read(shard: ShardId, bytes: &[u8]) -> Option<(Places, Publication)> {
    let mut rest = bytes;
    let mut next = || {
        let (word, more) = rest.split_first_chunk::<WORD>()?;
        rest = more;
        Some(u64::from_le_bytes(*word))
    };
    let count = next().filter(|&count| count <= u64::from(u8::MAX))?;
    let mut places = Places::new();
    for _ in 0..count {
        let (known, offset, shard, position) = (next()?, next()?, next()?, next()?);
        let shard = ShardId(u16::try_from(shard).ok()?);
        let place = RecordPlace { offset: Offset(offset), shard, position: Position(position) };
        places.push((known == 1).then_some(place));
    }
    let publication = Publication::restore(shard, rest).ok()?;
    Some((places, publication))
}

/// A place by recorder.
pub(crate) fn of(places: &Places, recorder: RecorderId) -> Option<RecordPlace> {
    places.get(usize::from(recorder.0)).copied().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_book::{Instrument, Symbol};
    use pares_types::InstrumentId;

    #[test]
    fn a_state_is_brought_back_and_another_shards_is_not() {
        let instrument = Instrument::listed(InstrumentId(1), Symbol::new("ALFA").unwrap());
        let publication = Publication::new(ShardId(3), &[instrument]);
        let place = RecordPlace { offset: Offset(64), shard: ShardId(3), position: Position(5) };
        let bytes = write(&vec![None, Some(place)], &publication);
        let (places, again) = read(ShardId(3), &bytes).unwrap();
        assert_eq!((of(&places, RecorderId(0)), of(&places, RecorderId(1))), (None, Some(place)));
        let mut written = Vec::new();
        again.store(&mut written);
        assert!(bytes.ends_with(&written));
        assert!(read(ShardId(4), &bytes).is_none());
        (0..bytes.len()).for_each(|length| assert!(read(ShardId(3), &bytes[..length]).is_none()));
    }
}
