//! Which venue executes which shards, as the settings say.
//!
//! A venue matches on one thread. So a system that wants more than one thread's worth of matching divides its shards into *lanes*, each with
//! venues that execute its shards and no others. A venue may be in several lanes; a shard is in exactly one.

use std::collections::BTreeSet;

use pares_types::{ShardId, VenueId, VenueSet};
use serde::{Deserialize, Serialize};

use crate::{ConfigError, Placement, SystemConfig};

/// One lane: shards, and the venues that execute them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LaneConfig {
    /// The shards.
    pub shards: Vec<u16>,
    /// The venues.
    pub venues: Vec<u16>,
}

/// Has these venues execute the shards of a lane of the file.
fn add(
    placement: &mut Placement,
    lane: &LaneConfig,
    number: usize,
    (shards, venues): (&BTreeSet<ShardId>, VenueSet),
) -> Result<(), ConfigError> {
    if lane.shards.is_empty() {
        return wrong(number, format_args!("it has no shard"));
    }
    for shard in lane.shards.iter().copied().map(ShardId) {
        if !shards.contains(&shard) {
            return wrong(number, format_args!("no instrument is in shard {shard}"));
        }
        if !placement.venues_of(shard).is_empty() {
            return wrong(number, format_args!("shard {shard} is in a lane already"));
        }
        placement.settle(shard, venues);
    }
    Ok(())
}

impl SystemConfig {
    /// Which venue executes which shards, before any was moved: as the lanes say, or all venues all shards.
    ///
    /// # Errors
    /// If a lane names a shard or venue that there is not, or the same twice, or none; or a shard is in no lane or in two, or a
    /// venue in none.
    pub fn placement(&self) -> Result<Placement, ConfigError> {
        let shards: BTreeSet<ShardId> = self.shards()?.into_keys().collect();
        let mut placement = Placement::first(shards.last().copied().unwrap_or(ShardId(0)));
        if self.lanes.is_empty() {
            let all = VenueSet::first(self.venues);
            shards.iter().for_each(|&shard| placement.settle(shard, all));
            return Ok(placement);
        }
        for (lane, number) in self.lanes.iter().zip(1..) {
            let venues = self.venues_of_lane(lane, number)?;
            add(&mut placement, lane, number, (&shards, venues))?;
        }
        let is_placed = |shard: &ShardId| !placement.venues_of(*shard).is_empty();
        if let Some(shard) = shards.into_iter().find(|shard| !is_placed(shard)) {
            let what = format!("shard {shard} is in none of the `lanes`: no venue would execute it");
            return Err(ConfigError(what));
        }
        if let Some(venue) = self.venue_ids().find(|&venue| placement.peers_of(venue).is_empty()) {
            let what = format!("venue {venue} is in none of the `lanes`: it would execute nothing");
            return Err(ConfigError(what));
        }
        Ok(placement)
    }

    fn venues_of_lane(&self, lane: &LaneConfig, number: usize) -> Result<VenueSet, ConfigError> {
        let mut venues = VenueSet::NONE;
        for &venue in &lane.venues {
            if venue >= self.venues {
                let count = self.venues;
                return wrong(
                    number,
                    format_args!("there is no venue {venue}: `venues` is {count}, and they count from 0"),
                );
            }
            if venues.contains(VenueId(venue)) {
                return wrong(number, format_args!("venue {venue} is named twice"));
            }
            venues.insert(VenueId(venue));
        }
        match venues.is_empty() {
            true => wrong(number, format_args!("it has no venue")),
            false => Ok(venues),
        }
    }

    /// Lanes of which one venue's death is the end until it is back: 1 for the first of the file.
    pub fn lanes_of_one_venue(&self) -> impl Iterator<Item = usize> {
        (1..).zip(&self.lanes).filter(|(_, lane)| lane.venues.len() < 2).map(|(number, _)| number)
    }
}

