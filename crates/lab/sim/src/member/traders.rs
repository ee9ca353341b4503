//! Traders: the rules that ship, on connections that break, with something to say.

use pares_desk::frame::{self, Refusal, kind};
use pares_desk::item::{ItemBody, OrderedItem, TraderId};
use pares_desk::trader::{Trader, TraderNews, TraderOptions};
use pares_types::{InstrumentId, Position, Price, Quantity};

use super::check::TOLD;
use super::run::{Event, Member};
use crate::scenario::MS;
use crate::{Bug, Verdict, must};

/// Between two looks of a trader at what there is to do, ns.
const ACT_NS: u64 = 15 * MS;
/// A message so long fills a connection that nobody reads.
const LONG_BYTES: usize = 6_000;

pub(super) struct TraderEnd {
    pub(super) rules: Trader,
    pub(super) connection: Option<usize>,
    turn: u16,
    left: u64,
    /// It reads nothing before.
    pub(super) reads_from_ns: u64,
    /// The next position it is to be told.
    next: u64,
    /// The highest number it has sent to any server.
    said: u64,
}

impl TraderEnd {
    pub(super) fn new(trader: u32, submissions: u64) -> Self {
        let rules = Trader::new(TraderId(trader), TraderOptions::default());
        let turn = u16::try_from(trader).expect("few traders");
        Self { rules, connection: None, turn, left: submissions, reads_from_ns: 0, next: 0, said: 0 }
    }
}

/// What a trader receives, as far as it is to be checked.
enum Told {
    SignedOn(u64),
    Item(Vec<u8>),
    Placed(u64, Option<Position>),
    Refused(u64, Refusal),
    Lost,
}

impl Told {
    fn of(news: &TraderNews<'_>) -> Option<Self> {
        Some(match news {
            TraderNews::SignedOn { told, .. } => Self::SignedOn(told.0),
            TraderNews::Item(item) => {
                let mut record = Vec::new();
                item.write(&mut record);
                Self::Item(record)
            }
            TraderNews::Placed { number, position } => Self::Placed(*number, *position),
            TraderNews::Refused { number, refusal } => Self::Refused(*number, *refusal),
            TraderNews::Lost => Self::Lost,
            _ => return None,
        })
    }
}

