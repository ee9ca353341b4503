//! What a trader's terminal knows.

use std::collections::{BTreeMap, VecDeque};

use pares_desk::holdings::Holdings;
use pares_desk::item::{ItemBody, OrderedItem};
use pares_desk::view::ToldView;
use pares_member::TraderNews;
use pares_member::sources::MarketState;
use pares_types::{ClientOrderId, InstrumentId, Reply, ShardId, Status};

use super::super::text::{body_text, line};
use super::command::Ticket;

/// Lines kept of each list.
const LINES_MAX: usize = 200;

/// An own order that works.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnOrder {
    pub(super) instrument: InstrumentId,
    pub(super) left: u64,
    /// As it was typed here; another trader's, or one of before, is known by its name only.
    pub(super) ticket: Option<Ticket>,
}

/// All of it.
#[derive(Debug, Default)]
pub(super) struct TerminalState {
    pub(super) trader: u32,
    pub(super) server: Option<u16>,
    pub(super) books: BTreeMap<(u16, u16), ToldView>,
    pub(super) market: BTreeMap<ShardId, MarketState>,
    pub(super) selected: usize,
    pub(super) orders: BTreeMap<ClientOrderId, OwnOrder>,
    /// Orders that were sent from here.
    pub(super) tickets: BTreeMap<ClientOrderId, Ticket>,
    pub(super) holdings: Holdings,
    pub(super) trades: VecDeque<String>,
    pub(super) messages: VecDeque<String>,
    pub(super) input: String,
    /// The last word about what was typed.
    pub(super) word: String,
}

fn push(lines: &mut VecDeque<String>, line: String) {
    if lines.len() == LINES_MAX {
        lines.pop_front();
    }
    lines.push_back(line);
}

impl TerminalState {
    pub(super) fn new(trader: u32) -> Self {
        Self { trader, ..Self::default() }
    }

    /// The book that is shown.
    pub(super) fn book(&self) -> Option<&ToldView> {
        self.books.values().nth(self.selected)
    }

    /// Its instrument.
    pub(super) fn instrument(&self) -> Option<InstrumentId> {
        self.book().map(|book| InstrumentId(book.key.1.into()))
    }

    /// Shows the next book, or the one before.
    pub(super) fn select(&mut self, by: isize) {
        let count = self.books.len().max(1);
        self.selected = self.selected.checked_add_signed(by).unwrap_or(count - 1) % count;
    }

    /// An order was sent.
    pub(super) fn on_entered(&mut self, name: ClientOrderId, ticket: Ticket) {
        if self.tickets.len() == LINES_MAX {
            self.tickets.pop_first();
        }
        self.tickets.insert(name, ticket);
        self.say(format!("order {name} sent"));
    }

    /// The symbol of an instrument, or its number.
    pub(super) fn symbol(&self, instrument: InstrumentId) -> String {
        let book = self.books.values().find(|book| u32::from(book.key.1) == instrument.0);
        book.map_or_else(|| instrument.to_string(), |book| book.view.symbol.clone())
    }

    /// Says something about what was typed.
    pub(super) fn say(&mut self, word: String) {
        self.word = word;
    }

    pub(super) fn on_news(&mut self, news: TraderNews<'_>) {
        match news {
            TraderNews::SignedOn { server, .. } => self.server = Some(server),
            TraderNews::Away => {
                self.server = None;
                self.market.values_mut().for_each(|state| *state = MarketState::Stale);
            }
            TraderNews::Lost => {
                self.orders.clear();
                self.holdings = Holdings::default();
                self.messages.clear();
                self.trades.clear();
            }
            TraderNews::Book(book) => drop(self.books.insert(book.key, book)),
            TraderNews::Market { shard, state } => drop(self.market.insert(shard, state)),
            TraderNews::Refused { number, refusal } => {
                self.word = format!("number {number} was refused: {}", refusal.meaning());
            }
            TraderNews::Placed { .. } | TraderNews::Renumbered { .. } => {}
            TraderNews::Item(item) => self.on_item(&item),
        }
    }

    fn on_item(&mut self, item: &OrderedItem<'_>) {
        let Ok(body) = item.item.says() else { return };
        match (item.repeats, &body) {
            (Some(_), _) => {}
            (None, ItemBody::Report { .. }) => {
                if let Some(reply) = body.reply() {
                    self.on_reply(&reply);
                    self.holdings.on_reply(&reply);
                    push(&mut self.trades, body_text(&body));
                }
            }
            // Between two others.
            (None, ItemBody::Message { to, .. }) if !self.concerns(to.0, item.item.name.trader.0) => {}
            _ => push(&mut self.messages, line(item)),
        }
    }

    fn concerns(&self, to: u32, from: u32) -> bool {
        to == 0 || to == self.trader || from == self.trader
    }

    fn on_reply(&mut self, reply: &Reply) {
        let (name, instrument, left) = match reply {
            Reply::Answer(of) if of.status == Status::Resting || of.status == Status::Held => {
                (of.client_order_id, of.instrument, of.remaining.0)
            }
            Reply::Trade(of) => (of.client_order_id, of.instrument, of.remaining.0),
            Reply::Cancelled(of) => (of.client_order_id, of.instrument, 0),
            _ => return,
        };
        match left {
            0 => drop(self.orders.remove(&name)),
            left => {
                let ticket = self.tickets.get(&name).copied();
                self.orders.insert(name, OwnOrder { instrument, left, ticket });
            }
        }
    }
}
