//! A cluster that is so far behind that no other keeps what it lacks.
//!
//! It was declared lost, and the others continued for longer than they keep entries; or it lost its disks, all of them. To stream again from the
//! beginning would need all entries for ever. Instead it *adopts* the past of those who continued: an entry of its own log says at which version
//! it continues, and from which eras; so all its sites agree, in whatever state they are. What the past left behind, the items, each site gets
//! from a copy of a store that holds at least that version. Until then it is *lacking*: its log continues, and it executes nothing.
//!
//! ```text
//!   certifier's delegate --ADOPT era, past--> delegate --Adopt--> the cluster's log
//!                                                                     |
//!          each site: delivered := past, eras := past; its store:     v
//!          written at or behind this entry? ---- yes: as it is, and it recalls until `delivered` has come to the store's version
//!                                          \---- no: lacking (a copy, sealed with this entry's position)
//! ```
//! Only a cluster that does not live adopts: nothing that it alone has was answered. And it is admitted only when most of its sites have their items:
//! otherwise the loss of the others would leave a cluster that lives, and lacks what was answered.

use std::collections::VecDeque;

use crate::entry::{LogEntry, Past};
use crate::ids::{ClusterId, Era, SiteId};
use crate::index::Index;
use crate::message::Message;
use crate::site::{Effects, Notice, Settings, Site, Stored};

impl Site {
    /// Lets a cluster that lacks what is not kept any more continue from here.
    pub(super) fn offer_past(&self, to: SiteId, out: &mut impl Effects) {
        if self.configuration().live.contains(to.cluster) || self.is_recalling() {
            return;
        }
        let eras = self.eras.iter().filter(|(began, _)| *began <= self.stable).copied().collect();
        let past = Past { delivered: self.stable, eras };
        if !past.eras.is_empty() {
            out.notice(Notice::NeedsCopy(to.cluster));
            out.send(to, Message::Adopt { era: self.era(), past });
        }
    }

    /// The others continued for too long: this cluster continues where they are.
    pub(super) fn offered_past(&mut self, era: Era, past: Past, out: &mut impl Effects) {
        let Some((_, last)) = past.eras.last().filter(|(_, last)| !last.live.contains(self.cluster())) else {
            return;
        };
        if self.role.leads && era >= self.promised && past.delivered > self.received {
            (self.received, self.received_era) = (past.delivered, last.era); // the stream continues behind it
            out.propose(LogEntry::Adopt { era, past });
        }
    }

    pub(super) fn adopt(&mut self, era: Era, past: Past) {
        if era < self.promised || past.delivered <= self.delivered || past.eras.is_empty() {
            return;
        }
        self.stop_certifying();
        self.promised = era;
        self.takeover = None;
        self.delivered = past.delivered;
        self.eras = past.eras.into();
        let Settings { index_versions, index_bytes_max, .. } = self.settings;
        self.index = Index::new(self.delivered, index_versions, index_bytes_max);
        self.recent = VecDeque::new();
        self.recent_bytes = 0;
        self.streams.clear();
        if self.received < self.delivered {
            self.receive_from_delivered();
        }
        self.reconsider = true;
        if self.recall_until.position < self.position {
            self.lacking = Some(Stored { version: self.delivered, position: self.position, era, digest: 0 });
            self.recall_until = Stored::ENDLESS;
            self.recalls = true;
        }
    }

    /// Whether most sites of this cluster have their items, as its delegate learns; before, it is taken to be so.
    pub fn set_whole(&mut self, is_whole: bool) {
        self.is_whole = is_whole;
    }

    /// What this site's store must hold at least, and is to say of itself, before it can continue; none if it lacks nothing.
    #[must_use]
    pub fn lacking(&self) -> Option<Stored> {
        self.lacking
    }

    /// Whether a cluster's history has no era in common with this one's because it ended long before.
    pub(super) fn is_far_behind(&self, cluster: ClusterId) -> bool {
        self.common(cluster).is_none() && matches!(self.unrelated(cluster), Notice::NeedsCopy(_))
    }
}
