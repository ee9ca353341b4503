//! A broker's desks, shared by all fronts: the shipped rules of both ends, on connections that break; and the quote server, which is slow, silent and odd.
//!
//! ```text
//!   front ==words, in order, until the connection breaks; each end learns of that some time== desk --questions--> the stand-in of the quote server
//! ```
//! A desk that dies forgets the hits that no front has. Of every other one, each quote that it was given stands in the log in the end, once.

use std::collections::{BTreeMap, BTreeSet};

use pares_broker::{AuditEntry, AuditNote, StockSymbol, UserName};
use pares_front::{
    DeskCall, DeskCalls, DeskEffect, DeskNews, FrontNumber, QuoteFault, SharedDesk, SharedEffect, StandIn,
    StandInSettings, StandInWords, ToDesk, ToFront, ask_line, read_reply, reply_line,
};

use super::fronts::{DOWN_US, NOON_MS, SPEED, TURN_US};
use super::sites::{Event, Sites};
use super::{Broken, Defect, Verdict};

pub(super) const DESKS: usize = 2;
/// Of a thousand turns of a desk, in how many it dies, and in how many one of its connections breaks.
const DEATHS_PERMILLE: u64 = 4;
const BREAKS_PERMILLE: u64 = 8;
/// Of a thousand questions, how many have no good answer.
const BAD_PER_MILLE: u64 = 150;
/// How long a word is on its way, microseconds.
const WAY_US: (u64, u64) = (50, 3_000);
/// How long it takes an end to learn that the connection is no more, microseconds.
const NOTICE_US: (u64, u64) = (100, 40_000);
/// Numbers of desks' lives, which no front has.
const LIVES: u64 = 1 << 40;
/// What [`Defect::RenamesHits`] adds to a hit's count.
const RENAMED: u64 = 1 << 32;

/// A question to the quote server.
#[derive(Clone, Debug)]
pub(super) struct Question {
    hit: u64,
    symbol: StockSymbol,
    user: UserName,
    answer: Vec<u8>,
}

#[derive(Clone, Debug)]
pub(super) enum LineEvent {
    /// The desk sees that a front has connected.
    Opens,
    /// A word of the front's.
    ToDesk(ToDesk),
    /// A word of the desk's.
    ToFront(ToFront),
    /// The front's end learns that the line has ended.
    EndsAtFront { front: usize, life: u64, desk: usize },
    /// The desk's end does.
    EndsAtDesk { desk: usize, life: u64 },
}

/// A desk, up or down.
#[derive(Default)]
struct DeskPlace {
    /// None while it is down.
    desk: Option<SharedDesk>,
    /// Counts its beginnings and ends.
    life: u64,
    /// Its clock is ahead by so much.
    ahead_ms: u64,
    /// Keys of the quotes that this life was given.
    keys: Vec<String>,
}

/// A connection that is whole.
struct Line {
    front: usize,
    desk: usize,
    /// When the latest word to the desk, and to the front, arrives, microseconds.
    arrives_us: [u64; 2],
}

pub(super) struct Desks {
    places: Vec<DeskPlace>,
    lines: BTreeMap<FrontNumber, Line>,
    /// Connections so far, and lives of desks.
    count: u64,
    lives: u64,
    server: StandIn,
}

impl Desks {
    pub(super) fn new(seed: u64) -> Self {
        let settings = StandInSettings { seed, is_instant: false, bad_per_mille: BAD_PER_MILLE };
        let places = (0..DESKS).map(|_| DeskPlace::default()).collect();
        Self { places, lines: BTreeMap::new(), count: 0, lives: 0, server: StandIn::new(settings) }
    }

    /// Whether every desk is up and waits for nothing.
    pub(super) fn are_settled(&self) -> bool {
        let is_settled = |desk: &SharedDesk| desk.unnoted() == 0 && desk.desk().is_idle();
        self.places.iter().all(|place| place.desk.as_ref().is_some_and(is_settled))
    }

    pub(super) fn unsettled(&self) -> String {
        let desks = self.places.iter().filter_map(|place| place.desk.as_ref());
        let desks = desks.filter(|desk| desk.unnoted() > 0 || !desk.desk().is_idle());
        desks.map(|desk| format!("\n  desk: {desk:?}")).collect()
    }

    /// Every quote that a living desk was given is in the log. That none is there twice is looked at for all of them.
    pub(super) fn check(&self, log: &[AuditEntry]) -> Verdict {
        let notes = log.iter().flat_map(|entry| &entry.record.notes);
        let keys: BTreeSet<&str> = notes
            .filter_map(|note| match note {
                AuditNote::Hit { quote } => Some(quote.key.as_str()),
                _ => None,
            })
            .collect();
        let given = self.places.iter().flat_map(|place| &place.keys);
        match given.into_iter().find(|key| !keys.contains(key.as_str())) {
            Some(key) => Err((Broken::Lost, format!("the hit {key} is not in the log"))),
            None => Ok(()),
        }
    }
}

