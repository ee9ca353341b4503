//! What other clusters are sent, how far they are, and what is stable.
//!
//! The paper acknowledges each transaction of each cluster, and multicasts that it is stable (figure 2, 38 to 56); an acknowledgement of
//! what the receiver has not delivered yet is lost for ever (fault 15), and stability is looked at only when one comes, so that with
//! one cluster left nothing is stable any more (fault 14). Here a cluster says one number, how far it has delivered, and stable is a predicate
//! over these numbers: looked at after every batch, whatever has changed.
//!
//! A number alone does not do: after an era begun elsewhere, two clusters may mean different transactions by it. So a status brings the
//! sender's eras, and what counts is how far the two histories agree.

use std::sync::Arc;

use crate::entry::{Body, Entry, LogEntry};
use crate::ids::{ClusterId, Era, SiteId, Term, Version};
use crate::message::{Message, Status};
use crate::site::{ERAS_TOLD, Effects, Notice, Site};

/// How far the stream to a cluster is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Cursor {
    /// The delegate it goes to.
    term: Term,
    /// The next version to send.
    next: Version,
    /// Bytes of what was sent and not received.
    ahead_bytes: usize,
    /// What the receiver said last, and for how many ticks nothing has come of what was sent since.
    received: Version,
    stalled_ticks: u32,
}

impl Site {
    /// Says how the cluster stands, if this site is its delegate and something has changed.
    pub(super) fn say_status(&mut self, out: &mut impl Effects) {
        if !self.role.leads {
            return;
        }
        let now = self.status();
        if self.told.as_ref() == Some(&now) {
            return;
        }
        // Sites of the own cluster have the log; they only need to know whom to ask.
        let matters_here =
            self.told.as_ref().is_none_or(|told| told.certifying != now.certifying || told.eras != now.eras);
        self.serial += 1;
        let now = Status { serial: self.serial, ..now };
        for &site in self.settings.sites.iter().filter(|site| **site != self.settings.site) {
            if matters_here || site.cluster != self.cluster() {
                out.send(site, Message::Status(now.clone()));
            }
        }
        self.peers.insert(self.cluster(), now.clone());
        self.told = Some(now);
    }

    /// How the cluster stands, as this site knows it.
    fn status(&self) -> Status {
        Status {
            site: self.settings.site,
            term: self.role.term,
            serial: self.serial,
            eras: self.own_eras().split_off(self.eras.len().saturating_sub(ERAS_TOLD)),
            promised: self.promised,
            delivered: self.delivered,
            received: self.received,
            certifying: self.certifies(),
            is_whole: self.is_whole && !self.is_recalling(),
        }
    }

    pub(super) fn heard(&mut self, status: Status, out: &mut impl Effects) {
        let cluster = status.site.cluster;
        let is_late = self
            .peers
            .get(&cluster)
            .is_some_and(|known| (known.term, known.serial) >= (status.term, status.serial));
        // A peer may say anything; nobody is at the end of all versions or eras.
        let is_absurd = status.received == ENDLESS || status.promised.is_last() || status.eras.is_empty();
        if is_late || is_absurd {
            return;
        }
        self.peers.insert(cluster, status);
        self.reconsider = true;
        if cluster != self.cluster() && self.common(cluster).is_none() {
            out.notice(self.unrelated(cluster));
        }
    }

    /// The versions up to which another cluster's history and this one's are the same; [`ENDLESS`] where they do not part. None if that
    /// cannot be known.
    pub(super) fn common(&self, cluster: ClusterId) -> Option<Version> {
        let Some(status) = self.peers.get(&cluster) else { return Some(ENDLESS) };
        let own: Vec<(Era, Version)> = self.own_eras();
        parting(&own, &status.eras)
    }

    /// Whether another cluster has said that its history and this one's are the same beyond `keep`.
    pub(super) fn agrees_beyond(&self, cluster: ClusterId, keep: Version) -> bool {
        self.peers.contains_key(&cluster) && self.common(cluster).is_some_and(|common| common > keep)
    }

