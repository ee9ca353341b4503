//! Which venues a recorder takes from: those that are shut out, and the notes about them.

use pares_config::SystemConfig;
use pares_recorder::{Disputed, Finding, NOBODY};
use pares_types::{Position, RecorderId, ShardId, VenueId};

use crate::NodeError;
use crate::shut_out::{self, DisputedIn, Found, Note, Said};
use crate::world::World;

/// How a recorder stands to one venue.
enum Standing {
    In,
    Out {
        /// What is to be noted, once `ready`: once the venue's checkpoints are gone.
        note: Option<Note>,
        ready: bool,
        /// Whether the operator knows that it cannot be noted.
        told: bool,
    },
}

impl Standing {
    /// Writes the note that is waiting, if it is time. A full disk is tried again at the next look.
    fn write_note(&mut self, world: &impl World) {
        let Self::Out { note: waiting @ Some(_), ready: true, told } = self else { return };
        match waiting.as_ref().map_or(Ok(()), |note| note.write(world)) {
            Ok(()) => *waiting = None,
            Err(error) if !std::mem::replace(told, true) => {
                world.complain(&format_args!("the shut-out of a venue cannot be noted yet: {error}"));
            }
            Err(_) => {}
        }
    }
}

/// What a look at the notes has shown.
pub(super) enum Seen {
    /// Another recorder has found that the venue is wrong.
    ShutOut(VenueId),
    /// The operator has readmitted it.
    Readmitted(VenueId),
}

pub(super) struct Gate<W: World> {
    world: W,
    recorder: RecorderId,
    venues: Vec<Standing>,
    /// What was ever disputed, and who said it.
    disputed: Vec<(VenueId, DisputedIn)>,
    notes: shut_out::ShutOutWatch,
}

impl<W: World> Gate<W> {
    /// All are in; notes are not looked for yet.
    ///
    /// # Errors
    /// [`NodeError::MaybeShutOut`].
    pub(super) fn new(recorder: RecorderId, config: &SystemConfig, world: &W) -> Result<Self, NodeError> {
        let venues = config.venue_ids().map(|_| Standing::In).collect();
        let disputed = shut_out::all_disputed(world)?;
        Ok(Self {
            world: world.clone(),
            recorder,
            venues,
            disputed,
            notes: shut_out::ShutOutWatch::default(),
        })
    }

    /// Whether anything of the venue is taken.
    pub(super) fn is_in(&self, venue: VenueId) -> bool {
        self.venues.get(usize::from(venue.0)).is_some_and(|standing| matches!(standing, Standing::In))
    }

    /// Who answers for what a venue says about a position: nobody if it was wrong there, whatever it does today, or if the
    /// system has no such venue any more.
    pub(super) fn voice(&self, venue: VenueId, shard: ShardId, position: Position) -> VenueId {
        let holds = |(by, one): &(VenueId, DisputedIn)| {
            *by == venue && one.shard == shard.0 && (one.first..=one.last).contains(&position.0)
        };
        let is_one = usize::from(venue.0) < self.venues.len();
        if is_one && !self.disputed.iter().any(holds) { venue } else { NOBODY }
    }

    /// Says something to the operator.
    pub(super) fn complain(&self, what: &dyn std::fmt::Display) {
        self.world.complain(what);
    }

    pub(super) fn shut_out_len(&self) -> u64 {
        self.shut_out_venues().len() as u64
    }

    pub(super) fn shut_out_venues(&self) -> Vec<VenueId> {
        let all = (0..).map(VenueId).zip(&self.venues);
        all.filter(|(_, standing)| matches!(standing, Standing::Out { .. })).map(|(venue, _)| venue).collect()
    }

    /// Whether the recorder noted it in an earlier life, so that everything is done already.
    pub(super) fn is_noted(&self, venue: VenueId) -> bool {
        shut_out::is_noted_by(&self.world, venue, self.recorder)
    }

    /// Shuts a venue out. `note` is written when [`Gate::on_checkpoints_gone`] says so.
    pub(super) fn shut_out(&mut self, venue: VenueId, note: Option<Note>) {
        assert!(self.is_in(venue), "a venue is shut out once");
        self.venues[usize::from(venue.0)] = Standing::Out { note, ready: false, told: false };
    }

