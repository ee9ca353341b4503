//! What should have been received: the messages that the record gives, and the books that they make.

use std::collections::{BTreeMap, BTreeSet};

use pares_desk::view::BookView;
use pares_feed::books::ReceivedBooks;
use pares_feed::publication::{FeedSink, Publication, Session};
use pares_load::LabError;
use pares_node::committed::{Committed, CommittedStream};
use pares_node::{HostWorld, Layout, NodeError, SystemConfig};
use pares_types::{Event, ShardId};
use pares_wire::record::ResultRecord;
use serde::Serialize;

use super::listener::{Heard, digest};

/// Records read from each recorder at a time.
const BATCH_MAX: usize = 2_048;

/// The sessions of a shard: their messages.
#[derive(Debug, Default)]
pub(super) struct Sessions(Vec<(Session, Vec<Vec<u8>>)>);

impl FeedSink for Sessions {
    fn begin(&mut self, session: Session) {
        self.0.push((session, Vec::new()));
    }

    fn message(&mut self, bytes: &[u8]) {
        self.0.last_mut().expect("a session has begun").1.push(bytes.to_vec());
    }

    fn end(&mut self) {}
}

/// A book: of which shard, and its locate.
pub(super) type BookKey = (u16, u16);

/// What of a book a trader goes by: its state, and the best prices.
pub(super) fn view_sum(view: &BookView) -> u32 {
    let mut bytes = Vec::new();
    let BookView { symbol, state, bids, offers, .. } = view.clone();
    BookView { symbol, state, bids, offers, last: None, indicative: None }.write((0, 0), 0, &mut bytes);
    crc32c::crc32c(&bytes)
}

/// What books of all shards showed.
pub(super) struct Market {
    /// Ever.
    pub(super) shown: BTreeSet<(BookKey, u32)>,
    /// In the end.
    pub(super) last: Vec<(BookKey, u32)>,
}

impl Market {
    pub(super) fn of(truth: &BTreeMap<ShardId, Sessions>) -> Self {
        let shown = truth.iter().flat_map(|(shard, sessions)| sessions.views(*shard)).collect();
        let last = truth.iter().flat_map(|(shard, sessions)| sessions.last_views(*shard)).collect();
        Self { shown, last }
    }
}

/// What receivers have wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Wrongs {
    /// Books that were called current, and were not what they should be.
    pub(crate) wrong_while_current: u64,
    /// Books that differ in the end.
    pub(crate) books_differing: u64,
    /// Messages that never came, without a word.
    pub(crate) messages_missing: u64,
    /// Messages that were others than the record gives.
    pub(crate) messages_differing: u64,
}

impl Wrongs {
    /// Counts those too.
    pub(crate) fn add(&mut self, other: &Self) {
        self.wrong_while_current += other.wrong_while_current;
        self.books_differing += other.books_differing;
        self.messages_missing += other.messages_missing;
        self.messages_differing += other.messages_differing;
    }
}

impl Sessions {
    /// The last session, and the number of its next message.
    pub(super) fn last(&self) -> Option<(Session, u64)> {
        self.0.last().map(|(session, messages)| (*session, messages.len() as u64 + 1))
    }

    /// All that its books ever showed.
    fn views(&self, shard: ShardId) -> BTreeSet<(BookKey, u32)> {
        let mut views = BTreeSet::new();
        for (_, messages) in &self.0 {
            let mut books = ReceivedBooks::with_seed(0);
            for message in messages {
                books.on_message(message);
                let Some(&[high, low]) = message.get(1..3) else { continue };
                let locate = u16::from_be_bytes([high, low]);
                let view = books.book(locate).map(BookView::of).unwrap_or_default();
                views.insert(((shard.0, locate), view_sum(&view)));
            }
        }
        views
    }

