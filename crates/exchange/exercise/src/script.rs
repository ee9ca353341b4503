//! Requests as text, and what became of them as text.
//!
//! ```text
//!  a = m1 buy 100 @ 10.00          an order named a; without a name it is called #n
//!  m1 sell 50 @ market ioc         also: fok, gtc, gtd 60 (until that time), opening, closing
//!  m1 buy 90 @ 10.00 show 10       an iceberg
//!  m1 buy 90 @ 10.00 min 50        at least 50 at once, or nothing
//!  m1 buy 90 @ 10.60 stop 10.50    waits for a trade at 10.50 or above
//!  m1 buy 90 @ 10.60 peg mid       follows the middle up to 10.60; also: peg best
//!  m1 buy 90 @ 10.00 post          post-only
//!  m1 buy 90 @ 10.00 stp both      meets itself: both, incoming, resting (cancel that one), decrement
//!  m1 amend a 80 @ 10.01           also: show 10, stop 10.40, day, gtc, gtd 60
//!  m1 cancel a
//!  m1 mass cancel                  also: buy, sell
//!
//!  time 60                         the exchange tells the time: seconds, or 09:30, or 2/09:30 on day 2
//!  phase opening                   also: continuous, volatility, closing, post, closed, halted
//!  rule step_max 5                 changes a rule, see `rule` below
//!  block m2, unblock m2, bust a b 10 @ 10.00 at 7.0, remove, add
//!  m1 phase halted                 a member tries what is not permitted
//!
//!  clock 60                        the stamp of the requests that follow, without telling the time
//!  book                            shows bids, offers (shown+hidden shares) and held orders
//!  auction                         shows what an auction would do
//!  deadline                        shows when the book has something to do
//!  restore                         continues with a book restored from a snapshot
//!  new step_max 5, lot 1           continues with an empty book whose rules are these
//! ```

use crate::checked::{CheckedBook, instrument};
use crate::script_parser::{command, rule};
use crate::telling::{OrderNames, tell_event, tell_indication, tell_outcome, tell_time};
use pares_book::{Book, Instrument, RestingOrder};
use pares_types::{
    ClientOrderId, Command, Event, GatewayId, InstrumentId, MemberId, OrderId, Outcome, Price, Request,
    RequestId, ShardId, Side, Timestamp,
};

/// The request a gateway would make of a member's command.
pub fn request(sequence: u64, member: u32, command: Command) -> Request {
    Request {
        id: RequestId::new(GatewayId(1), sequence),
        stamp: Timestamp(sequence),
        member: MemberId(member),
        client_order_id: ClientOrderId(1_000 + sequence),
        instrument: InstrumentId(1),
        shard: ShardId(0),
        command,
    }
}

/// Member 1 in `m1`, its session 3 in `m1.3`, which guards what it enters.
pub fn asker(word: &str) -> Option<(u32, Option<u16>)> {
    let (member, session) = word.split_once('.').map_or((word, None), |(member, of)| (member, Some(of)));
    let member = member.strip_prefix('m')?.parse().ok()?;
    Some((member, session.map(|of| of.parse().unwrap())))
}

/// A book to talk to.
pub struct Script<B> {
    /// The book.
    pub checked: CheckedBook<B>,
    sequence: u64,
    clock: Timestamp,
    names: OrderNames,
}

impl<B: Book> Script<B> {
    /// An empty book with room for 1,000 orders.
    #[expect(clippy::new_without_default, reason = "which book it is has to be said")]
    pub fn new() -> Self {
        Self::of(instrument(1_000))
    }

    /// An empty book of that instrument.
    pub fn of(instrument: Instrument) -> Self {
        Self {
            checked: CheckedBook::of(instrument),
            sequence: 0,
            clock: Timestamp(0),
            names: OrderNames::default(),
        }
    }

    /// A book to which these lines were said.
    pub fn after(lines: &[&str]) -> Self {
        let mut script = Self::new();
        for line in lines {
            script.say(line);
        }
        script
    }

    /// Says one line and returns what happened, the outcome last.
    pub fn say(&mut self, line: &str) -> Vec<String> {
        self.say_to(line, |_, _, _| {})
    }

