//! Who said what about which position, and whom that makes wrong.
//!
//! Two venues that disagree show that one of them is wrong, and not which: the first to speak is as likely to be it as
//! the other. So the obvious rule, halt the shard at the first difference, lets one wrong venue stop a shard of three. With three or
//! more venues there is a better one:
//!
//! - A statement is *believed* once more than half of the venues that are **configured** to execute the shard have made it. Half of those
//!   that happened to speak would do no good: with two against one of five at one recorder and two others against one at its peer, both would believe, and not
//!   the same. Each venue's first statement counts, so there is only ever one such majority, at every recorder the same.
//! - A venue whose statement is not the one believed is *outvoted*: it is wrong, and nothing of it needs to be taken any more.
//! - Until then a *dispute* is open and nothing stops: who followed the record is silent at most positions, but every venue speaks
//!   where states are hashed, so the next of these settles it as a rule. A dispute ends in a halt once no side can
//!   reach a majority, and at the latest when its position is forgotten, 4,096 positions and four hashes later; not if one side was silent
//!   there and the other is among those who agree. A hash at which
//!   all agree again does not end it at once: a wrong engine need not get every state wrong, and its next error tells.
//!
//! With one or two venues nobody is ever believed: every difference is undecidable at once. A venue of another lane has no vote here, whatever
//! it says. While a shard moves between venues, a majority is one of those before and one of those after. Who has left a shard has no vote
//! either, but what it said is still compared: it may have been recorded and answered.

mod dispute;

use pares_types::{Position, RequestId, VenueId, VenueSet, Voters};

use crate::statement::{NOBODY, Statement};
pub use dispute::{Dispute, DisputeSide};

/// Positions of which statements are remembered, and so the longest a dispute can be open.
pub const RECENT: usize = 4_096;
/// Positions with a state hash that are remembered beyond that.
const HASHES: usize = 16;
/// Fewer venues have no majority that could outvote one.
const VENUES_MIN: u32 = 3;

/// What was said about a position that was taken.
#[derive(Clone, Copy, Debug)]
struct Heard {
    /// [`RequestId::NONE`] where nothing is remembered.
    request: RequestId,
    content: u32,
    /// The number of the venue whose record was taken: there are at most 16.
    by: u8,
    /// Whether what is believed by now is not what was taken.
    corrected: bool,
    /// Those who said so, without venues that are shut out. With none the next one to speak counts instead.
    venues: VenueSet,
}

impl Heard {
    const NOTHING: Self =
        Self { request: RequestId::NONE, content: 0, by: 0, corrected: false, venues: VenueSet::NONE };
}

/// What was said where states are hashed.
#[derive(Clone, Copy, Debug)]
struct Hashed {
    position: Position,
    state_hash: u64,
    heard: Heard,
}

/// Some venues are wrong, by what more than half of the shard's venues say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was said.
    pub dispute: Dispute,
    /// What is believed.
    pub believed: DisputeSide,
    /// Whose statements are not what is believed.
    pub outvoted: VenueSet,
}

/// What a statement leads to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Nothing: it agrees, or nothing is remembered that it could disagree with.
    Quiet,
    /// There is a dispute, and a venue that has not spoken may settle it.
    Open,
    /// There is a dispute, and it is settled.
    Settled(Finding),
    /// There is a dispute that nobody can settle.
    Undecidable(Dispute),
}

/// What a wrong venue had recorded since it was last known to be right.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Disputed {
    /// The last position at which it was among those believed about the state; `None` if that is not remembered.
    pub agreed: Option<Position>,
    /// Positions taken from it since then of which nobody else says the same: they were answered as it said.
    pub count: u64,
    /// The first and the last of them.
    pub between: Option<(Position, Position)>,
}

/// What was said about one shard.
#[derive(Clone, Debug)]
pub struct Evidence {
    voters: Voters,
    shut_out: VenueSet,
    recent: Vec<Heard>,
    hashes: [Option<Hashed>; HASHES],
    disputes: Vec<Dispute>,
}

impl Evidence {
    /// Nothing was said yet by those venues.
    ///
    /// # Panics
    /// If they are none.
    #[must_use]
    pub fn new(voters: Voters) -> Self {
        assert!(!voters.all().is_empty(), "a shard is executed by a venue");
        Self {
            voters,
            shut_out: VenueSet::NONE,
            recent: vec![Heard::NOTHING; RECENT],
            hashes: [None; HASHES],
            disputes: Vec::new(),
        }
    }