impl Member<'_> {
    pub(super) fn reads(&self, trader: usize) -> bool {
        self.traders[trader].reads_from_ns <= self.now_ns
    }

    /// A trader does what is due: looks for a server, says something.
    pub(super) fn act(&mut self, trader: usize) -> Verdict {
        let now_ns = self.now_ns;
        if !self.reads(trader) {
            // Its program is stopped.
            self.push(self.traders[trader].reads_from_ns, Event::Act { trader });
            return Ok(());
        }
        if self.traders[trader].rules.is_silent(now_ns)
            && let Some(connection) = self.traders[trader].connection
        {
            self.hang_up(connection);
            self.lose(trader, connection);
        }
        if self.traders[trader].connection.is_none() {
            self.look_for_server(trader);
        }
        let burst = if self.random.chance(100) { 6 } else { 1 };
        for _ in 0..burst {
            self.say_something(trader);
        }
        self.flush(trader);
        let pause_ns = self.random.between(1, 2 * ACT_NS);
        self.push(now_ns + pause_ns, Event::Act { trader });
        Ok(())
    }

    fn look_for_server(&mut self, trader: usize) {
        let server = self.traders[trader].turn % self.plan.servers;
        self.traders[trader].turn += 1;
        if let Some(connection) = self.connect(trader, server) {
            let one = &mut self.traders[trader];
            one.connection = Some(connection);
            one.rules.begin(self.now_ns);
        }
    }

    fn say_something(&mut self, trader: usize) {
        if self.traders[trader].left == 0 {
            return;
        }
        self.traders[trader].left -= 1;
        let (to, instrument) = (TraderId(self.random.below(4) as u32), InstrumentId(1));
        let (text, price) = ("x".repeat(LONG_BYTES), Price(self.random.below(10_000) as i64));
        let body = match self.random.below(5) {
            0 => ItemBody::Message { to, text: &text },
            1 => ItemBody::Message { to, text: "short" },
            2 => ItemBody::Note { instrument, text: "note" },
            3 => ItemBody::QuoteRequest { to, instrument, quantity: Quantity(100) },
            _ => {
                let (bid, offer) = ((price, Quantity(10)), (price, Quantity(0)));
                ItemBody::IndicativeQuote { to, instrument, bid, offer, answers: 0 }
            }
        };
        let rules = &mut self.traders[trader].rules;
        let number = rules.submit(&body).expect("no text is that long");
        let id = rules.trader();
        self.reference.note_submitted(id, number, &body);
        self.note("trader {} submits {}", &[id.0.into(), number]);
    }

    /// Sends what a trader has to say.
    pub(super) fn flush(&mut self, trader: usize) {
        let one = &mut self.traders[trader];
        let Some(connection) = one.connection else { return };
        let bytes = one.rules.output().to_vec();
        one.rules.sent(bytes.len());
        let bytes = if self.plan.bug == Some(Bug::SayOnce) { one.without_repeats(&bytes) } else { bytes };
        self.send_to_server(connection, &bytes);
    }

    pub(super) fn on_bytes_to(&mut self, trader: usize, connection: usize, bytes: &[u8]) -> Verdict {
        let now_ns = self.now_ns;
        let one = &mut self.traders[trader];
        if one.connection != Some(connection) {
            return Ok(());
        }
        one.rules.on_bytes(bytes, now_ns);
        let mut told = Vec::new();
        let left = one.rules.hand_out(|news| told.extend(Told::of(&news)));
        for told in told {
            self.on_told(trader, told)?;
        }
        if let Err(why) = left {
            self.trace.say(now_ns, &format!("trader {} leaves: {why}", trader + 1));
            self.hang_up(connection);
            self.lose(trader, connection);
        }
        self.flush(trader);
        Ok(())
    }

    fn on_told(&mut self, trader: usize, told: Told) -> Verdict {
        let id = self.traders[trader].rules.trader();
        match told {
            Told::SignedOn(told) => {
                self.summary.signed_on += 1;
                must(told <= self.reference.next(), TOLD, || {
                    format!("trader {id} is told that {told} positions are told")
                })?;
            }
            Told::Item(record) => {
                let next = self.traders[trader].next;
                let item = OrderedItem::read(&record).expect("just written");
                self.reference.on_told(id, next, &item)?;
                self.traders[trader].next += 1;
                self.summary.told += 1;
            }
            Told::Placed(number, position) => {
                self.summary.placed += 1;
                self.reference.on_placed(id, number, position)?;
            }
            Told::Refused(number, refusal) => {
                self.summary.refused += 1;
                self.trace.say(self.now_ns, &format!("trader {id}: {number} is refused: {refusal:?}"));
                self.reference.excused.insert((id, number));
            }
            Told::Lost => self.traders[trader].next = 0,
        }
        Ok(())
    }

    /// A trader finds that its connection is gone.
    pub(super) fn lose(&mut self, trader: usize, connection: usize) {
        let one = &mut self.traders[trader];
        if one.connection == Some(connection) {
            one.connection = None;
            one.rules.leave();
        }
    }

    pub(super) fn pause_reading(&mut self, trader: usize, for_ns: u64) {
        self.note("trader {} reads nothing for {} ms", &[trader as u64 + 1, for_ns / MS]);
        self.traders[trader].reads_from_ns = self.now_ns + for_ns;
        self.push(self.now_ns + for_ns, Event::Carry);
    }

    /// The last trader, who only follows, begins again at the first position, and reads nothing for a while: what waits for it fills
    /// its connection.
    pub(super) fn follow_anew(&mut self, for_ns: u64) {
        let trader = self.traders.len() - 1;
        if let Some(connection) = self.traders[trader].connection {
            self.hang_up(connection);
            self.lose(trader, connection);
        }
        self.traders[trader] = TraderEnd::new(self.plan.traders, 0);
        self.look_for_server(trader);
        self.flush(trader);
        self.pause_reading(trader, for_ns);
    }

    /// Whether every trader has said what it has to, has seen it placed, and has received all of the stream.
    pub(super) fn are_traders_done(&self) -> bool {
        let next = self.reference.next();
        self.traders.iter().all(|one| one.left == 0 && one.rules.unplaced() == 0 && one.next == next)
    }
}

impl TraderEnd {
    fn without_repeats(&mut self, bytes: &[u8]) -> Vec<u8> {
        let (mut rest, mut kept) = (bytes, Vec::new());
        while let Ok(Some((sent, payload, after))) = frame::split(rest, frame::REQUEST_BYTES_MAX) {
            let whole = &rest[..rest.len() - after.len()];
            let number = match frame::read_request(sent, payload) {
                Ok(frame::DeskRequest::Submit { number, .. }) if sent == kind::SUBMIT => number,
                _ => u64::MAX,
            };
            if number > self.said {
                kept.extend_from_slice(whole);
                self.said = if number == u64::MAX { self.said } else { number };
            }
            rest = after;
        }
        kept
    }
}