impl Sites {
    fn desks(&mut self) -> &mut Desks {
        &mut self.fronts().desks
    }

    fn desk_ms(&mut self, desk: usize) -> u64 {
        NOON_MS + self.desks().places[desk].ahead_ms + self.now_us() * SPEED / 1_000
    }

    pub(super) fn begin_desks(&mut self) {
        for desk in 0..self.fronts.as_ref().map_or(0, |_| DESKS) {
            self.begin_desk(desk);
        }
    }

    fn begin_desk(&mut self, desk: usize) {
        let ahead_ms = self.random.below(3_000);
        let desks = self.desks();
        desks.lives += 1;
        let (began, place) = (SharedDesk::new(LIVES + desks.lives), &mut desks.places[desk]);
        let life = place.life + 1;
        *place = DeskPlace { desk: Some(began), life, ahead_ms, keys: Vec::new() };
        self.note(|| format!("desk {desk} begins"));
        self.schedule(TURN_US, Event::Desk { desk, life });
    }

    /// A desk has a turn: it begins, dies, loses a connection, or continues.
    pub(super) fn desk_turn(&mut self, desk: usize, life: u64) {
        if self.desks().places[desk].life != life {
            return;
        }
        if self.desks().places[desk].desk.is_none() {
            return self.begin_desk(desk);
        }
        if !self.faults.over && self.random.chance(DEATHS_PERMILLE) {
            return self.desk_dies(desk);
        }
        if !self.faults.over && self.random.chance(BREAKS_PERMILLE) {
            let line = self.lines_of(desk).first().copied();
            line.into_iter().for_each(|line| self.cut_line(line));
        }
        self.schedule(TURN_US, Event::Desk { desk, life });
        let now_ms = self.desk_ms(desk);
        self.with_desk(desk, |desk| desk.tick(now_ms));
    }

    fn lines_of(&mut self, desk: usize) -> Vec<FrontNumber> {
        let lines = self.desks().lines.iter().filter(|(_, line)| line.desk == desk);
        lines.map(|(number, _)| *number).collect()
    }

    fn desk_dies(&mut self, desk: usize) {
        self.note(|| format!("desk {desk} dies"));
        self.summary.faults += 1;
        let place = &mut self.desks().places[desk];
        let life = place.life + 1;
        *place = DeskPlace { life, ..DeskPlace::default() };
        self.lines_of(desk).into_iter().for_each(|line| self.cut_line(line));
        let after = self.random.between(DOWN_US.0, DOWN_US.1);
        self.schedule(after, Event::Desk { desk, life });
    }

    /// A front connects to the desks that it has no line to.
    pub(super) fn dial_desks(&mut self, front: usize) {
        for desk in 0..DESKS {
            let is_up = self.desks().places[desk].desk.is_some();
            if !is_up || self.fronts().places[front].lines.contains_key(&desk) {
                continue;
            }
            let desks = self.desks();
            desks.count += 1;
            let line = desks.count;
            desks.lines.insert(line, Line { front, desk, arrives_us: [0; 2] });
            self.fronts().places[front].lines.insert(desk, line);
            self.travels(line, true, LineEvent::Opens);
        }
    }

    /// A word goes along a connection, behind those before it.
    fn travels(&mut self, line: FrontNumber, is_to_desk: bool, event: LineEvent) {
        let (now_us, after_us) = (self.now_us(), self.random.between(WAY_US.0, WAY_US.1));
        let Some(whole) = self.desks().lines.get_mut(&line) else { return };
        let arrives_us = &mut whole.arrives_us[usize::from(!is_to_desk)];
        *arrives_us = (now_us + after_us).max(*arrives_us);
        let after_us = *arrives_us - now_us;
        self.schedule(after_us, Event::Line { line, event });
    }

    /// What is on its way is lost, and either end learns of it some time.
    pub(super) fn cut_line(&mut self, line: FrontNumber) {
        let Some(Line { front, desk, .. }) = self.desks().lines.remove(&line) else { return };
        let lives = (self.fronts().places[front].life, self.desks().places[desk].life);
        let ends = [
            LineEvent::EndsAtFront { front, life: lives.0, desk },
            LineEvent::EndsAtDesk { desk, life: lives.1 },
        ];
        for event in ends {
            let after_us = self.random.between(NOTICE_US.0, NOTICE_US.1);
            self.schedule(after_us, Event::Line { line, event });
        }
    }

    pub(super) fn line_happens(&mut self, line: FrontNumber, event: LineEvent) {
        match event {
            LineEvent::EndsAtFront { front, life, desk } => {
                let place = &mut self.fronts().places[front];
                if place.life == life && place.lines.get(&desk) == Some(&line) {
                    place.lines.remove(&desk);
                    self.call_desks(front, |calls| calls.lost(desk));
                }
            }
            LineEvent::EndsAtDesk { desk, life } => {
                if self.desks().places[desk].life == life {
                    self.with_desk(desk, |desk| desk.gone(line));
                }
            }
            event => self.word_arrives(line, event),
        }
    }

