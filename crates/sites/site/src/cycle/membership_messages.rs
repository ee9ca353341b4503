//! What a site that participates says and hears of places: who is to be let in, who gets a copy, and whether its own name still counts.

use pares_cluster::{ClusterLog, Incarnation, MemberId};
use pares_store::StoreError;
use pares_wice::{Base, SiteId, Stored};

use super::Cycle;
use crate::application::Application;
use crate::applier::stored_of;
use crate::backup::messages::Handed;
use crate::config::number_of;
use crate::error::ProcessError;
use crate::place::filling::Filling;
use crate::place::giving::Taker;
use crate::place::standing::{Head, Lack, Member, Request, Role, Standing, WORD_TICKS, Word, list_of};
use crate::place::{Behind, Part};
use crate::world::{Connections, World};

/// Ticks for which the log is kept for a site that has not said again that it needs it.
const HELD_TICKS: u64 = 500;
const _: () = assert!(2 * WORD_TICKS <= HELD_TICKS, "the log is kept until who needs it speaks again");
/// Ticks without a delegate after which a site that joins says so: an election, or a connection, takes a moment.
const UNLED_TICKS: u64 = 1_000;
/// Bases for which the log is kept at most for others: beyond, they need another copy.
const HELD_BASES_MAX: u32 = 4;

/// What is kept of the log for sites that are being filled.
#[derive(Default)]
pub(super) struct Holds {
    /// From which place on, and when that was said.
    from: std::collections::BTreeMap<SiteId, (u64, u64)>,
    bases: u32,
}

impl Holds {
    /// Up to which place the log may be let go of, if its owner needs nothing up to `place`.
    pub(super) fn limit(&mut self, place: u64, tick: u64) -> u64 {
        assert!(self.bases <= HELD_BASES_MAX, "the log is kept for others for some bases, and no longer");
        self.from.retain(|_, (_, said)| {
            assert!(*said <= tick, "ticks are only counted up");
            tick - *said < HELD_TICKS
        });
        let held = self.from.values().map(|(from, _)| *from).min();
        match held.filter(|held| *held < place && self.bases < HELD_BASES_MAX) {
            Some(held) => {
                self.bases += 1;
                held
            }
            None => {
                self.bases = 0;
                place
            }
        }
    }
}

impl<W: World, A: Application> Cycle<W, A> {
    pub(super) fn say(&mut self, to: SiteId, word: &Word) {
        // What does not arrive is said again.
        let number = number_of(to);
        let bytes = word.to_bytes(self.links.version(number));
        let _ = self.links.send(number, &bytes);
    }

    pub(super) fn word(&mut self, from: SiteId, word: Word) -> Result<(), ProcessError> {
        match word {
            Word::Standing(standing) => self.heard_standing(from, standing)?,
            Word::Join(incarnation) if from.cluster == self.site.id().cluster => {
                let incarnation = Incarnation::drawn(incarnation);
                self.log.admit(MemberId { number: from.number, incarnation });
            }
            Word::Lack(request) => self.asked_for_copy(from, &request)?,
            Word::Head(head) => {
                if let Some(filling) = &mut self.filling {
                    filling.begins(from, head, &mut self.world, &self.links)?;
                }
            }
            Word::Piece(piece) => {
                let next = self.filling.as_mut().and_then(|filling| filling.piece(from, piece));
                if let Some((to, word)) = next {
                    self.say(to, &word);
                }
            }
            Word::Digest(said) => self.comparison.heard(from, said),
            Word::Join(_) | Word::Form(_) => {}
        }
        Ok(())
    }

    fn heard_standing(&mut self, from: SiteId, standing: Standing) -> Result<(), ProcessError> {
        self.heard_list(from, standing.list);
        self.heard.spoken.insert(from, standing.speaks);
        if let Role::Member(member) = standing.role {
            self.heard.configured(member.configuration);
        }
        if let Some(filling) = &mut self.filling {
            filling.heard(from, standing);
        }
        if let Role::Member(Member { gives: true, .. }) = standing.role {
            self.heard.with_items.insert(from, self.ticks);
        } else {
            self.heard.with_items.remove(&from);
        }
        let is_mate = from.cluster == self.site.id().cluster;
        let id = MemberId { number: from.number, incarnation: standing.incarnation };
        if is_mate {
            self.heard_mate(id, from, standing)?;
        }
        if standing.asks {
            let knows = !is_mate || self.log.members().contains(id);
            self.say(from, &Word::Standing(self.standing(false, knows)));
        }
        Ok(())
    }