    /// Notes that the venue is shut out, now that no checkpoint is left that it may have spoilt.
    pub(super) fn on_checkpoints_gone(&mut self, venue: VenueId) {
        let standing = &mut self.venues[usize::from(venue.0)];
        assert!(matches!(standing, Standing::Out { .. }), "checkpoints go of a venue that is shut out");
        if let Standing::Out { ready, .. } = standing {
            *ready = true;
        }
        standing.write_note(&self.world);
    }

    /// The venues that others have shut out or the operator readmitted, since the last look. A note that could not be
    /// written is tried again.
    pub(super) fn look(&mut self) -> Vec<Seen> {
        let mut seen = Vec::new();
        for venue in (0..).map(VenueId).take(self.venues.len()) {
            let Some(noted) = self.notes.is_shut_out(&self.world, venue) else { break };
            let standing = &mut self.venues[usize::from(venue.0)];
            match standing {
                Standing::In if noted => seen.push(Seen::ShutOut(venue)),
                Standing::Out { note: None, .. } if !noted => {
                    let Ok(disputed) = shut_out::all_disputed(&self.world) else { continue };
                    *standing = Standing::In;
                    self.disputed = disputed;
                    seen.push(Seen::Readmitted(venue));
                }
                _ => standing.write_note(&self.world),
            }
        }
        seen
    }

    /// What this recorder has to say about a venue that executed those shards.
    pub(super) fn note(
        &self,
        (venue, shards): (VenueId, &[ShardId]),
        finding: Option<(ShardId, &Finding)>,
        disputed: &[(ShardId, Disputed)],
    ) -> Note {
        assert!(usize::from(venue.0) < self.venues.len(), "a note is about a venue of this system");
        Note {
            venue: venue.0,
            recorder: self.recorder.0,
            shards: shards.iter().map(|shard| shard.0).collect(),
            found: finding.map(|(shard, finding)| found(shard, finding)),
            disputed: disputed.iter().filter_map(|(shard, disputed)| disputed_in(*shard, disputed)).collect(),
        }
    }
}

fn found(shard: ShardId, finding: &Finding) -> Found {
    assert!(finding.dispute.sides.contains(&finding.believed), "what is believed is what some venue said");
    let sides = finding.dispute.sides.iter().map(|side| Said {
        venues: side.venues.iter().map(|venue| venue.0).collect(),
        believed: side == &finding.believed,
        request: side.statement.request.to_string(),
        result: format!("{:08x}", side.statement.content),
        state: side.statement.state_hash.map(|hash| format!("{hash:016x}")),
    });
    Found { shard: shard.0, position: finding.dispute.position.0, said: sides.collect() }
}

fn disputed_in(shard: ShardId, disputed: &Disputed) -> Option<DisputedIn> {
    let (first, last) = disputed.between?;
    assert!(disputed.count <= last.next().0 - first.0, "no more is disputed than lies from first to last");
    let right_at = disputed.agreed.map(|position| position.0);
    Some(DisputedIn { shard: shard.0, right_at, count: disputed.count, first: first.0, last: last.0 })
}

/// A digest of all a result says, without who wrote it and in which life of the window: what venues that work say alike.
pub(super) fn content(payload: &[u8]) -> u32 {
    use pares_wire::record::ResultHead;
    const EPOCH: usize = std::mem::offset_of!(ResultHead, epoch);
    const VENUE: usize = std::mem::offset_of!(ResultHead, venue);
    let crc = crc32c::crc32c(&payload[..EPOCH]);
    let crc = crc32c::crc32c_append(crc, &payload[EPOCH + 4..VENUE]);
    crc32c::crc32c_append(crc, &payload[VENUE + 2..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_wrote_a_result_and_when_makes_no_difference() {
        let result = vec![7; 128];
        for (at, differs) in [
            (0, true),
            (3, true),
            (4, false),
            (7, false),
            (8, true),
            (51, true),
            (52, false),
            (53, false),
            (54, true),
            (127, true),
        ] {
            let mut other = result.clone();
            other[at] ^= 1;
            assert_eq!(content(&other) != content(&result), differs, "byte {at}");
        }
    }
}
