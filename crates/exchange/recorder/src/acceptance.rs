//! Which records a recorder takes.
//!
//! Each position once, in order, from the first that has it. What others say about a position that is taken is compared with
//! what was taken ([`crate::evidence`]): that is how a venue that computes something else is found.

use pares_types::{Epoch, Position, RequestId, VenueId, VenueSet, Voters};

use crate::evidence::{Dispute, Disputed, Evidence, Finding, Judgement};
use crate::statement::{NOBODY, Statement};

/// A result on offer, as far as accepting it is concerned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Where it comes from.
    pub source: Source,
    /// The venue that wrote it, through any log; [`NOBODY`] if it is known not to be believed.
    pub venue: VenueId,
    /// The life of the window that decided it.
    pub epoch: Epoch,
    /// Its place in the shard's total order.
    pub position: Position,
    /// What it says about that place.
    pub said: Statement,
}

/// Where a record comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    /// A venue's log: its record may be a decision of an earlier life of the window that nobody
    /// recorded, and such a decision is void.
    Venue,
    /// Another recorder's log: whatever lies there is recorded.
    Peer,
    /// The same, of which all was read since its beginning: what would come before the first record of a shard is dropped.
    WholePeer,
}

/// What to do with an offered record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Append it; the next position is expected from now on.
    Take,
    /// It is known: continue with the source's next record.
    Known,
    /// It belongs to an earlier life of the window, or comes from a venue that is shut out or does not execute the shard: continue
    /// with the source's next record.
    Void,
    /// It is known, and shows that a venue is wrong ([`Acceptance::take_finding`]): continue with the source's next record.
    Found,
    /// An earlier position must come first, from another source: leave it and offer it again.
    Wait,
    /// The shard is halted.
    Halted,
}

/// Venues disagree about the past, and nobody can say which one is wrong. The shard is halted: no further record of it is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Divergence {
    /// Different requests at one position (invariant I1).
    Request {
        /// The position.
        position: Position,
        /// What was taken.
        taken: RequestId,
        /// What was offered.
        offered: RequestId,
    },
    /// Different states after one position.
    State {
        /// The position.
        position: Position,
        /// The hash taken.
        taken: u64,
        /// The hash offered.
        offered: u64,
    },
    /// Different results of the same request at one position.
    Content {
        /// The position.
        position: Position,
        /// The digest of what was taken.
        taken: u32,
        /// The digest of what was offered.
        offered: u32,
    },
}

impl From<&Dispute> for Divergence {
    fn from(dispute: &Dispute) -> Self {
        let position = dispute.position;
        let [taken, offered, ..] = dispute.sides.as_slice() else {
            unreachable!("a dispute has two sides or more")
        };
        let (taken, offered) = (&taken.statement, &offered.statement);
        if taken.request != offered.request {
            return Self::Request { position, taken: taken.request, offered: offered.request };
        }
        match (taken.state_hash, offered.state_hash) {
            (Some(taken), Some(offered)) if taken != offered => Self::State { position, taken, offered },
            _ => Self::Content { position, taken: taken.content, offered: offered.content },
        }
    }
}

/// The accepting side of one shard at one recorder.
#[derive(Clone, Debug)]
pub struct Acceptance {
    epoch: Epoch,
    next: Position,
    evidence: Evidence,
    /// Who has or had a vote, here or where a record was taken first: what they hand out is taken and compared.
    had_vote: VenueSet,
    finding: Option<Finding>,
    divergence: Option<Divergence>,
}

impl Acceptance {
    /// A shard of which nothing is recorded, in the given life of the window, executed by those venues.
    ///
    /// # Panics
    /// If there are none.
    #[must_use]
    pub fn new(epoch: Epoch, venues: impl Into<Voters>) -> Self {
        let voters = venues.into();
        let evidence = Evidence::new(voters);
        Self { epoch, next: Position(0), evidence, had_vote: voters.all(), finding: None, divergence: None }
    }

    /// Whether nothing was ever taken.
    fn is_empty(&self) -> bool {
        self.next == Position(0) && self.evidence.is_empty()
    }

    /// The next position to take.
    #[must_use]
    pub fn next(&self) -> Position {
        self.next
    }

    /// Why the shard is halted, if it is.
    #[must_use]
    pub fn divergence(&self) -> Option<Divergence> {
        self.divergence
    }

    /// Whether venues disagree about a position and it is not known yet which of them is wrong.
    #[must_use]
    pub fn is_in_dispute(&self) -> bool {
        !self.evidence.disputes().is_empty()
    }

    /// Whether the venue executes the shard.
    #[must_use]
    pub fn has_vote(&self, venue: VenueId) -> bool {
        self.evidence.has_vote(venue)
    }

    /// Who has a vote.
    #[must_use]
    pub fn voters(&self) -> Voters {
        self.evidence.voters()
    }

    /// Whether the venue executes the shard, or did in this life of the window as far as is known here.
    #[must_use]
    pub fn had_vote(&self, venue: VenueId) -> bool {
        self.had_vote.contains(venue)
    }

