//! A trader's end of the system: what it says, and what it makes of what it receives.
//!
//! A trader that waits for an answer to each thing it says loses what it said when its server dies. This one keeps what it has not seen in
//! the stream, and says it again, under the same number, to the next server; whatever the first one made of it, it stands in the stream once.
//!
//! ```text
//!          begin                 signed on                  ends, silent, makes no sense
//!  away ----------> signing on ------------> signed on ----------------------------------+
//!    ^                   | ended, takes too long                                         |
//!    +-------------------+---------------------------------------------------------------+
//! ```
//! Which server is tried next, and when, is a matter of who holds the connection.

mod leave;

use std::collections::VecDeque;

use pares_feed::mold::Packet;
use pares_types::{Position, ShardId};
use zerocopy::IntoBytes;

use crate::frame::{
    self, CutOff, DeskNews, DeskSignOn, DeskSignedOn, FROM_NOW, NEWS_BYTES_MAX, Refusal, WANTS_BOOKS,
    WANTS_LOCAL, kind,
};
use crate::item::{BODY_BYTES_MAX, ItemBody, ItemError, NUMBER_MAX, OrderedItem, TraderId};
use crate::market::MarketState;
use crate::view::ToldView;
pub use leave::Leave;

/// How long a server may take to answer a sign-on, nanoseconds.
pub const PATIENCE_NS: u64 = 2_000_000_000;
/// A server that says nothing for so long is left for another, nanoseconds: three of its signs of life.
const SILENCE_NS: u64 = 3_000_000_000;

/// What a trader wants to be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraderOptions {
    /// The first position of the stream; none: from now on.
    pub from: Option<Position>,
    /// The latest state of each book, too.
    pub books: bool,
}

/// The whole stream, and no books.
impl Default for TraderOptions {
    fn default() -> Self {
        Self { from: Some(Position(0)), books: false }
    }
}

/// What a trader receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraderNews<'a> {
    /// It is signed on at that server; nothing is missed.
    SignedOn {
        /// Which.
        server: u16,
        /// All below was released to traders.
        told: Position,
        /// Why that server ended the trader's last session.
        cut_off: CutOff,
    },
    /// The next item of the stream.
    Item(OrderedItem<'a>),
    /// Something of the trader's stands there; longer ago than is remembered if nowhere.
    Placed {
        /// Its number.
        number: u64,
        /// Where.
        position: Option<Position>,
    },
    /// Another program of the trader gave that number first; what was submitted under it is submitted under another.
    Renumbered {
        /// The number it had.
        from: u64,
        /// The number it has.
        to: u64,
    },
    /// Something of the trader's was not taken in.
    Refused {
        /// Its number.
        number: u64,
        /// Why.
        refusal: Refusal,
    },
    /// A book is like that now.
    Book(ToldView),
    /// A shard's market data, and so all of its books, are worth this now.
    Market {
        /// Which shard.
        shard: ShardId,
        /// What.
        state: MarketState,
    },
    /// Positions that were released before are lost at all servers, and another stream begins, from its first position.
    Lost,
    /// The connection is lost; the next call looks for another server.
    Away,
}

/// Something submitted that was not seen in the stream yet.
#[derive(Clone, Debug)]
struct Unplaced {
    number: u64,
    kind: u8,
    body: Vec<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Away,
    SigningOn,
    SignedOn,
}

/// A trader's end, without the connection.
#[derive(Clone, Debug)]
pub struct Trader {
    trader: TraderId,
    wants: u16,
    /// The stream it follows; 0 before it knows.
    number: u64,
    /// The next position.
    next: u64,
    /// The trader's last number.
    last: u64,
    unplaced: VecDeque<Unplaced>,
    at: At,
    input: Vec<u8>,
    output: Vec<u8>,
    heard_ns: u64,
    reached: Option<TraderNews<'static>>,
    is_lost: bool,
}

impl Trader {
    /// A trader that is not connected.
    #[must_use]
    pub fn new(trader: TraderId, options: TraderOptions) -> Self {
        Self {
            trader,
            wants: WANTS_LOCAL | if options.books { WANTS_BOOKS } else { 0 },
            number: 0,
            next: options.from.map_or(FROM_NOW, |from| from.0),
            last: 0,
            unplaced: VecDeque::new(),
            at: At::Away,
            input: Vec::new(),
            output: Vec::new(),
            heard_ns: 0,
            reached: None,
            is_lost: false,
        }
    }

