//! What the engine asks, and asks again while it is not answered.

use pares_fix::time::stamp;
use pares_types::{InstrumentId, NewOrder, Price, Quantity, SelfTrade, Side, TimeInForce};

use super::{FixClient, Phase};
use crate::scenario::MS;

/// Before something is asked again.
const RETRY_NS: u64 = 10 * MS;
/// Requests left unanswered before more is asked.
const OPEN_MAX: usize = 16;
/// The price around which orders come in, in whole units.
const MIDDLE: u64 = 50;

/// An application message as it was sent.
pub(super) struct Sent {
    pub(super) kind: String,
    pub(super) fields: String,
    pub(super) sent_ns: u64,
}

/// A request that is not answered.
pub(super) struct Open {
    kind: &'static str,
    fields: String,
    pub(super) retry_at_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    Order(InstrumentId, NewOrder),
    Replacement(Price, Quantity),
    Cancel,
    Mass(InstrumentId),
}

/// Terms of an order beyond side, price and shares: in FIX, and as the exchange has them.
type Terms = (&'static str, fn(&mut NewOrder));

const TERMS: [Terms; 5] = [
    ("59=3|", |order| order.time_in_force = TimeInForce::Ioc),
    ("59=4|", |order| order.time_in_force = TimeInForce::Fok),
    ("59=1|", |order| order.time_in_force = TimeInForce::Gtc),
    ("59=1|111=1|", |order| {
        (order.time_in_force, order.display) = (TimeInForce::Gtc, Quantity(1));
    }),
    ("20001=1|", |order| order.self_trade = SelfTrade::CancelResting),
];

impl FixClient {
    /// Does what is due: asks again, asks something new.
    pub(super) fn go_on(&mut self, now_ns: u64, is_calm: bool, out: &mut Vec<u8>) {
        self.ask_for_gap(now_ns, out);
        if self.phase != Phase::On {
            return;
        }
        let due = self.open.iter().filter(|(_, open)| open.retry_at_ns <= now_ns);
        for name in due.map(|(&name, _)| name).collect::<Vec<_>>() {
            let open = self.open.get_mut(&name).expect("found above");
            open.retry_at_ns = now_ns + RETRY_NS;
            let mark = if self.random.chance(700) { "97=Y|" } else { "" };
            let (kind, fields) = (open.kind, format!("{mark}{}", open.fields));
            self.say(now_ns, kind, &fields, out);
        }
        self.ask_for_trades(now_ns, is_calm, out);
        if is_calm {
            return;
        }
        if self.left > 0 && self.open.len() < OPEN_MAX {
            self.ask(now_ns, out);
        }
        self.chatter(now_ns, out);
    }

    fn ask(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        self.left -= 1;
        self.names += 1;
        let name = self.names;
        let (kind, fields) = match self.random.below(100) {
            0..=14 if self.names > 2 => ("F", self.change(now_ns, false)),
            15..=26 if self.names > 2 => ("G", self.change(now_ns, true)),
            27..=28 if self.dictionary.begin_string == "FIX.4.4" => ("q", self.mass_cancel(now_ns)),
            _ => ("D", self.order(now_ns)),
        };
        let fields = format!("11={name}|{fields}");
        self.say(now_ns, kind, &fields, out);
        self.open.insert(name, Open { kind, fields, retry_at_ns: now_ns + RETRY_NS });
    }

    /// The time, and what FIX 4.2 wants to know besides.
    fn dated(&self, now_ns: u64) -> String {
        let handling = if self.dictionary.begin_string == "FIX.4.2" { "21=1|" } else { "" };
        format!("{handling}60={}|", String::from_utf8_lossy(&stamp(now_ns)))
    }

    fn order(&mut self, now_ns: u64) -> String {
        let instrument = InstrumentId(1 + self.random.below(u64::from(self.instruments)) as u32);
        let side = if self.random.chance(500) { Side::Buy } else { Side::Sell };
        let (quantity, cents) = (self.random.between(1, 20), self.random.below(12));
        let price = Price((MIDDLE * 10_000 + cents * 100 - 600) as i64);
        let mut order = NewOrder::limit(side, price, Quantity(quantity));
        let how = TERMS.get(self.random.index(10)).map_or("", |(how, terms)| {
            terms(&mut order);
            how
        });
        self.asked.insert(self.names, Asked::Order(instrument, order));
        let side = if side == Side::Buy { 1 } else { 2 };
        let (whole, part) = (price.0 / 10_000, price.0 % 10_000);
        let dated = self.dated(now_ns);
        format!(
            "48={}|22=8|55=X|54={side}|38={quantity}|40=2|44={whole}.{part:04}|{how}{dated}",
            instrument.0
        )
    }

    fn change(&mut self, now_ns: u64, is_replacement: bool) -> String {
        let of = self.names - 1 - self.random.below((self.names - 1).min(8));
        let (quantity, cents) = (self.random.between(1, 20), self.random.below(12));
        let price = Price((MIDDLE * 10_000 + cents * 100) as i64);
        let asked =
            if is_replacement { Asked::Replacement(price, Quantity(quantity)) } else { Asked::Cancel };
        self.asked.insert(self.names, asked);
        let terms = if is_replacement { format!("40=2|44=50.{cents:02}|") } else { String::new() };
        let dated = if is_replacement {
            self.dated(now_ns)
        } else {
            format!("60={}|", String::from_utf8_lossy(&stamp(now_ns)))
        };
        format!("41={of}|55=X|54=1|38={quantity}|{terms}{dated}")
    }

    fn mass_cancel(&mut self, now_ns: u64) -> String {
        let instrument = 1 + self.random.below(u64::from(self.instruments));
        self.asked.insert(self.names, Asked::Mass(InstrumentId(instrument as u32)));
        format!("530=1|48={instrument}|22=8|55=X|{}", self.dated(now_ns))
    }

    /// What uses up numbers and asks nothing: tests, statuses, old messages once more.
    fn chatter(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        match self.random.below(100) {
            0..=3 => {
                for _ in 0..self.random.between(100, 900) {
                    self.say(now_ns, "1", "112=P|", out);
                }
            }
            4..=6 if self.names > 0 => {
                let name = 1 + self.random.below(self.names);
                self.say(now_ns, "H", &format!("11={name}|55=X|54=1|"), out);
            }
            7..=8 if self.next_in > 2 => {
                let from = self.random.between(1, self.next_in - 1);
                self.say(now_ns, "2", &format!("7={from}|16=0|"), out);
            }
            _ => {}
        }
    }

    /// What no engine should send on its own session: garbage, wrong sums, floods of questions.
    pub(super) fn send_something_wrong(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        if self.phase != Phase::On {
            return;
        }
        let start = out.len();
        match self.random.below(5) {
            0 => out.extend((0..self.random.between(1, 60)).map(|_| self.random.next_u64() as u8)),
            1 => {
                // A wrong sum: the number is used, and nobody has heard it.
                self.say(now_ns, "1", "112=P|", out);
                let at = out.len() - 3;
                out[at] = if out[at] == b'0' { b'1' } else { b'0' };
            }
            2 => (0..self.random.between(50, 300)).for_each(|_| self.say(now_ns, "2", "7=1|16=0|", out)),
            3 => self.say(now_ns, "D", "11=01|", out),
            _ => {
                self.say(now_ns, "0", "", out);
                let cut = start + self.random.index(out.len() - start);
                out.truncate(cut);
            }
        }
    }
}