    /// What it means that two histories have no era in common: one is far behind the other, or they parted long ago.
    pub(super) fn unrelated(&self, cluster: ClusterId) -> Notice {
        let (first, last) = (self.eras.front().map(|(_, first)| first.era), self.era());
        let theirs =
            self.peers.get(&cluster).map(|status| (status.eras.first().map(|(era, _)| *era), status.era()));
        let parted = theirs
            .is_some_and(|(their_first, their_last)| Some(their_last) >= first && their_first <= Some(last));
        if parted { Notice::Split(cluster) } else { Notice::NeedsCopy(cluster) }
    }

    fn own_eras(&self) -> Vec<(Era, Version)> {
        self.eras.iter().map(|(began, configuration)| (configuration.era, *began)).collect()
    }

    /// How far another cluster has delivered what this site has, or will have.
    pub(super) fn agreed(&self, cluster: ClusterId) -> Version {
        if cluster == self.cluster() {
            return self.delivered;
        }
        let Some(status) = self.peers.get(&cluster) else { return Version(0) };
        self.common(cluster).map_or(Version(0), |common| common.min(status.delivered))
    }

    /// The version up to which every living cluster has delivered.
    pub(super) fn everywhere(&self) -> Version {
        let live = self.configuration().live;
        live.iter().map(|cluster| self.agreed(cluster)).min().unwrap_or_default()
    }

    /// Whether this site, since it began, has heard of every living cluster how far that is, and has delivered what its own had: then all that was stable
    /// when it ended before is stable again. Before that it may show less than it has answered.
    #[must_use]
    pub fn has_caught_up(&self) -> bool {
        let live = self.configuration().live;
        let all_heard = live.iter().all(|cluster| self.peers.contains_key(&cluster));
        let own = self.peers.get(&self.cluster());
        !self.recalls && all_heard && own.is_some_and(|status| self.delivered >= status.delivered)
    }

    pub(super) fn raise_stable(&mut self, out: &mut impl Effects) {
        self.needed = self.everywhere();
        let stable = self.needed.min(self.delivered);
        if stable > self.stable {
            self.stable = stable;
            self.overlay.settle(stable);
            self.tell_stable(out);
        } else if self.awaiting_stable.first_key_value().is_some_and(|(version, _)| *version <= self.stable) {
            self.tell_stable(out); // a repeat of something long stable
        }
    }

    /// Sends clusters what they lack: the certifier's delegate to all, and any delegate to a certifier that has not heard of its era.
    pub(super) fn stream(&mut self, out: &mut impl Effects) {
        if !self.role.leads || self.promised != self.era() {
            return;
        }
        let configuration = self.configuration();
        let others = self.settings.clusters().without(self.cluster());
        for cluster in others.iter() {
            let lacks_its_era = cluster == configuration.certifier;
            if configuration.certifier == self.cluster() || lacks_its_era {
                self.stream_to(cluster, lacks_its_era, out);
            }
        }
    }

    fn stream_to(&mut self, cluster: ClusterId, only_its_era: bool, out: &mut impl Effects) {
        let era = self.era();
        let Some(status) = self.peers.get(&cluster) else { return };
        let Some(common) = self.common(cluster) else {
            if self.is_far_behind(cluster) {
                self.offer_once(cluster, out);
            }
            return;
        };
        let has_era = status.eras.last().is_some_and(|(last, _)| *last == era);
        if status.promised > era || (only_its_era && has_era) {
            return;
        }
        if status.delivered > common {
            let (site, term) = (status.site, status.term);
            if self.says_once(cluster, term, common) {
                out.send(site, Message::Rewind { era, keep: common });
            }
            return;
        }
        let oldest = self.recent.front().map_or(self.delivered.next(), |entry| entry.version);
        if status.received.next() < oldest && status.received < self.delivered {
            self.offer_once(cluster, out);
            return;
        }
        let (to, mut cursor) = (status.site, self.cursor(cluster, status.term, status.received));
        self.send_entries(to, &mut cursor, out);
        self.streams.insert(cluster, cursor);
    }