fn wrong<T>(number: usize, what: std::fmt::Arguments<'_>) -> Result<T, ConfigError> {
    Err(ConfigError(format!("`lanes`, lane {number} of the file: {what}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::InstrumentConfig;

    /// Shards 0, 1 and 4, and four venues, in these lanes.
    fn placed(lanes: &[(&[u16], &[u16])]) -> Result<Placement, String> {
        let shards = [0, 1, 4].into_iter().zip(1..);
        let instrument = |(shard, id): (u16, u32)| InstrumentConfig {
            shard: Some(shard),
            ..InstrumentConfig::new(id, &format!("S{id}"))
        };
        let lane = |&(shards, venues): &(&[u16], &[u16])| LaneConfig {
            shards: shards.into(),
            venues: venues.into(),
        };
        let lanes = lanes.iter().map(lane).collect();
        let config = SystemConfig {
            venues: 4,
            lanes,
            instruments: shards.map(instrument).collect(),
            ..SystemConfig::default()
        };
        let placement = config.placement();
        assert_eq!(config.check().err(), placement.as_ref().err().cloned(), "no other check refuses it");
        placement.map_err(|error| error.to_string())
    }

    fn shards(shards: impl Iterator<Item = ShardId>) -> Vec<u16> {
        shards.map(|shard| shard.0).collect()
    }

    #[test]
    fn without_lanes_every_venue_executes_every_shard() {
        let placement = placed(&[]).unwrap();
        for venue in (0..4).map(VenueId) {
            assert_eq!(shards(placement.shards_of(venue)), [0, 1, 4]);
            assert_eq!(placement.peers_of(venue), VenueSet::first(4));
        }
        assert_eq!(placement.venues_of(ShardId(2)), VenueSet::NONE);
        assert_eq!(placement.venues_of(ShardId(9)), VenueSet::NONE);
    }

    #[test]
    fn a_venue_executes_the_shards_of_its_lanes() {
        let placement = placed(&[(&[4, 0], &[0, 1]), (&[1], &[1, 2, 3])]).unwrap();
        let of = [0, 1, 2, 3].map(|venue| shards(placement.shards_of(VenueId(venue))));
        assert_eq!(of, [vec![0, 4], vec![0, 1, 4], vec![1], vec![1]]);
        assert_eq!(shards(placement.shards_without(VenueId(2))), [0, 4]);
        assert_eq!(placement.peers_of(VenueId(0)), VenueSet::first(2));
        assert_eq!(placement.peers_of(VenueId(1)), VenueSet::first(4));
    }

    #[test]
    fn a_lane_that_cannot_be_is_refused_by_what_is_wrong() {
        type Lanes<'a> = &'a [(&'a [u16], &'a [u16])];
        let refused: [(Lanes<'_>, &str); 8] = [
            (&[(&[0, 1, 4], &[0, 1, 2, 3]), (&[2], &[0])], "lane 2 of the file: no instrument is in shard 2"),
            (&[(&[0, 1, 4], &[0, 1, 2, 4])], "lane 1 of the file: there is no venue 4: `venues` is 4"),
            (&[(&[0, 1], &[0, 1]), (&[4, 1], &[2, 3])], "lane 2 of the file: shard 1 is in a lane already"),
            (&[(&[0, 0, 1, 4], &[0, 1, 2, 3])], "lane 1 of the file: shard 0 is in a lane already"),
            (&[(&[0, 1], &[0, 1]), (&[4], &[2, 2, 3])], "lane 2 of the file: venue 2 is named twice"),
            (&[(&[0, 1, 4], &[]), (&[], &[0, 1, 2, 3])], "lane 1 of the file: it has no venue"),
            (&[(&[0, 1], &[0, 1, 2, 3])], "shard 4 is in none of the `lanes`"),
            (&[(&[0, 1], &[0, 1]), (&[4], &[0, 3])], "venue 2 is in none of the `lanes`"),
        ];
        for (lanes, what) in refused {
            let told = placed(lanes).unwrap_err();
            assert!(told.contains(what), "{told}");
        }
        assert!(
            placed(&[(&[], &[0]), (&[0, 1, 4], &[0, 1, 2, 3])])
                .unwrap_err()
                .contains("lane 1 of the file: it has no shard")
        );
    }

    #[test]
    fn lanes_are_read_as_they_are_written_and_one_venue_is_told() {
        let text = "venues = 3\n[[lanes]]\nshards = [0, 2, 4, 6, 8]\nvenues = [0, 1]\n[[lanes]]\nshards = [1, 3, 5, 7, 9]\nvenues = [2]\n";
        let config = SystemConfig::parse(text).unwrap();
        assert_eq!(SystemConfig::parse(&config.text()).unwrap(), config);
        assert_eq!(config.lanes_of_one_venue().collect::<Vec<_>>(), [2]);
        let unknown = SystemConfig::parse("[[lanes]]\nshard = [0]\nvenues = [0]\n").unwrap_err().to_string();
        assert!(unknown.contains("unknown field `shard`"), "{unknown}");
    }
}