    /// Who it is.
    #[must_use]
    pub fn trader(&self) -> TraderId {
        self.trader
    }

    /// The next position it will be told.
    #[must_use]
    pub fn next(&self) -> Position {
        Position(self.next)
    }

    /// How much it submitted that it has not seen in the stream.
    #[must_use]
    pub fn unplaced(&self) -> usize {
        self.unplaced.len()
    }

    /// Whether a server has let it in, and the connection lasts.
    #[must_use]
    pub fn is_signed_on(&self) -> bool {
        self.at == At::SignedOn
    }

    /// Submits something; it is said again to the next server until it stands in the stream. Its number.
    ///
    /// # Errors
    /// If it is longer than an item may be; then nothing is submitted, and no number used.
    pub fn submit(&mut self, body: &ItemBody<'_>) -> Result<u64, ItemError> {
        let mut unplaced = Unplaced { number: self.last + 1, kind: body.kind(), body: Vec::new() };
        body.write(&mut unplaced.body);
        if unplaced.body.len() > BODY_BYTES_MAX {
            return Err(ItemError::TooLong { bytes: unplaced.body.len() });
        }
        self.last += 1;
        if self.is_signed_on() {
            frame::write_submit(&mut self.output, unplaced.number, unplaced.kind, &unplaced.body);
        }
        self.unplaced.push_back(unplaced);
        Ok(self.last)
    }

    /// There is a new connection to a server: the first thing said there is who this is.
    pub fn begin(&mut self, now_ns: u64) {
        self.leave();
        (self.at, self.heard_ns) = (At::SigningOn, now_ns);
        let sign_on = DeskSignOn::new(self.trader, self.wants, self.number, self.next);
        frame::write(&mut self.output, kind::SIGN_ON, &[sign_on.as_bytes()]);
    }

    /// The connection is no more.
    pub fn leave(&mut self) {
        self.at = At::Away;
        self.input.clear();
        self.output.clear();
    }

    /// Whether the server has said nothing for too long.
    #[must_use]
    pub fn is_silent(&self, now_ns: u64) -> bool {
        let patience_ns = if self.is_signed_on() { SILENCE_NS } else { PATIENCE_NS };
        self.at != At::Away && now_ns.saturating_sub(self.heard_ns) > patience_ns
    }

    /// What is to be sent.
    #[must_use]
    pub fn output(&self) -> &[u8] {
        &self.output
    }

    /// So many bytes of it were sent.
    pub fn sent(&mut self, bytes: usize) {
        self.output.drain(..bytes);
    }

    /// Bytes came.
    pub fn on_bytes(&mut self, bytes: &[u8], now_ns: u64) {
        self.heard_ns = now_ns;
        self.input.extend_from_slice(bytes);
    }

    /// Takes the answer to the sign-on, if it has come; after it, all that has no place yet is said again.
    ///
    /// # Errors
    /// If the connection is to be left.
    pub fn sign_on(&mut self) -> Result<(), Leave> {
        if self.at != At::SigningOn {
            return Ok(());
        }
        let Some((kind, payload, rest)) = frame::split(&self.input, NEWS_BYTES_MAX)? else { return Ok(()) };
        let (news, left) = (frame::read_news(kind, payload)?, rest.len());
        match news {
            DeskNews::SignedOn(signed_on) => self.on_signed_on(&signed_on),
            DeskNews::Ended(cut_off) => return Err(self.on_refused(cut_off)),
            _ => return Err(Leave::Nonsense),
        }
        self.input.drain(..self.input.len() - left);
        Ok(())
    }

    fn on_refused(&mut self, cut_off: CutOff) -> Leave {
        if cut_off == CutOff::OtherStream {
            (self.number, self.next, self.is_lost) = (0, 0, true);
        }
        Leave::Ended(cut_off)
    }

    fn on_signed_on(&mut self, signed_on: &DeskSignedOn) {
        self.at = At::SignedOn;
        self.number = signed_on.stream.get();
        self.next = signed_on.next.get();
        // A number beyond what a server takes is none that it can have heard of.
        self.last = self.last.max(signed_on.through.get().min(NUMBER_MAX));
        self.reached = Some(TraderNews::SignedOn {
            server: signed_on.server.get(),
            told: Position(signed_on.told.get()),
            cut_off: CutOff::of(signed_on.cut_off).unwrap_or_default(),
        });
        for Unplaced { number, kind, body } in &self.unplaced {
            frame::write_submit(&mut self.output, *number, *kind, body);
        }
    }