    /// Whether nothing was ever taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.recent.iter().all(|heard| heard.request == RequestId::NONE)
    }

    /// Those nobody listens to.
    #[must_use]
    pub fn shut_out(&self) -> VenueSet {
        self.shut_out
    }

    /// What is not settled.
    #[must_use]
    pub fn disputes(&self) -> &[Dispute] {
        &self.disputes
    }

    /// The record of a position is taken: what this venue said about it.
    pub fn on_taken(&mut self, position: Position, by: VenueId, said: &Statement) {
        // Nobody is no venue, and has said nothing.
        let said_by = if by == NOBODY { VenueSet::NONE } else { VenueSet::one(by) };
        let venues = said_by.without(self.shut_out);
        let by = u8::try_from(by.0).unwrap_or(u8::MAX);
        let heard = Heard { request: said.request, content: said.content, by, corrected: false, venues };
        self.recent[index(position)] = heard;
        if let Some(state_hash) = said.state_hash {
            self.hashes.rotate_right(1);
            // While it is here this is the one in use; who spoke since then is not forgotten with it.
            let oldest = self.hashes[0].filter(|old| position.0 - old.position.0 < RECENT as u64);
            if let Some(Hashed { position, heard, .. }) = oldest {
                self.recent[index(position)] = heard;
            }
            self.hashes[0] = Some(Hashed { position, state_hash, heard });
        }
    }

    /// A dispute whose position is forgotten once `next` is taken has to end. Where states were hashed behind it, each venue could have
    /// spoken several times: if most agree about the state there, and only one side is among them, the others said
    /// something else and then nothing, and are wrong. [`Judgement::Quiet`] if there is no such dispute.
    pub fn on_taking(&mut self, next: Position) -> Judgement {
        let is_overdue = |dispute: &Dispute| next.0 - dispute.position.0 >= RECENT as u64;
        let Some(index) = self.disputes.iter().position(is_overdue) else { return Judgement::Quiet };
        let position = self.disputes[index].position;
        let behind = self.hashes.iter().flatten().filter(|hashed| hashed.position > position);
        let agreed = behind.map(|hashed| hashed.heard.venues).find(|&venues| self.is_majority(venues));
        let among = |side: &&DisputeSide| agreed.is_some_and(|agreed| !side.venues.and(agreed).is_empty());
        let mut believed = self.disputes[index].sides.iter().copied().filter(|side| among(&side));
        match (believed.next(), believed.next()) {
            (Some(believed), None) => self.settle(index, believed, next),
            _ => Judgement::Undecidable(self.disputes[index].clone()),
        }
    }

    /// Another statement about a position that was taken; `next` is the first that was not.
    pub fn on_statement(
        &mut self,
        position: Position,
        venue: VenueId,
        said: &Statement,
        next: Position,
    ) -> Judgement {
        if self.shut_out.contains(venue) {
            return Judgement::Quiet;
        }
        if let Some(open) = self.disputes.iter().position(|dispute| dispute.position == position) {
            self.disputes[open].hear(venue, said);
            return self.judge(open, next);
        }
        let Some((taken, heard)) = self.heard_mut(position, next) else { return Judgement::Quiet };
        if heard.venues.is_empty() && taken.request == said.request {
            // It was said by nobody who is still listened to.
            self.believe(position, next, said, VenueSet::one(venue));
            return Judgement::Quiet;
        }
        if taken.agrees(said) {
            heard.venues.insert(venue);
            return Judgement::Quiet;
        }
        let first = DisputeSide { statement: taken, venues: heard.venues };
        let mut dispute = Dispute { position, sides: vec![first], unsteady: VenueSet::NONE };
        dispute.hear(venue, said);
        self.disputes.push(dispute);
        self.judge(self.disputes.len() - 1, next)
    }

    /// Whether the venue executes the shard.
    #[must_use]
    pub fn has_vote(&self, venue: VenueId) -> bool {
        self.voters.all().contains(venue)
    }

    /// Who has a vote.
    #[must_use]
    pub fn voters(&self) -> Voters {
        self.voters
    }

    /// Others have a vote from now on. What those said who have none any more stays said: what they had taken must not be contradicted unnoticed.
    pub fn reseat(&mut self, voters: Voters) {
        self.voters = voters;
    }

    /// The first dispute that is not open as things are, now that others have a vote.
    pub fn judge_again(&mut self, next: Position) -> Judgement {
        for index in 0..self.disputes.len() {
            let judgement = self.judge(index, next);
            if judgement != Judgement::Open {
                return judgement;
            }
        }
        Judgement::Quiet
    }

    fn judge(&mut self, index: usize, next: Position) -> Judgement {
        let dispute = &self.disputes[index];
        let believed = dispute.sides.iter().copied().find(|side| self.is_majority(side.venues));
        if let Some(believed) = believed {
            return self.settle(index, believed, next);
        }
        match self.is_hopeless(dispute) {
            true => Judgement::Undecidable(dispute.clone()),
            false => Judgement::Open,
        }
    }

    fn settle(&mut self, index: usize, believed: DisputeSide, next: Position) -> Judgement {
        let dispute = self.disputes.swap_remove(index);
        let outvoted = dispute.spoken().without(believed.venues).or(dispute.unsteady);
        let position = dispute.position;
        self.believe(position, next, &believed.statement, believed.venues.without(outvoted));
        Judgement::Settled(Finding { dispute, believed, outvoted })
    }

    /// Whether these are more than half of the shard's venues, where there are enough to believe any.
    fn is_majority(&self, venues: VenueSet) -> bool {
        self.voters.all().len() >= VENUES_MIN && self.voters.is_majority(venues)
    }

    /// Whether no side would be believed even if all the silent ones took it. Nobody waits while requests differ: the
    /// order itself is forked then, and each further record makes it worse.
    fn is_hopeless(&self, dispute: &Dispute) -> bool {
        let silent = self.voters.all().without(dispute.spoken().or(self.shut_out));
        let may_be_believed = dispute.sides.iter().any(|side| self.is_majority(side.venues.or(silent)));
        let one_request = dispute.sides.iter().all(|side| side.statement.request == dispute.request());
        !one_request || !may_be_believed
    }

    /// What is remembered of a position: what was said, and by whom.
    fn heard_mut(&mut self, position: Position, next: Position) -> Option<(Statement, &mut Heard)> {
        let hashed = self.hashes.iter_mut().flatten().find(|hashed| hashed.position == position);
        let (heard, state_hash) = match hashed {
            Some(hashed) => (&mut hashed.heard, Some(hashed.state_hash)),
            None if next.0 - position.0 > RECENT as u64 => return None,
            None => (&mut self.recent[index(position)], None),
        };
        let statement = Statement { request: heard.request, content: heard.content, state_hash };
        (heard.request != RequestId::NONE).then_some((statement, heard))
    }

    /// From now on this is what is compared with.
    fn believe(&mut self, position: Position, next: Position, said: &Statement, venues: VenueSet) {
        if let Some((_, heard)) = self.heard_mut(position, next) {
            heard.corrected |= heard.content != said.content;
            (heard.content, heard.venues) = (said.content, venues);
        }
        let mut hashes = self.hashes.iter_mut().flatten();
        if let Some((hashed, state_hash)) =
            hashes.find(|hashed| hashed.position == position).zip(said.state_hash)
        {
            hashed.state_hash = state_hash;
        }
    }

    /// Listens to a venue no more: whatever it said counts for nothing, here and in open disputes. Says what was taken
    /// from it since it was last known to be right. `next` is the first position not taken.
    pub fn shut_out_venue(&mut self, venue: VenueId, next: Position) -> Disputed {
        let agreed = self.last_agreed(venue);
        self.shut_out.insert(venue);
        let heard = self.hashes.iter_mut().flatten().map(|hashed| &mut hashed.heard);
        heard.chain(&mut self.recent).for_each(|heard| {
            heard.venues.remove(venue);
        });
        for mut dispute in std::mem::take(&mut self.disputes) {
            dispute.forget(venue);
            match dispute.sides.as_slice() {
                [] => {}
                [side] => self.believe(dispute.position, next, &side.statement, side.venues),
                _ => self.disputes.push(dispute),
            }
        }
        self.disputed(venue, agreed, next)
    }

    /// A dispute that shutting a venue out has made undecidable.
    #[must_use]
    pub fn hopeless(&self) -> Option<&Dispute> {
        self.disputes.iter().find(|dispute| self.is_hopeless(dispute))
    }

    /// Listens to a venue again.
    pub fn readmit(&mut self, venue: VenueId) {
        self.shut_out.remove(venue);
    }

    fn last_agreed(&self, venue: VenueId) -> Option<Position> {
        let believed =
            |hashed: &&Hashed| hashed.heard.venues.contains(venue) && self.is_majority(hashed.heard.venues);
        self.hashes.iter().flatten().filter(believed).map(|hashed| hashed.position).max()
    }

    fn disputed(&mut self, venue: VenueId, agreed: Option<Position>, next: Position) -> Disputed {
        let mut disputed = Disputed { agreed, ..Disputed::default() };
        let remembered = next.0.saturating_sub(RECENT as u64);
        for position in agreed.map_or(0, |agreed| agreed.0 + 1).max(remembered)..next.0 {
            let position = Position(position);
            let alone = self.heard_mut(position, next).is_some_and(|(_, heard)| {
                VenueId(heard.by.into()) == venue && (heard.corrected || heard.venues.is_empty())
            });
            if alone {
                disputed.count += 1;
                disputed.between = Some((disputed.between.map_or(position, |(first, _)| first), position));
            }
        }
        disputed
    }
}

fn index(position: Position) -> usize {
    (position.0 % RECENT as u64) as usize
}