    /// What its books show in the end.
    fn last_views(&self, shard: ShardId) -> Vec<(BookKey, u32)> {
        let mut books = ReceivedBooks::with_seed(0);
        let last = self.0.last().map_or(&[][..], |(_, messages)| messages);
        last.iter().for_each(|message| books.on_message(message));
        books.all().map(|(locate, book)| ((shard.0, locate), view_sum(&BookView::of(book)))).collect()
    }

    /// Holds what a receiver heard of the shard against what there was.
    pub(super) fn judge(&self, heard: &Heard) -> Wrongs {
        let mut wrongs = Wrongs { messages_missing: heard.skipped, ..Wrongs::default() };
        for (session, messages) in &self.0 {
            self.judge_session(heard, *session, messages, &mut wrongs);
        }
        let known: usize = self
            .0
            .iter()
            .map(|(session, messages)| {
                heard.messages.range((session.0, 1)..=(session.0, messages.len() as u64)).count()
            })
            .sum();
        // Messages of sessions that were never, or beyond the end of one.
        wrongs.messages_differing += (heard.messages.len() - known) as u64;
        match self.last() {
            Some((session, next)) if heard.session == Some(session) => {
                wrongs.messages_missing += next.saturating_sub(heard.next);
            }
            last => wrongs.messages_missing += last.map_or(0, |(_, next)| next),
        }
        wrongs
    }

    fn judge_session(&self, heard: &Heard, session: Session, messages: &[Vec<u8>], wrongs: &mut Wrongs) {
        let mut books = ReceivedBooks::with_seed(0);
        let is_last = self.last().is_some_and(|(last, _)| last == session);
        let mut shown = heard.current.range((session.0, 0)..=(session.0, u64::MAX)).peekable();
        for number in 1..=messages.len() as u64 + 1 {
            let is_end = number > messages.len() as u64;
            while let Some((_, &sum)) = shown.next_if(|((_, next), _)| *next == number) {
                let is_wrong = sum != digest(&books);
                wrongs.wrong_while_current += u64::from(is_wrong);
                wrongs.books_differing += u64::from(is_wrong && is_end && is_last);
            }
            let Some(message) = usize::try_from(number - 1).ok().and_then(|at| messages.get(at)) else {
                break;
            };
            books.on_message(message);
            let came = heard.messages.get(&(session.0, number));
            wrongs.messages_differing += u64::from(came.is_some_and(|&sum| sum != crc32c::crc32c(message)));
        }
        // Called current beyond all that there was.
        wrongs.wrong_while_current += shown.count() as u64;
        let end = (session.0, messages.len() as u64 + 1);
        wrongs.books_differing += u64::from(is_last && !heard.current.contains_key(&end));
    }
}

/// What the record of a system gives, by shard.
pub(super) fn of_record(
    layout: &Layout,
    config: &SystemConfig,
) -> Result<BTreeMap<ShardId, Sessions>, LabError> {
    let (mut stream, _) = CommittedStream::of_all_kept(&HostWorld::new(layout)?, config)?;
    let begins = |(shard, instruments): (ShardId, Vec<_>)| {
        (shard, (Publication::new(shard, &instruments), Sessions::default()))
    };
    let mut all: BTreeMap<ShardId, (Publication, Sessions)> =
        config.shards()?.into_iter().map(begins).collect();
    while stream.poll(BATCH_MAX, |item| match item {
        Committed::Result { record, .. } => publish(&mut all, &record),
        _ => Ok(()),
    })? > 0
    {}
    Ok(all.into_iter().map(|(shard, (_, sessions))| (shard, sessions)).collect())
}

fn publish(
    all: &mut BTreeMap<ShardId, (Publication, Sessions)>,
    record: &ResultRecord<'_>,
) -> Result<(), NodeError> {
    let Some((publication, sessions)) = all.get_mut(&record.shard()) else { return Ok(()) };
    let events = record.events().collect::<Result<Vec<Event>, _>>()?;
    publication.on_record(record.position(), &record.request()?, &record.outcome()?, &events, sessions);
    Ok(())
}