    /// Hands out what has come. Says how many items that was.
    ///
    /// # Errors
    /// If the connection is to be left; what was handed out before stands.
    pub fn hand_out(&mut self, mut on: impl FnMut(TraderNews<'_>)) -> Result<usize, Leave> {
        let signed_on = self.sign_on();
        if std::mem::take(&mut self.is_lost) {
            on(TraderNews::Lost);
        }
        if let Some(news) = self.reached.take() {
            on(news);
        }
        signed_on?;
        if !self.is_signed_on() {
            return Ok(0);
        }
        let input = std::mem::take(&mut self.input);
        let (mut rest, mut told) = (&input[..], 0);
        while let Some((kind, payload, after)) = frame::split(rest, NEWS_BYTES_MAX)? {
            rest = after;
            told += self.on_news(frame::read_news(kind, payload)?, &mut on)?;
        }
        let read = input.len() - rest.len();
        self.input = input;
        self.input.drain(..read);
        Ok(told)
    }

    /// An item of the trader. Numbers rise in the stream: what is not placed and has a smaller one will never be there under that number, and
    /// what has the same one and says something else is of another program of the same trader. Both are said again under new numbers.
    fn on_own(&mut self, ordered: &OrderedItem<'_>, on: &mut impl FnMut(TraderNews<'_>)) {
        let (number, item) = (ordered.item.name.number, &ordered.item);
        self.last = self.last.max(number.min(NUMBER_MAX));
        while let Some(first) = self.unplaced.pop_front_if(|first| first.number <= number) {
            let says_it =
                ordered.repeats.is_some() || (first.kind, &first.body[..]) == (item.kind, item.body);
            if first.number == number && says_it {
                return;
            }
            self.last += 1;
            on(TraderNews::Renumbered { from: first.number, to: self.last });
            let again = Unplaced { number: self.last, ..first };
            frame::write_submit(&mut self.output, again.number, again.kind, &again.body);
            self.unplaced.push_back(again);
        }
    }

    /// It is known what became of that number: nearly always the oldest.
    fn forget(&mut self, number: u64) {
        if let Ok(index) = self.unplaced.binary_search_by_key(&number, |unplaced| unplaced.number) {
            self.unplaced.remove(index);
        }
    }

    fn on_news(&mut self, news: DeskNews<'_>, on: &mut impl FnMut(TraderNews<'_>)) -> Result<usize, Leave> {
        match news {
            DeskNews::Block(packet) => return self.on_packet(packet, on),
            DeskNews::Placed { number, position } => {
                // What stands there, or was ordered since, may be of another program of the same trader: the stream shows.
                if position.is_some_and(|position| position.0 < self.next) {
                    self.forget(number);
                }
                on(TraderNews::Placed { number, position });
            }
            DeskNews::Refused { number, refusal } => {
                self.forget(number);
                on(TraderNews::Refused { number, refusal });
            }
            DeskNews::Book(bytes) => on(TraderNews::Book(ToldView::read(bytes).ok_or(Leave::Nonsense)?)),
            DeskNews::FeedState(bytes) => {
                let &[low, high, state, ..] = bytes else { return Err(Leave::Nonsense) };
                let shard = ShardId(u16::from_le_bytes([low, high]));
                on(TraderNews::Market { shard, state: MarketState::of(state).ok_or(Leave::Nonsense)? });
            }
            DeskNews::Ended(cut_off) => return Err(Leave::Ended(cut_off)),
            _ => {}
        }
        Ok(0)
    }

    fn on_packet(&mut self, packet: &[u8], on: &mut impl FnMut(TraderNews<'_>)) -> Result<usize, Leave> {
        let packet = Packet::read(packet).map_err(|_| Leave::Nonsense)?;
        let mut told = 0;
        for (position, record) in packet.messages() {
            if position < self.next {
                continue;
            }
            let ordered = OrderedItem::read(record)?;
            if position > self.next || ordered.position.0 != position {
                return Err(Leave::Nonsense);
            }
            self.next += 1;
            told += 1;
            if ordered.item.name.trader == self.trader {
                self.on_own(&ordered, on);
            }
            on(TraderNews::Item(ordered));
        }
        Ok(told)
    }
}

#[cfg(test)]
mod tests;