    /// Where the stream to a cluster stands whose delegate has received so much in that term.
    fn cursor(&self, cluster: ClusterId, term: Term, received: Version) -> Cursor {
        let known = self.streams.get(&cluster).filter(|cursor| cursor.term == term && cursor.next != ENDLESS);
        let anew = Cursor { term, next: received.next(), ahead_bytes: 0, received, stalled_ticks: 0 };
        match known {
            None => anew,
            Some(cursor) if cursor.received == received => *cursor,
            Some(cursor) => {
                let next = cursor.next.max(received.next());
                let ahead = self.recent_from(received.next()).take_while(|entry| entry.version < next);
                let ahead_bytes = ahead.map(|entry| entry.held_bytes()).sum();
                Cursor { next, ahead_bytes, ..anew }
            }
        }
    }

    /// Whether something is to be said to a cluster's delegate now that is not part of the stream: again when that had no effect for long.
    fn says_once(&mut self, cluster: ClusterId, term: Term, received: Version) -> bool {
        let known = self.streams.get(&cluster);
        let is_told = known.is_some_and(|cursor| cursor.term == term && cursor.next == ENDLESS);
        if !is_told {
            let told = Cursor { term, next: ENDLESS, ahead_bytes: 0, received, stalled_ticks: 0 };
            self.streams.insert(cluster, told);
        }
        !is_told
    }

    fn offer_once(&mut self, cluster: ClusterId, out: &mut impl Effects) {
        let Some((site, term, received)) =
            self.peers.get(&cluster).map(|status| (status.site, status.term, status.received))
        else {
            return;
        };
        if self.says_once(cluster, term, received) {
            self.offer_past(site, out);
        }
    }

    fn send_entries(&self, to: SiteId, cursor: &mut Cursor, out: &mut impl Effects) {
        let until =
            self.delivered.min(Version(cursor.received.0.saturating_add(self.settings.stream_window)));
        let Some(oldest) = self.recent.front().map(|entry| entry.version) else { return };
        if cursor.next < oldest {
            return; // it was sent, and its cluster has not said so yet
        }
        while cursor.next <= until && cursor.ahead_bytes < self.settings.stream_window_bytes {
            let wanted = self.recent_from(cursor.next).take_while(|entry| entry.version <= until);
            let entries = self.in_one_message(wanted);
            cursor.next = Version(cursor.next.0 + entries.len() as u64);
            cursor.ahead_bytes += entries.iter().map(|entry| entry.held_bytes()).sum::<usize>();
            out.send(to, Message::Stream { era: self.era(), entries });
        }
    }

    /// The versions behind `after` that this site has delivered and keeps, in order; none if it keeps the first of them no more.
    #[must_use]
    pub fn kept_after(&self, after: Version) -> Option<impl Iterator<Item = &Arc<Entry>>> {
        let oldest = self.recent.front().map_or(self.delivered.next(), |entry| entry.version);
        (after.0 >= oldest.previous().0).then(|| self.recent_from(Version(after.0.saturating_add(1))))
    }

    /// The versions kept, from one on.
    fn recent_from(&self, first: Version) -> impl Iterator<Item = &Arc<Entry>> {
        let oldest = self.recent.front().map_or(first, |entry| entry.version);
        let from = usize::try_from(first.0.saturating_sub(oldest.0)).expect("what is kept fits in memory");
        self.recent.range(from.min(self.recent.len())..)
    }

