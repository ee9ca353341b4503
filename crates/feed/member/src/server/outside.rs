//! What comes from outside: books become what is shown, reports become items.

use std::cell::OnceCell;
use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, Write};
use std::sync::Arc;

use pares_desk::frame::{self, Refusal, kind};
use pares_desk::item::{ItemBody, ItemName, OrderedItem, TraderId};
use pares_desk::shown::{BookKey, ShownBooks};
use pares_desk::view::BookView;
use pares_roles::world::Counters;
use pares_roles::{NodeError, World};
use pares_types::ShardId;

use super::connections::Connection;
use super::keeper::Taken;
use super::{Counter, MemberServer};
use crate::reports::CopiedTo;
use crate::sources::{CopiedReport, MarketNews, MarketState, SourceEnded, Sources};
use crate::world::Dial;

/// News taken of each source in a turn.
const TAKEN_MAX: usize = 1_024;
/// Bytes of books given to a connection in one go.
const SHOWN_BYTES: usize = 16 << 10;
/// A peer copies the same reports. A server waits so long for each server before it, and then need not write what it sees in the peer's
/// log already, nanoseconds.
const STAGGER_NS: u64 = 3_000_000;
/// Between two tries to submit a report, nanoseconds.
const AGAIN_NS: u64 = 500_000;

/// A book in the forms in which it is sent. JSON is made when the first asks for it: where none does, a change costs a frame alone.
#[derive(Clone, Debug)]
pub(super) struct Forms {
    view: BookView,
    /// What it was before.
    before: Option<BookView>,
    /// The frame for who reads binary.
    frame: Arc<[u8]>,
    whole: OnceCell<Arc<[u8]>>,
    change: OnceCell<Arc<[u8]>>,
}

impl Forms {
    /// All of it, in JSON.
    fn whole(&self, key: BookKey, sequence: u64) -> &[u8] {
        self.whole.get_or_init(|| super::web::book(key, sequence, &self.view, None))
    }

    /// What changed, in JSON; all of it if there was nothing before.
    fn change(&self, key: BookKey, sequence: u64) -> &[u8] {
        match &self.before {
            None => self.whole(key, sequence),
            before => {
                self.change.get_or_init(|| super::web::book(key, sequence, &self.view, before.as_ref()))
            }
        }
    }
}

/// The market as the server knows it.
#[derive(Debug, Default)]
pub(super) struct Market {
    pub(super) books: ShownBooks<Forms>,
    pub(super) states: BTreeMap<ShardId, MarketState>,
    /// Rises with each change of a state.
    pub(super) states_told: u64,
    /// Changed since they were last encoded.
    changed: BTreeMap<BookKey, BookView>,
}

impl Market {
    fn take(&mut self, news: MarketNews) {
        match news {
            MarketNews::Book { shard, locate, view } => drop(self.changed.insert((shard.0, locate), view)),
            MarketNews::State { shard, state } => {
                self.states.insert(shard, state);
                self.states_told += 1;
            }
        }
    }

    /// Nobody hands anything over any more.
    fn go_stale(&mut self) {
        self.states.values_mut().for_each(|state| *state = MarketState::Stale);
        self.states_told += 1;
    }

    /// Gives a connection the next it should be shown of the market. Says whether there was something. That data are not current is said at once;
    /// that they are, once the connection has been given all that makes them so.
    pub(super) fn show<T: Read + Write>(&self, connection: &mut Connection<T>) -> bool {
        let Some(mut shown) = connection.shown else { return false };
        let (mut bytes, is_web) = (Vec::new(), connection.is_web());
        if shown.warned != self.states_told {
            shown.warned = self.states_told;
            self.write_states(is_web, |state| state != MarketState::Current, &mut bytes);
        }
        let has_all = loop {
            let Some((key, book, continues)) = self.books.next(&mut shown.books) else { break true };
            bytes.extend_from_slice(match (is_web, continues) {
                (false, _) => &book.forms.frame,
                (true, true) => book.forms.change(key, book.sequence),
                (true, false) => book.forms.whole(key, book.sequence),
            });
            if bytes.len() > SHOWN_BYTES {
                break false;
            }
        };
        if has_all && self.changed.is_empty() && shown.told != self.states_told {
            shown.told = self.states_told;
            self.write_states(is_web, |state| state == MarketState::Current, &mut bytes);
        }
        connection.shown = Some(shown);
        if !bytes.is_empty() {
            connection.answer(|out| out.extend_from_slice(&bytes));
        }
        !bytes.is_empty()
    }

    fn write_states(&self, is_web: bool, wanted: impl Fn(MarketState) -> bool, out: &mut Vec<u8>) {
        for (shard, &state) in self.states.iter().filter(|&(_, &state)| wanted(state)) {
            let [low, high] = shard.0.to_le_bytes();
            match is_web {
                true => super::web::write_text(out, &super::web::feed_state(shard.0, state)),
                false => frame::write(out, kind::FEED_STATE, &[&[low, high, state as u8, 0]]),
            }
        }
    }