    /// The same, and hands out the record of a request.
    pub fn say_to(&mut self, line: &str, record: impl FnOnce(&Request, &Outcome, &[Event])) -> Vec<String> {
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["book"] => self.show_book(),
            ["auction"] => vec![self.checked.book.indication().map_or("none".into(), tell_indication)],
            ["deadline"] => vec![tell_time(self.checked.book.deadline())],
            ["clock", time] => {
                self.clock = crate::script_parser::time(time);
                Vec::new()
            }
            ["restore"] => self.restore(),
            ["new", ..] => self.new_book(line.strip_prefix("new").unwrap()),
            [name, "=", ref words @ ..] => self.request(Some(name), words, record),
            ref words => self.request(None, words, record),
        }
    }

    /// The order of that name.
    pub fn id(&self, name: &str) -> OrderId {
        self.names.id(name)
    }

    fn request(
        &mut self,
        name: Option<&str>,
        words: &[&str],
        record: impl FnOnce(&Request, &Outcome, &[Event]),
    ) -> Vec<String> {
        self.sequence += 1;
        let asker = asker(words[0]);
        let words = if asker.is_some() { &words[1..] } else { words };
        let (member, session) = asker.unwrap_or_default();
        let mut request = request(self.sequence, member, command(words, &self.names));
        if let Some(session) = session {
            request.client_order_id = ClientOrderId::guarded(session, self.sequence);
        }
        if let ["time", time, ..] = words {
            self.clock = crate::script_parser::time(time);
        }
        request.stamp = self.clock;
        self.names.name(OrderId(request.id), name);
        let (events, outcome) = self.checked.apply(&request);
        record(&request, &outcome, &events);
        let mut lines: Vec<String> = events.iter().map(|event| tell_event(event, &self.names)).collect();
        lines.push(tell_outcome(&outcome, &request, &self.names));
        lines
    }

    fn restore(&mut self) -> Vec<String> {
        let book = &mut self.checked.book;
        let restored = B::restore(*book.instrument(), &book.snapshot()).unwrap();
        assert_eq!(restored.state_hash(), book.state_hash());
        *book = restored;
        Vec::new()
    }

    fn new_book(&mut self, rules: &str) -> Vec<String> {
        let mut changed = instrument(1_000);
        for words in rules.split(',').map(|rule| rule.split_whitespace().collect::<Vec<_>>()) {
            changed = changed.with_rule(rule(&words), false).unwrap();
        }
        self.checked = CheckedBook::of(changed);
        self.clock = Timestamp(0);
        Vec::new()
    }

    fn show_book(&self) -> Vec<String> {
        let mut lines = self.show_side(Side::Sell);
        lines.reverse();
        lines.append(&mut self.show_side(Side::Buy));
        self.checked.book.for_each_held(&mut |order| lines.push(self.show_held(order)));
        lines
    }

    fn show_side(&self, side: Side) -> Vec<String> {
        let mut levels: Vec<(Price, Vec<String>)> = Vec::new();
        self.checked.book.for_each_order(side, &mut |order| {
            if levels.last().is_none_or(|level| level.0 != order.price) {
                levels.push((order.price, Vec::new()));
            }
            levels.last_mut().unwrap().1.push(self.show_order(order));
        });
        let word = if side == Side::Buy { "buy " } else { "sell" };
        let show = |(price, orders): (Price, Vec<String>)| {
            format!("{word} {}: {}", crate::telling::money(price), orders.join(", "))
        };
        levels.into_iter().map(show).collect()
    }

    fn show_order(&self, order: &RestingOrder) -> String {
        let (name, member) = (self.names.of(order.order), order.member);
        let hidden = order.remaining.minus(order.shown);
        let peg = if order.is_pegged() { " pegged" } else { "" };
        if hidden.is_zero() {
            format!("{name} m{member} {}{peg}", order.shown)
        } else {
            format!("{name} m{member} {}+{hidden}", order.shown)
        }
    }

    fn show_held(&self, order: &RestingOrder) -> String {
        format!("held {} m{} {}", self.names.of(order.order), order.member, crate::telling::terms(order))
    }
}