    /// Another site of this cluster says what it is.
    fn heard_mate(&mut self, id: MemberId, from: SiteId, standing: Standing) -> Result<(), ProcessError> {
        match standing.role {
            Role::New | Role::Empty => {
                // It has missed how its log begins, and has never had a vote under this name.
                if let Some(form) = self.place.form.clone().filter(|form| form.members.voters.contains(&id)) {
                    self.say(from, &Word::Form(form));
                }
            }
            Role::Filling(index) => drop(self.holds.from.insert(from, (index, self.ticks))),
            Role::Member(member) => {
                self.heard.counted.insert(from.number, member.voters);
                if !standing.asks {
                    return self.judge(member);
                }
            }
        }
        Ok(())
    }

    /// A delegate that does not know this site's name has removed it: its disk was taken for lost, and another took its place.
    fn judge(&self, delegate: Member) -> Result<(), ProcessError> {
        let is_newer = delegate.leads && delegate.term >= self.log.role().term;
        match is_newer && !delegate.knows && self.place.part == Part::Member {
            true => Err(ProcessError::Expelled),
            false => Ok(()),
        }
    }

    pub(super) fn standing(&self, asks: bool, knows: bool) -> Standing {
        let role = self.log.role();
        let member = Member {
            configuration: self.site.configuration(),
            is_fresh: !self.place.has_shown,
            term: role.term,
            leads: role.leads,
            gives: !self.site.is_recalling(),
            knows,
            voters: self.voters(),
        };
        let (incarnation, list) = (self.place.incarnation, list_of(&self.sites));
        Standing { asks, incarnation, list, speaks: self.links.speaks(), role: Role::Member(member) }
    }

    /// Once in a while: copies continue, and a site that its log has not let in asks for that.
    pub(super) fn tick_words(&mut self) -> Result<(), ProcessError> {
        self.giving.tick(self.ticks);
        self.unled_ticks = if self.log.role().delegate.is_some() { 0 } else { self.unled_ticks + 1 };
        if let Some((to, word)) = self.filling.as_mut().and_then(|filling| filling.tick()) {
            self.say(to, &word);
        }
        if !self.ticks.is_multiple_of(WORD_TICKS) {
            return Ok(());
        }
        let has_all = self.filling.is_none();
        // Whom no delegate speaks to may have been removed, or its cluster declared lost.
        let asks = !has_all || self.log.role().delegate.is_none();
        let standing = Word::Standing(self.standing(asks, true));
        self.others(!asks).into_iter().for_each(|site| self.say(site, &standing));
        self.count_with_items();
        self.check_log()?;
        match self.place.part {
            Part::Joins => self.join(),
            _ => self.stays(),
        }
    }

    /// Who has read its own removal knows that it counts for nothing any more. (While it reads its log again it may not be a member yet.)
    fn stays(&mut self) -> Result<(), ProcessError> {
        assert!(self.place.part == Part::Member, "who stays is a member");
        let id = MemberId { number: self.site.id().number, incarnation: self.place.incarnation };
        let is_member = self.log.members().contains(id);
        self.was_member |= is_member;
        if self.was_member && !is_member { Err(ProcessError::Expelled) } else { Ok(()) }
    }

    /// Whether the log of its cluster, which it leads and therefore has whole, ends before what its store was written behind. Where its cluster certifies, nobody
    /// else can bring the rest: it would wait for ever, and what it certified would be of another history than its items.
    fn check_log(&self) -> Result<(), ProcessError> {
        let certifies = self.site.configuration().certifier == self.site.id().cluster;
        match certifies && self.is_ahead() {
            true => {
                let (stored, delivered) = (self.base.version(), self.site.delivered());
                Err(ProcessError::Ahead { stored, delivered })
            }
            false => Ok(()),
        }
    }

    /// Whether the others have continued without this cluster, as far as was heard.
    fn is_left_behind(&self) -> bool {
        let newest = self.heard.newest.unwrap_or(self.site.configuration());
        let newest =
            if newest.era > self.site.configuration().era { newest } else { self.site.configuration() };
        !newest.live.contains(self.site.id().cluster)
    }

    fn is_ahead(&self) -> bool {
        self.filling.is_none() && self.log.role().leads && self.site.is_recalling()
    }

    /// Whether its log lets it vote.
    pub(super) fn votes(&self) -> bool {
        let id = MemberId { number: self.site.id().number, incarnation: self.place.incarnation };
        self.log.members().voters.contains(&id)
    }