    /// Others have a vote from now on. Results of those who have none any more are still taken: they may have vouched for one that the
    /// others fail at.
    pub fn reseat(&mut self, voters: Voters) {
        self.had_vote = self.had_vote.or(voters.all());
        self.evidence.reseat(voters);
    }

    /// Judges what is in dispute by who has a vote now: there may be a finding, or the shard is halted.
    pub fn judge_again(&mut self) {
        match self.evidence.judge_again(self.next) {
            Judgement::Quiet | Judgement::Open => {}
            Judgement::Settled(finding) => self.finding = Some(finding),
            Judgement::Undecidable(dispute) => drop(self.halt(Divergence::from(&dispute))),
        }
    }

    /// Whether the last offer has shown that a venue is wrong: one judged [`Verdict::Found`], or one to be taken beside that.
    #[must_use]
    pub fn has_finding(&self) -> bool {
        self.finding.is_some()
    }

    /// What it has shown, once.
    pub fn take_finding(&mut self) -> Option<Finding> {
        self.finding.take()
    }

    /// Takes nothing more of a venue, and gives nothing more on what it says. Says what was taken from it since it was
    /// last known to be right.
    pub fn shut_out(&mut self, venue: VenueId) -> Disputed {
        let disputed = self.evidence.shut_out_venue(venue, self.next);
        // Among those who are left nobody may have enough to be believed.
        self.divergence = self.divergence.or_else(|| self.evidence.hopeless().map(Divergence::from));
        disputed
    }

    /// Takes from a venue again that was shut out.
    pub fn readmit(&mut self, venue: VenueId) {
        self.evidence.readmit(venue);
    }

    /// Learns a record of the recorder's own log on start, in the log's order.
    ///
    /// # Panics
    /// If the record does not follow the last: a recorder's log has no gaps after its first record.
    pub fn recover(&mut self, record: &Offer) {
        let position = record.position;
        let follows = position == self.next || self.is_empty();
        assert!(follows, "gap in the recorder's own log before position {position}");
        self.note(record);
    }

    /// Judges a record. One to [`Verdict::Take`] counts as taken only once the caller has appended it
    /// and says so ([`Acceptance::take`]): a full disk then changes nothing.
    pub fn offer(&mut self, offer: &Offer) -> Verdict {
        if self.divergence.is_some() {
            return Verdict::Halted;
        }
        if offer.position < self.next {
            return self.compare(offer);
        }
        let shut_out = self.evidence.shut_out().contains(offer.venue);
        // A venue that was wrong at this position, and is readmitted, hands out results like any other: only its vote is gone.
        let elsewhere = offer.venue != NOBODY && !self.had_vote(offer.venue);
        if offer.source == Source::Venue && (offer.epoch != self.epoch || shut_out || elsewhere) {
            return Verdict::Void;
        }
        let begins = offer.source == Source::WholePeer && self.is_empty();
        if offer.position > self.next && !begins {
            return Verdict::Wait;
        }
        match self.evidence.on_taking(self.next) {
            Judgement::Quiet | Judgement::Open => Verdict::Take,
            Judgement::Settled(finding) => {
                self.finding = Some(finding);
                Verdict::Take
            }
            Judgement::Undecidable(dispute) => self.halt(Divergence::from(&dispute)),
        }
    }

    /// Counts a record as taken.
    ///
    /// # Panics
    /// If it is not the next, nor the first.
    pub fn take(&mut self, offer: &Offer) {
        assert!(offer.position == self.next || self.is_empty(), "records are taken in order");
        self.note(offer);
    }

    /// What an earlier life recorded is held against nobody: a venue that was wrong then may be right by now, and would look as if
    /// it contradicted itself.
    fn note(&mut self, record: &Offer) {
        let by = if record.epoch == self.epoch { record.venue } else { NOBODY };
        if by != NOBODY {
            self.had_vote.insert(by);
        }
        self.evidence.on_taken(record.position, by, &record.said);
        self.next = record.position.next();
    }

    fn halt(&mut self, divergence: Divergence) -> Verdict {
        self.divergence = Some(divergence);
        Verdict::Halted
    }

    /// A record of a position taken before, perhaps of another venue: it should say the same. Void decisions
    /// of an earlier life may differ, so only this life's are compared.
    fn compare(&mut self, offer: &Offer) -> Verdict {
        if offer.epoch != self.epoch || !self.had_vote(offer.venue) {
            return Verdict::Known;
        }
        match self.evidence.on_statement(offer.position, offer.venue, &offer.said, self.next) {
            Judgement::Quiet | Judgement::Open => Verdict::Known,
            Judgement::Settled(finding) => {
                self.finding = Some(finding);
                Verdict::Found
            }
            Judgement::Undecidable(dispute) => self.halt(Divergence::from(&dispute)),
        }
    }
}

#[cfg(test)]
mod tests;