    /// The first of these versions, as many as fit into a message; one at least, if there is one.
    pub(super) fn in_one_message<'a>(
        &self,
        entries: impl Iterator<Item = &'a Arc<Entry>>,
    ) -> Vec<Arc<Entry>> {
        let mut room = self.settings.stream_bytes_max;
        let mut chosen = Vec::new();
        for entry in entries.take(self.settings.stream_entries_max) {
            let bytes = entry.held_bytes();
            if bytes > room && !chosen.is_empty() {
                break;
            }
            room = room.saturating_sub(bytes);
            chosen.push(Arc::clone(entry));
        }
        chosen
    }

    /// What was sent and has not been received for long is sent again.
    pub(super) fn tick_streams(&mut self) {
        let patience = self.settings.patience_ticks;
        self.streams.retain(|_, cursor| {
            cursor.stalled_ticks += 1;
            cursor.stalled_ticks < patience
        });
    }

    /// The connection to a site is new: what was sent to its cluster may be lost.
    pub fn connected(&mut self, site: SiteId) {
        self.streams.remove(&site.cluster);
        if !self.configuration().live.contains(site.cluster) {
            self.peers.remove(&site.cluster); // it may have lost its disks, and count its terms again
        }
        self.told = None;
        self.reconsider = true;
    }

    /// The next versions, from the certifier's delegate: on to the own cluster's log.
    pub(super) fn streamed(&mut self, era: Era, entries: &[Arc<Entry>], out: &mut impl Effects) {
        if !self.role.leads || era < self.promised {
            return;
        }
        for entry in entries {
            if self.proposed_bytes > self.settings.proposed_bytes_max {
                return; // it comes again
            }
            if entry.version == self.received.next() && entry.era == self.received_era {
                self.received = entry.version;
                self.proposed_bytes += entry.held_bytes();
                if let Body::Configure(configuration) = &entry.body {
                    self.received_era = configuration.era;
                }
                out.propose(LogEntry::Stream { era, entry: Arc::clone(entry) });
            }
        }
    }
}

/// No version: two histories that do not part.
const ENDLESS: Version = Version(u64::MAX);

/// The last version before two histories part, each given by its eras and the versions they began with, in order.
fn parting(own: &[(Era, Version)], other: &[(Era, Version)]) -> Option<Version> {
    if other == [(Era::default(), Version(0))] && own.first() != other.first() {
        return Some(Version(0)); // from before all eras that are kept: it must begin again, if it has not
    }
    let first = own.iter().find_map(|era| other.iter().position(|other| other == era).map(|at| (era, at)));
    let (first, other_at) = first?;
    let own_at = own.iter().position(|era| era == first)?;
    let same = own[own_at..].iter().zip(&other[other_at..]).take_while(|(own, other)| own == other).count();
    let next = [own.get(own_at + same), other.get(other_at + same)];
    let parts = next.into_iter().flatten().map(|(_, began)| began.previous()).min();
    Some(parts.unwrap_or(ENDLESS))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn era(number: u32, by: u8, began: u64) -> (Era, Version) {
        (Era { takeovers: 0, number, by: ClusterId(by) }, Version(began))
    }

    #[test]
    fn histories_part_where_the_next_era_of_either_begins() {
        let (first, here, there) = (era(0, 0, 0), era(1, 0, 16), era(1, 1, 12));
        assert_eq!(parting(&[first], &[first]), Some(ENDLESS));
        assert_eq!(parting(&[first, here], &[first]), Some(Version(15)), "the other has not heard of it");
        assert_eq!(parting(&[first], &[first, here]), Some(Version(15)), "nor has this one");
        assert_eq!(parting(&[first, here], &[first, here]), Some(ENDLESS));
        assert_eq!(parting(&[first, here], &[first, there]), Some(Version(11)));
        assert_eq!(parting(&[here], &[first, here]), Some(ENDLESS), "old eras are forgotten");
        assert_eq!(parting(&[here], &[there]), None);
        assert_eq!(
            parting(&[here], &[first]),
            Some(Version(0)),
            "a site that begins anew agrees with everybody"
        );
    }
}
