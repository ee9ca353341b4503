//! What publishers write and send, held against the reference; and the end, when all must be there.

use std::collections::BTreeMap;

use pares_book::Book;
use pares_config::NodeId;
use pares_feed::books::ReceivedBooks;
use pares_feed::itch;
use pares_feed::mold::Packet;
use pares_feed::publication::can_publish;
use pares_publisher::logged::{Logged, Published, Reached};
use pares_types::{OrderKind, Position, Price, Quantity, ShardId, Side};

use super::{AGAIN, EVERYBODY, Feed, RECORD, publisher_id};
use crate::memory::reader::scan;
use crate::world::{World, index, shard_id};
use crate::{Broken, Bug, Verdict, broken, defects, must};

impl World<'_> {
    /// Reads the reference on to what is committed by now: what the quorum-th recorder has for good.
    pub(super) fn read_reference(&mut self, shard: ShardId) {
        let recorders = 0..self.scenario.recorders;
        let mut next: Vec<Position> = recorders.map(|n| self.safe_of(n).next[usize::from(shard.0)]).collect();
        next.sort_unstable();
        let committed = next[next.len() - self.scenario.quorum];
        if let Some(feed) = &mut self.feed {
            feed.reference.read(&self.ledger, shard, committed);
        }
    }

    /// An epoch begins: what was published stays.
    pub(in crate::world) fn check_feed_is_kept(&self, shard: usize, first: Position) -> Verdict {
        let Some(feed) = &self.feed else { return Ok(()) };
        let told = feed.reference.next(shard_id(shard));
        must(told <= first, super::COMMITTED, || {
            format!("shard {shard} goes on at {first}, and what came before {told} was committed")
        })
    }

    /// A publisher appended something to its log.
    pub(in crate::world) fn check_published(&mut self, node: NodeId, payload: &[u8]) -> Verdict {
        let published = match Logged::read(payload) {
            Ok(Logged::Published(published)) => published,
            Ok(Logged::Piece(_)) => return Ok(()),
            Err(error) => {
                return broken(RECORD, format!("{node} appends what cannot be read: {error}"));
            }
        };
        self.read_reference(published.shard);
        let Some(feed) = &self.feed else { return Ok(()) };
        feed.check_stretch(&published)?;
        let words = [index(node) as u64, published.shard.0.into(), published.first, published.count.into()];
        self.note("publisher {} logs shard {} message {}, and as many: {}", &words);
        Ok(())
    }

    /// A packet of a line, or one that answers; `invariant` is what it breaks if its messages are others.
    pub(super) fn check_packet(&mut self, bytes: &[u8], invariant: &'static str) -> Verdict {
        let packet = Packet::read(bytes).map_err(|error| Broken { invariant, what: error.to_string() })?;
        let Some(shard) = packet.session.shard() else {
            return broken(invariant, format!("{} is no session", packet.session));
        };
        self.read_reference(shard);
        let Some(Feed { reference, .. }) = &self.feed else { return Ok(()) };
        for (number, message) in packet.messages() {
            match invariant {
                AGAIN => reference.check_again(packet.session, number, message)?,
                _ => reference.check_told(packet.session, number, message)?,
            }
        }
        reference.check_standing(packet.session, packet.next(), packet.ends)
    }

    /// A publisher has caught up: what its log holds is the record's, whatever happened to it.
    pub(in crate::world) fn check_publisher(&mut self, node: NodeId) -> Verdict {
        let is_catching_up = self.machine.counter(&node.to_string(), "catching_up") != Some(0);
        // What rotted since it read its log through, it does not know yet.
        let is_rotten = self.rotten.contains(&node);
        if is_catching_up || is_rotten || self.process(node).is_checked {
            return Ok(());
        }
        self.process(node).is_checked = true;
        (0..self.scenario.shards).for_each(|shard| self.read_reference(shard_id(shard)));
        self.check_log(node).map(drop)
    }

    /// All messages of a publisher's log: each as the record gives it, and none missing between them. How far each shard has come.
    fn check_log(&self, node: NodeId) -> Result<BTreeMap<ShardId, Reached>, Broken> {
        let mut reached: BTreeMap<ShardId, Reached> = BTreeMap::new();
        let (Some(feed), Some(log)) = (&self.feed, self.machine.log(node)) else { return Ok(reached) };
        let mut found = Ok(());
        scan(&log, 0, u64::MAX, |offset, payload| {
            let Ok(Logged::Published(published)) = Logged::read(payload) else { return };
            let before = reached.insert(published.shard, published.reached);
            let follows = before.is_none_or(|before| {
                (before.session, before.next) == (published.reached.session, published.first)
            });
            let checked = match follows || published.first == 1 {
                true => feed.check_stretch(&published),
                false => broken(RECORD, format!("{offset} follows {before:?}")),
            };
            if found.is_ok() {
                found = checked;
            }
        });
        let told =
            |Broken { what, .. }| Broken { invariant: RECORD, what: format!("in the log of {node}: {what}") };
        found.map_err(told).map(|()| reached)
    }

    /// A publisher's log is of another past, as the defect has it, once its process is dead.
    pub(in crate::world) fn keep_another_past(&mut self, node: NodeId) {
        if self.scenario.bug != Some(Bug::KeepAnotherPast) || !matches!(node, NodeId::Publisher(_)) {
            return;
        }
        let Some(log) = self.machine.log(node) else { return };
        let mut last = None;
        let written = log.lock().written;
        scan(&log, 0, written, |offset, payload| {
            let mut changed = payload.to_vec();
            if defects::change_message(&mut changed) {
                last = Some((offset, changed));
            }
        });
        if let Some((offset, payload)) = last {
            log.lock().overwrite(offset, &payload);
        }
    }

    /// Whether publishers' logs and subscribers have all that is committed.
    pub(in crate::world) fn feed_is_told(&mut self) -> Result<bool, Broken> {
        if self.feed.is_none() {
            return Ok(true);
        }
        (0..self.scenario.shards).for_each(|shard| self.read_reference(shard_id(shard)));
        Ok(self.untold()?.is_none())
    }

    /// A publisher or a subscriber that lacks something, if any does.
    pub(in crate::world) fn untold(&self) -> Result<Option<String>, Broken> {
        let Some(feed) = &self.feed else { return Ok(None) };
        for publisher in self.config.publisher_ids().map(|id| publisher_id(usize::from(id.0))) {
            if !self.is_up(publisher)
                || self.machine.counter(&publisher.to_string(), "catching_up") != Some(0)
            {
                return Ok(Some(format!("{publisher} is not up")));
            }
            if self.rotten.contains(&publisher) {
                continue;
            }
            let held = self.check_log(publisher)?;
            for shard in (0..self.scenario.shards).map(shard_id) {
                let held = held.get(&shard).map(|held| (held.session, held.next, held.over));
                let right = feed.reference.last(shard);
                let right = right.map(|(session, told)| (session, told.next(), told.is_over));
                if held != right {
                    return Ok(Some(format!("{publisher} has {held:?} of shard {shard}, of {right:?}")));
                }
            }
        }
        Ok(feed.subscribers.iter().enumerate().find_map(|(at, subscriber)| {
            let has_all = subscriber.has_all(self.now_ns, &feed.reference);
            let next = || subscriber.subscription.as_ref().and_then(|one| one.next());
            let (state, right) = (subscriber.state(self.now_ns), feed.reference.last(subscriber.shard()));
            let right = right.map(|(session, told)| (session, told.next(), told.is_over));
            (!has_all).then(|| format!("subscriber {at} is {state:?} at {:?}, of {right:?}", next()))
        }))
    }

    /// F5: the books that all messages make are those of the venues.
    pub(in crate::world) fn check_feed_end(&mut self) -> Verdict {
        let Some(feed) = &mut self.feed else { return Ok(()) };
        feed.subscribers.iter_mut().for_each(super::Subscriber::note_counters);
        for shard in (0..self.scenario.shards).map(shard_id) {
            let Some(Feed { reference, .. }) = &self.feed else { return Ok(()) };
            // What comes between two sessions is published when the next one begins.
            let Some((_, told)) = reference.last(shard).filter(|(_, told)| !told.is_over) else { continue };
            let mut books = ReceivedBooks::with_seed(0);
            told.messages.iter().for_each(|message| books.on_message(message));
            for venue in 0..self.scenario.venues {
                let Some(seated) = self.seated(venue, usize::from(shard.0)) else { continue };
                let differ = seated.books().iter().find_map(|book| differs(book, &books));
                if let Some(what) = differ {
                    return broken(EVERYBODY, format!("venue {venue} shard {shard}: {what}"));
                }
            }
        }
        Ok(())
    }
}

/// What of a venue's book is shown otherwise.
fn differs(book: &impl Book, books: &ReceivedBooks) -> Option<String> {
    let rules = book.instrument();
    if !can_publish(rules) {
        return None;
    }
    let Some(shown) = itch::locate(rules.id).and_then(|at| books.book(at)) else {
        return Some(format!("instrument {} is missing", rules.id));
    };
    [Side::Buy, Side::Sell].into_iter().find_map(|side| {
        let told: Vec<(Price, Quantity)> =
            shown.orders(side).map(|(price, shares, _)| (price, shares)).collect();
        let mut there = Vec::new();
        book.for_each_order(side, &mut |order| {
            if order.kind != OrderKind::Market {
                there.push((order.price, order.shown));
            }
        });
        (told != there).then(|| format!("instrument {} shows {told:?}, of {there:?}", rules.id))
    })
}

impl Feed {
    /// Messages in a record of a log.
    fn check_stretch(&self, published: &Published<'_>) -> Verdict {
        let Reached { session, next, over, .. } = published.reached;
        for (number, message) in (published.first..).zip(published.messages()) {
            self.reference.check_told(session, number, message)?;
        }
        self.reference.check_standing(session, next, over)
    }
}