    /// A word has come, if its connection is whole.
    fn word_arrives(&mut self, line: FrontNumber, event: LineEvent) {
        let Some(Line { front, desk, .. }) = self.desks().lines.get(&line) else { return };
        let (front, desk) = (*front, *desk);
        let now_ms = self.desk_ms(desk);
        match event {
            LineEvent::Opens => self.with_desk(desk, |desk| desk.come(line)),
            LineEvent::ToDesk(ToDesk::Noted { count }) => {
                // So that a hit that was renamed is found in the log, and not by what its desk waits for.
                let word = ToDesk::Noted { count: count % RENAMED };
                self.with_desk(desk, |desk| desk.heard(line, word, now_ms));
            }
            LineEvent::ToDesk(word) => {
                self.with_desk(desk, |desk| desk.heard(line, word, now_ms));
            }
            LineEvent::ToFront(word) => self.call_desks(front, |calls| calls.heard(desk, word)),
            LineEvent::EndsAtFront { .. } | LineEvent::EndsAtDesk { .. } => {}
        }
    }

    /// Does something with a front's end, and then what it wants done.
    pub(super) fn call_desks(&mut self, front: usize, does: impl FnOnce(&mut DeskCalls)) {
        let calls = &mut self.fronts().places[front].calls;
        does(calls);
        let said = calls.take_calls();
        self.carry_out_calls(front, said);
    }

    // Apart, as with a front's effects.
    fn carry_out_calls(&mut self, front: usize, calls: Vec<DeskCall>) {
        let now_ms = self.front_ms(front);
        for call in calls {
            match call {
                DeskCall::Say(desk, word) => {
                    if let Some(line) = self.fronts().places[front].lines.get(&desk).copied() {
                        self.travels(line, true, LineEvent::ToDesk(word));
                    }
                }
                DeskCall::News(news) => self.with_front(front, |place| {
                    let Some(front) = &mut place.front else { return };
                    match news {
                        DeskNews::Answer(hit, answer) => front.quote(hit, answer, now_ms),
                        DeskNews::Hit(brought) => front.take_hit(brought, now_ms),
                    }
                }),
            }
        }
    }

    /// Does something with a desk, and then what it wants done.
    fn with_desk(&mut self, at: usize, does: impl FnOnce(&mut SharedDesk)) {
        let Some(desk) = &mut self.desks().places[at].desk else { return };
        does(desk);
        for effect in desk.take_effects() {
            match effect {
                SharedEffect::Server(DeskEffect::Ask { hit, symbol, user }) => {
                    self.ask_server(at, hit, symbol, user);
                }
                SharedEffect::Server(_) => {}
                SharedEffect::Say(line, word) => {
                    if let Some(word) = self.said(word) {
                        self.travels(line, false, LineEvent::ToFront(word));
                    }
                }
            }
        }
    }

    /// What becomes of a desk's word.
    fn said(&self, word: ToFront) -> Option<ToFront> {
        match (self.plan.defect, word) {
            (Some(Defect::ForgetsHits), ToFront::Hit { .. }) => None,
            (Some(Defect::RenamesHits), ToFront::Hit { count, quote }) => {
                Some(ToFront::Hit { count: count + RENAMED, quote })
            }
            (_, word) => Some(word),
        }
    }

    /// Asks the quote server, which answers some time, or never.
    fn ask_server(&mut self, desk: usize, hit: u64, symbol: StockSymbol, user: UserName) {
        let now_ms = self.desk_ms(desk);
        let desks = self.desks();
        let life = desks.places[desk].life;
        let said = desks.server.answer(ask_line(symbol, &user).trim_end().as_bytes(), now_ms);
        let key = format!("key{}", desks.server.hits());
        let answer = match said.words {
            StandInWords::Quote(quote) => reply_line(&pares_broker::StockQuote { key, ..quote }).into_bytes(),
            StandInWords::Text(text) => text.into_bytes(),
            StandInWords::Silence => return,
        };
        let question = Question { hit, symbol, user, answer };
        let after = said.delay_ms * 1_000 / SPEED + self.random.between(50, 400);
        self.schedule(after, Event::Quoted { desk, life, question });
    }

    pub(super) fn quoted(&mut self, desk: usize, life: u64, question: &Question) {
        if self.desks().places[desk].life != life {
            return;
        }
        let Question { hit, symbol, user, answer } = question;
        let quote = match answer.is_empty() {
            true => Err(QuoteFault::Closed),
            false => read_reply(answer, *symbol, user),
        };
        let key = quote.as_ref().ok().map(|quote| quote.key.clone());
        self.desks().places[desk].keys.extend(key);
        let now_ms = self.desk_ms(desk);
        self.with_desk(desk, |desk| desk.quoted(*hit, quote, now_ms));
    }
}