    /// Encodes what changed, each once. Says whether anything did.
    fn encode(&mut self) -> bool {
        let changed = std::mem::take(&mut self.changed);
        let any = !changed.is_empty();
        for (key, view) in changed {
            let before = self.books.get(key);
            if before.is_some_and(|book| book.forms.view == view) {
                continue;
            }
            let sequence = before.map_or(0, |book| book.sequence) + 1;
            let (mut body, mut bytes) = (Vec::new(), Vec::new());
            view.write(key, sequence, &mut body);
            frame::write(&mut bytes, kind::BOOK, &[&body]);
            let (frame, before) = (bytes.into(), before.map(|book| book.forms.view.clone()));
            let (whole, change) = (OnceCell::new(), OnceCell::new());
            self.books.show(key, Forms { view, before, frame, whole, change });
        }
        any
    }
}

/// Reports that wait to be submitted, each with when that is due.
#[derive(Debug, Default)]
pub(super) struct Copies {
    held: VecDeque<(CopiedReport, u64)>,
}

impl<W: World, S: Dial> MemberServer<W, S> {
    /// Where copies of a shard's reports continue after those in the stream.
    ///
    /// # Errors
    /// If the log cannot be read.
    pub fn copied_to(&mut self, shard: ShardId) -> Result<CopiedTo, NodeError> {
        let (trader, mut last) = (TraderId::of_shard(shard), None);
        self.keeper.newest(trader, |record| {
            if let Ok(ordered) = OrderedItem::read(record)
                && let Ok(ItemBody::Report { frame, .. }) = ordered.item.says()
            {
                last = Some(frame.to_vec());
            }
        })?;
        Ok(CopiedTo { next: self.keeper.through(trader) + 1, last })
    }

    /// Takes what has come from outside. Says how much that was.
    pub(super) fn take_from_outside(&mut self, now_ns: u64) -> usize {
        self.take_market() + self.copy_reports(now_ns)
    }

    fn take_market(&mut self) -> usize {
        let Sources { market: Some(source), .. } = &mut self.sources else { return 0 };
        for taken in 0..TAKEN_MAX {
            match source.try_next() {
                Ok(Some(news)) => self.market.take(news),
                Ok(None) => return taken,
                Err(SourceEnded) => {
                    // Nobody would say any more that the books are old.
                    self.market.go_stale();
                    self.sources.market = None;
                    return taken;
                }
            }
        }
        TAKEN_MAX
    }

    /// Encodes changed books, if a batch is due. Says whether there is something to send.
    pub(super) fn encode_market(&mut self) -> bool {
        let states = self.market.states_told;
        let changed = self.market.encode() || states != self.states_seen;
        self.states_seen = states;
        changed
    }

    fn copy_reports(&mut self, now_ns: u64) -> usize {
        let Sources { reports: Some(source), .. } = &mut self.sources else { return 0 };
        let due_ns = now_ns + STAGGER_NS * u64::from(self.server);
        while self.copies.held.len() < TAKEN_MAX
            && let Some(report) = source.next()
        {
            self.copies.held.push_back((report, due_ns));
        }
        let mut copied = 0;
        while let Some((report, due_ns)) = self.copies.held.pop_front() {
            let is_due = now_ns >= due_ns;
            if !is_due || !self.copy(&report) {
                let due_ns = if is_due { now_ns + AGAIN_NS } else { due_ns };
                self.copies.held.push_front((report, due_ns));
                break;
            }
            copied += 1;
        }
        copied
    }

    /// Submits a report unless that was done. Says whether it is done with: the next one must not be ordered before it.
    fn copy(&mut self, report: &CopiedReport) -> bool {
        let name = ItemName { trader: TraderId::of_shard(report.shard), number: report.number };
        if report.number <= self.keeper.through(name.trader) {
            return true;
        }
        if report.number <= self.keeper.stream.reported(name.trader) {
            // A peer wrote it down, and its disk may be lost before it is ordered.
            return false;
        }
        let mut body = Vec::new();
        let says = ItemBody::Report { shard: report.shard, frame: &report.frame };
        says.write(&mut body);
        match self.keeper.submit(name, says.kind(), &body) {
            Ok(taken) => {
                self.submitted |= taken == Taken::New;
                self.counters.add(Counter::Copied, u64::from(taken == Taken::New));
                true
            }
            Err(Refusal::Busy | Refusal::NoRoom) => false,
            Err(refusal) => {
                self.world.complain(&format_args!("report {} of the exchange: {refusal:?}", report.number));
                true
            }
        }
    }

    /// When a report that is held back is due.
    pub(super) fn copies_ns(&self) -> Option<u64> {
        self.copies.held.front().map(|&(_, due_ns)| due_ns)
    }
}
