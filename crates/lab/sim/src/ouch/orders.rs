//! What the program asks, and asks again while it is not answered.

use pares_types::Side;

use super::packets::{Message, put_packet};
use super::{OuchClient, Phase};
use crate::scenario::MS;

/// Before something is asked again, on another connection.
const RETRY_NS: u64 = 12 * MS;
/// Requests left unanswered before more is asked.
const OPEN_MAX: usize = 16;
/// The price around which orders come in, in ten-thousandths.
const MIDDLE: u64 = 500_000;

/// A request that is not answered.
pub(super) struct Open {
    message: Vec<u8>,
    retry_at_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) instrument: u64,
    pub(super) side: Side,
    pub(super) quantity: u64,
    /// A byte of it was made another one: whatever comes of it is right, once.
    pub(super) is_wild: bool,
    /// Its number was used again, for [`OTHER`].
    pub(super) is_repeated: bool,
}

/// Instrument, side and quantity of what a number is used for again.
const OTHER: (u64, Side, u64) = (1, Side::Buy, 99);

impl Asked {
    /// Whether it may have been entered so. An instrument elsewhere is refused in the record, for no shares. A number that was refused beside the
    /// stream is free, and what uses it again is entered.
    pub(super) fn allows(&self, terms: (u64, Side, u64)) -> bool {
        let own = (self.instrument, self.side, self.quantity);
        let is_refused = (terms.1, terms.2) == (self.side, 0);
        self.is_wild || terms == own || is_refused || self.is_repeated && terms == OTHER
    }
}

impl OuchClient {
    pub(super) fn go_on(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        if self.phase != Phase::On || self.is_calm {
            return;
        }
        let burst = if self.random.chance(150) { self.random.between(2, 6) } else { 1 };
        for _ in 0..burst {
            if self.left > 0 && self.open.len() < OPEN_MAX {
                self.left -= 1;
                self.ask(now_ns, out);
            }
        }
        match self.random.below(100) {
            0..=3 => {
                self.questions.push_back(self.sent);
                put_packet(out, 'U', b"Q");
            }
            4..=5 => put_packet(out, 'R', b""),
            6 => put_packet(out, '+', b"hello"),
            // Off and on again.
            7 => [b'D', b'E'].map(|kind| {
                let number = self.next_number();
                put_packet(out, 'U', &[&[kind][..], &number.to_be_bytes(), b"FIRM\0\0"].concat());
            })[0],
            _ => {}
        }
    }

    /// Whether something waits that is to be sent again.
    pub(super) fn waits_too_long(&self, now_ns: u64) -> bool {
        self.open.values().any(|open| open.retry_at_ns <= now_ns)
    }

    fn next_number(&mut self) -> u32 {
        self.number += 1;
        self.sent = self.number;
        self.number
    }

    /// All that is not answered, in the order of its numbers.
    pub(super) fn send_again(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        for (number, open) in &mut self.open {
            open.retry_at_ns = now_ns + RETRY_NS;
            put_packet(out, 'U', &open.message);
            self.sent = *number;
            self.counts.sent_again += 1;
        }
    }

    /// A message of the stream, told for the first time.
    pub(super) fn on_told(&mut self, message: &Message) {
        if matches!(message.kind, 'A' | 'U' | 'J' | 'X') && self.open.remove(&message.number()).is_some() {
            self.counts.answered += 1;
        }
    }

    fn ask(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        let (message, number) = match self.random.below(100) {
            0..=13 if self.number > 2 => (self.cancel(), None),
            14..=19 if self.number > 2 => (self.modify(), None),
            20..=31 if self.number > 2 => self.replace(),
            32..=34 => self.mass_cancel(),
            35..=36 if self.elsewhere.is_some() => self.order_elsewhere(),
            _ => self.order(now_ns),
        };
        put_packet(out, 'U', &message);
        if let Some(number) = number {
            self.open.insert(number, Open { message, retry_at_ns: now_ns + RETRY_NS });
        }
    }

    /// An order of the last few.
    fn recent(&mut self) -> u32 {
        self.number - self.random.below(u64::from(self.number).min(8)) as u32
    }

    fn cancel(&mut self) -> Vec<u8> {
        let quantity = if self.random.chance(600) { 0 } else { self.random.between(1, 15) as u32 };
        [&b"X"[..], &self.recent().to_be_bytes(), &quantity.to_be_bytes()].concat()
    }

    fn modify(&mut self) -> Vec<u8> {
        let quantity = self.random.between(1, 15) as u32;
        [&b"M"[..], &self.recent().to_be_bytes(), b"B", &quantity.to_be_bytes(), b"\0\0"].concat()
    }

    fn replace(&mut self) -> (Vec<u8>, Option<u32>) {
        let (original, number) = (self.recent(), self.next_number());
        let (quantity, price) = (self.random.between(1, 20) as u32, self.price());
        let terms = if self.random.chance(200) { b"0YN" } else { b" YN" };
        let parts: [&[u8]; 8] = [
            b"U",
            &original.to_be_bytes(),
            &number.to_be_bytes(),
            &quantity.to_be_bytes(),
            &price.to_be_bytes(),
            terms,
            b"my order      ",
            b"\0\0",
        ];
        (parts.concat(), Some(number))
    }

