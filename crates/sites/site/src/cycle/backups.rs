//! What backups ask: a copy of the items at one version, and the versions behind one.
//!
//! Copies are given as to a site that is filled, a piece a turn. Of versions nothing is noted for the asker: the next question may come to another site.

use std::time::Duration;

use pares_link::ClientId;
use pares_store::{StoreError, StoreSnapshot};
use pares_wice::Version;
use pares_wice::codec::Coded;

use super::Cycle;
use super::admission::no;
use crate::application::Application;
use crate::applier::stored_of;
use crate::backup::messages::{Begun, Handed, HandedVersion, HandedVersions};
use crate::error::ProcessError;
use crate::place::giving::Taker;
use crate::protocol::{Code, Horizon, Reply, WantedPieces};
use crate::requests::Answer;
use crate::world::{Connections, World};

/// Versions handed out at a time, and bytes of them; or one version.
const VERSIONS_MAX: usize = 1_024;
const VERSIONS_BYTES: usize = 256 << 10;

impl<W: World, A: Application> Cycle<W, A> {
    /// Continues a copy, or begins one; otherwise returns the answer to the asker.
    pub(super) fn copy(
        &mut self,
        client: ClientId,
        tag: u64,
        wanted: &WantedPieces,
    ) -> Result<Option<Answer>, ProcessError> {
        let taker = Taker::Backup(client, tag);
        if self.giving.goes_on(taker, wanted, self.ticks) {
            return Ok(None);
        }
        if wanted.copy != 0 {
            let why = "this copy was dropped because nobody read it for ten seconds: begin another";
            return Ok(Some(no(Code::Impossible, why)));
        }
        if !self.may_hand_out() {
            return Ok(Some(not_yet()));
        }
        if !self.giving.has_room(taker) {
            return Ok(Some(busy("this site has reached its limit of concurrent backups")));
        }
        match self.store.snapshot() {
            Err(StoreError::Busy(_)) => Ok(Some(busy("the store has reached its limit of snapshots"))),
            snapshot => self.begin_backup(client, tag, snapshot?, wanted.until).map(|()| None),
        }
    }

    /// Begins another copy, and says what it is of.
    fn begin_backup(
        &mut self,
        client: ClientId,
        tag: u64,
        snapshot: Box<dyn StoreSnapshot>,
        until: u32,
    ) -> Result<(), ProcessError> {
        let stored = stored_of(snapshot.meta())?;
        let copy = self.world.draw().max(1);
        self.work.backups += 1;
        self.giving.begin(Taker::Backup(client, tag), copy, snapshot, until, self.ticks);
        let identity = self.place.identity.clone();
        self.hand(client, tag, &Handed::Begun(Begun { copy, identity, stored }));
        Ok(())
    }

    /// Hands something out that may be longer than an application's reply.
    pub(super) fn hand(&mut self, client: ClientId, tag: u64, handed: &impl Coded) {
        let reply = Reply { to: tag, code: Code::Done, horizon: Horizon::default(), body: handed.to_bytes() };
        // Who is gone, or does not read, begins again.
        let _ = self.links.send_client(client, &reply.to_bytes());
    }

    /// The versions behind `after` that the store has.
    pub(super) fn versions_after(&mut self, client: ClientId, tag: u64, after: Version) -> Option<Answer> {
        if !self.may_hand_out() {
            return Some(not_yet());
        }
        let (stored, now) = (self.base.version(), self.world.now());
        let mut room = VERSIONS_BYTES;
        let versions = self.site.kept_after(after).map(|kept| {
            let kept = kept.take(VERSIONS_MAX).take_while(|entry| {
                assert!(entry.version > after, "versions are handed out behind the one asked for");
                let is_first = room == VERSIONS_BYTES;
                let fits = room.checked_sub(entry.held_bytes());
                room = fits.unwrap_or(0);
                entry.version <= stored && (is_first || fits.is_some())
            });
            kept.map(|entry| HandedVersion {
                digest: self.comparison.digest_at(entry.version),
                age_ms: milliseconds(self.moments.age(entry.version, now)),
                entry: entry.clone(),
            })
            .collect()
        });
        let before = self.comparison.digest_at(after);
        let identity = self.place.identity.clone();
        self.hand(client, tag, &HandedVersions { identity, stored, before, versions });
        None
    }

    /// Whether what it has is all that it has ever answered.
    fn may_hand_out(&self) -> bool {
        !self.site.is_recalling() && self.shows_all
    }
}

fn busy(why: &str) -> Answer {
    no(Code::Busy, &format!("{why}: ask another site, or try again later"))
}

fn not_yet() -> Answer {
    no(Code::Elsewhere, "this site has just started and does not know the other sites' versions yet")
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