    /// Why it executes nothing, if it lacks its items, or its cluster cannot let it vote.
    pub(crate) fn apart(&self) -> Option<String> {
        let is_unled = self.place.part == Part::Joins && self.unled_ticks >= UNLED_TICKS;
        let cluster = self.site.id().cluster.0;
        let way_out = |when: &str, whose: &str| match self.is_left_behind() {
            true => format!(
                "The other clusters continued without it: move the directories of all {whose} away; other sites will refill them (docs/operations/sites.md)"
            ),
            false => format!(
                "If {when}, declare it lost (`pares site lost {cluster} --yes`) and move the directories of all {whose} away (docs/operations/sites.md)"
            ),
        };
        let unled = || {
            let way_out = way_out("a majority of its sites have lost their disks", "of them");
            format!("waits for a vote in cluster {cluster}, which has no delegate. {way_out}")
        };
        let ahead = || {
            let (stored, delivered) = (self.base.version(), self.site.delivered());
            format!(
                "holds version {stored}, but the log of cluster {cluster}, which it leads, ends at \
                 {delivered}: the log is an old copy, or lost its end in a power failure. It waits for the \
                 rest from the certifying cluster. {}",
                way_out("that has let go of it", "sites of this cluster")
            )
        };
        is_unled
            .then(unled)
            .or_else(|| self.filling.as_ref().map(Filling::progress))
            .or_else(|| self.is_ahead().then(ahead))
    }

    fn join(&mut self) -> Result<(), ProcessError> {
        assert!(self.place.part == Part::Joins, "who joins has a place and no vote yet");
        if self.votes() {
            self.place.part = Part::Member;
            return self.place.write(self.world.notes());
        }
        let word = Word::Join(self.place.incarnation.0);
        self.others(true).into_iter().for_each(|site| self.say(site, &word));
        Ok(())
    }

    pub(super) fn others(&self, only_mates: bool) -> Vec<SiteId> {
        let own = self.site.id();
        let is_meant = |site: &SiteId| *site != own && (!only_mates || site.cluster == own.cluster);
        self.sites.iter().copied().filter(is_meant).collect()
    }

    fn asked_for_copy(&mut self, from: SiteId, request: &Request) -> Result<(), ProcessError> {
        let taker = Taker::Site(from);
        if self.giving.goes_on(taker, &request.pieces, self.ticks)
            || !self.giving.has_room(taker)
            || self.site.is_recalling()
        {
            return Ok(());
        }
        let snapshot = match self.store.snapshot() {
            Err(StoreError::Busy(_)) => return Ok(()), // it asks again
            snapshot => snapshot?,
        };
        let stored = stored_of(snapshot.meta())?;
        let copy = self.world.draw().max(1);
        let Some(head) = self.head(from, request.lack, stored, copy) else { return Ok(()) };
        self.work.copies += 1;
        self.giving.begin(taker, copy, snapshot, request.pieces.until, self.ticks);
        self.say(from, &Word::Head(head));
        Ok(())
    }

    /// What a copy for `to` is; none if this site has not what it lacks.
    fn head(&self, to: SiteId, lack: Lack, stored: Stored, copy: u64) -> Option<Head> {
        let is_mate = to.cluster == self.site.id().cluster;
        match lack {
            Lack::Log(at_least) if is_mate => {
                let (index, base) = self.begins_at();
                let beginning = self.log.beginning(index).filter(|_| index >= at_least)?;
                assert_eq!(beginning.index, index, "a log begins behind the base that is sent with it");
                Some(Head { copy, log: Some((Behind(beginning), base)), stored })
            }
            Lack::Items(lacking) if is_mate => {
                (stored.position >= lacking.position).then_some(Head { copy, log: None, stored })
            }
            Lack::Items(lacking) => {
                let sealed = Stored { position: lacking.position, ..stored };
                (stored.version >= lacking.version).then_some(Head { copy, log: None, stored: sealed })
            }
            Lack::Log(_) => None,
        }
    }

    /// Where this site's log would begin for another.
    fn begins_at(&self) -> (u64, Base) {
        self.bases.written.clone()
    }

    /// The pieces of this turn.
    pub(super) fn give(&mut self) -> Result<(), ProcessError> {
        for (to, piece) in self.giving.pieces()? {
            match to {
                Taker::Site(site) => self.say(site, &Word::Piece(piece)),
                Taker::Backup(client, tag) => self.hand(client, tag, &Handed::Piece(piece)),
            }
        }
        Ok(())
    }

    /// What was lacking comes, and is written; if all is there, the site begins again with it.
    pub(super) fn go_on_with_filling(&mut self) -> Result<(), ProcessError> {
        let Some(filling) = &mut self.filling else { return Ok(()) };
        let wants = filling.go_on()?;
        if let Some((head, store)) = filling.done() {
            assert!(head.log.is_none(), "a member lacks its items alone, and keeps its log");
            crate::place::lacks_nothing(self.world.notes())?;
            self.world.keep_store(store);
            return Err(ProcessError::Again);
        }
        if let Some((to, word)) = wants {
            self.say(to, &word);
        }
        Ok(())
    }
}