    fn mass_cancel(&mut self) -> (Vec<u8>, Option<u32>) {
        let number = self.next_number();
        let symbol = if self.random.chance(500) { " ".repeat(8) } else { format!("{:<8}", self.symbol().0) };
        let side: &[u8] = if self.random.chance(500) { b"\0\x03\x02\x1bB" } else { b"\0\0" };
        let message = [&b"C"[..], &number.to_be_bytes(), b"FIRM", symbol.as_bytes(), side].concat();
        (message, Some(number))
    }

    fn price(&mut self) -> u64 {
        MIDDLE + self.random.below(12) * 100 - 600
    }

    /// An instrument of its shard, by symbol or by number.
    fn symbol(&mut self) -> (String, u64) {
        let instrument = self.random.between(self.instruments.0, self.instruments.1);
        let text =
            if self.random.chance(500) { format!("#{instrument}") } else { format!("SIM{instrument}") };
        (text, instrument)
    }

    fn order(&mut self, now_ns: u64) -> (Vec<u8>, Option<u32>) {
        let (symbol, instrument) = self.symbol();
        self.order_in(&symbol, instrument, now_ns)
    }

    /// Its own shard refuses it.
    fn order_elsewhere(&mut self) -> (Vec<u8>, Option<u32>) {
        let instrument = self.elsewhere.expect("asked for where there is one");
        self.order_in(&format!("#{instrument}"), instrument, 0)
    }

    fn order_in(&mut self, symbol: &str, instrument: u64, now_ns: u64) -> (Vec<u8>, Option<u32>) {
        let number = self.next_number();
        let side = if self.random.chance(500) { Side::Buy } else { Side::Sell };
        let (quantity, price) = (self.random.between(1, 20), self.price());
        let ((time, tags), symbol) = (self.terms(now_ns), format!("{symbol:<8}"));
        self.asked.insert(number, Asked { instrument, side, quantity, is_wild: false, is_repeated: false });
        let length = u16::try_from(tags.len()).expect("few tags").to_be_bytes();
        let parts: [&[u8]; 11] = [
            b"O",
            &number.to_be_bytes(),
            if side == Side::Buy { b"B" } else { b"S" },
            &(quantity as u32).to_be_bytes(),
            symbol.as_bytes(),
            &price.to_be_bytes(),
            &[time],
            b"YPNN",
            b"my order      ",
            &length,
            &tags,
        ];
        (parts.concat(), Some(number))
    }

    /// Time in force and appendage.
    fn terms(&mut self, now_ns: u64) -> (u8, Vec<u8>) {
        match self.random.below(16) {
            0 => (b'3', Vec::new()),
            1 => (b'4', Vec::new()),
            2 => (b'1', Vec::new()),
            3 => (b'6', [&[9, 202][..], &(now_ns + 3 * MS).to_be_bytes()].concat()),
            4 => (b'0', vec![5, 5, 0, 0, 0, 1]),
            5 => (b'0', vec![2, 6, if self.random.chance(500) { b'R' } else { b'M' }]),
            6..=8 => (b'0', vec![2, 29, b"OWDB"[self.random.index(4)]]),
            9 => (b'0', [&[9, 200][..], &self.price().to_be_bytes()].concat()),
            10 => (b'0', vec![2, 12, b'P']),
            _ => (b'0', Vec::new()),
        }
    }

    /// What no program should send on its own connection: garbage, half a packet, a second login, a type that no client has, a number that was used for
    /// something else, an order with a byte of it another one.
    pub(super) fn send_something_wrong(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        if self.phase != Phase::On {
            return;
        }
        match self.random.below(6) {
            0 => out.extend((0..self.random.between(1, 60)).map(|_| self.random.next_u64() as u8)),
            1 => {
                let (message, _) = self.order(now_ns);
                let begun = out.len();
                put_packet(out, 'U', &message);
                out.truncate(begun + self.random.index(message.len()));
            }
            2 => out.extend_from_slice(&self.login(1)),
            3 => put_packet(out, 'S', b"?"),
            4 => return self.repeat_with_other_terms(out),
            _ => return self.send_wildly(now_ns, out),
        }
        self.is_spoilt = true;
    }

    /// It does not rise, so it is ignored; unless its number was refused beside the stream, and is free.
    fn repeat_with_other_terms(&mut self, out: &mut Vec<u8>) {
        if let Some(asked) = self.asked.get_mut(&self.sent) {
            asked.is_repeated = true;
            let parts: [&[u8]; 5] = [
                b"O",
                &self.sent.to_be_bytes(),
                b"B\0\0\0\x63SIM1    \0\0\0\0\0\x07\xa1\x20",
                b"0YPNNmy order      ",
                b"\0\0",
            ];
            put_packet(out, 'U', &parts.concat());
        }
    }

    fn send_wildly(&mut self, now_ns: u64, out: &mut Vec<u8>) {
        let (mut message, number) = self.order(now_ns);
        let at = 5 + self.random.index(message.len() - 5);
        message[at] = self.random.next_u64() as u8;
        put_packet(out, 'U', &message);
        if let Some(asked) = number.and_then(|number| self.asked.get_mut(&number)) {
            asked.is_wild = true;
        }
    }
}
