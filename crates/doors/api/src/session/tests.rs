//! Each follower receives all that he asked for, once and in order; and the gateway is not asked to tell much more than that.

use std::ops::Range;

use futures_util::FutureExt as _;
use pares_exercise::replies;
use pares_random::Random;
use pares_types::{Cancelled, Reply};
use pares_wire::frame::{ClientFrame, RESUME_NOTHING, decode_client, split, write_reply, write_resumed};
use tokio::sync::mpsc::error::TryRecvError;

use super::*;
use crate::followers::{ROOM, ROOM_OF_A_PAGE};

const SHARD: ShardId = ShardId(3);

#[test]
fn one_who_follows_a_session_that_has_just_ended_does_not_wait() {
    let session = Session::new((MemberId(7), 1), 0, Duration::ZERO);
    session.end();
    let mut following = session.follow(&[(SHARD, 1)], ROOM);
    assert_eq!(following.told.try_recv(), Err(TryRecvError::Disconnected));
}

fn message(number: u64) -> Reply {
    // What it says does not matter.
    Reply::Cancelled(Cancelled { shard: SHARD, ..replies::cancelled(1, number) })
}

/// A gateway with a record, which hears what is said to it a turn later.
struct Gateway {
    session: Arc<Session>,
    /// The number that is used next.
    next: u64,
    /// Told from the record in a turn.
    portion: u64,
    telling: Option<u64>,
    is_withheld: bool,
    on_its_way: Vec<u8>,
    /// Messages that it read in its record.
    read: u64,
}

impl Gateway {
    fn at(next: u64, portion: u64) -> Self {
        let session = Session::new((MemberId(7), 1), 0, Duration::from_secs(5));
        session.on_signed_on(200);
        Self { session, next, portion, telling: None, is_withheld: false, on_its_way: Vec::new(), read: 0 }
    }

    fn hear(&mut self, frame: ClientFrame, out: &mut Vec<u8>) {
        let ClientFrame::Resume { next, .. } = frame else { return };
        match next {
            RESUME_NOTHING => {
                self.is_withheld |= self.telling.take().is_some();
                write_resumed(out, SHARD, 0, Reason::Requested);
            }
            next => {
                assert!(self.telling.is_none(), "it would be ignored");
                self.is_withheld = next > 0;
                if next > 0 {
                    self.telling = Some(next)
                } else {
                    write_resumed(out, SHARD, self.next, Reason::None)
                }
            }
        }
    }

    fn tell(&mut self, out: &mut Vec<u8>) {
        let Some(from) = self.telling else { return };
        let to = self.next.min(from + self.portion);
        (from..to).for_each(|number| write_reply(out, &message(number)));
        (self.read, self.telling) = (self.read + (to - from), Some(to));
        if to == self.next {
            (self.telling, self.is_withheld) = (None, false);
            write_resumed(out, SHARD, self.next, Reason::None);
        }
    }

    /// Something happens.
    fn happen(&mut self, out: &mut Vec<u8>) {
        if !self.is_withheld {
            write_reply(out, &message(self.next));
        }
        self.next += 1;
    }

    /// Hears, and tells a portion, and then so much happens. Whether anything was said at all.
    fn turn(&mut self, happens: u64) -> bool {
        let (mut said, mut out) = (Vec::new(), Vec::new());
        self.session.line().take_out(&mut said);
        let heard = std::mem::replace(&mut self.on_its_way, said);
        let mut rest = &heard[..];
        while let Some((kind, body, behind)) = split(rest).unwrap() {
            self.hear(decode_client(kind, body).unwrap(), &mut out);
            rest = behind;
        }
        self.tell(&mut out);
        (0..happens).for_each(|_| self.happen(&mut out));
        self.session.take_in(&mut Inbox::of(&out), &mut Vec::new()).unwrap();
        !(out.is_empty() && self.on_its_way.is_empty())
    }

    /// Takes turns until nothing more is sent.
    fn settle(&mut self) {
        while self.turn(0) {}
    }

    /// The connection breaks, and there is another one.
    fn reconnect(&mut self) {
        self.session.line().on_lost();
        (self.telling, self.is_withheld) = (None, false);
        self.on_its_way.clear();
        self.session.on_signed_on(200);
    }
}

/// One who follows from a number on, and what he received.
struct Reader {
    following: Following,
    told: Range<u64>,
    is_live: bool,
}

impl Reader {
    fn from(number: u64, gateway: &Gateway, room: usize) -> Self {
        let following = gateway.session.follow(&[(SHARD, number)], room);
        Self { following, told: number..number, is_live: false }
    }

    /// Reads so much at most. Whether there was as much.
    fn read(&mut self, most: usize) -> bool {
        (0..most).all(|_| match self.following.recv().now_or_never() {
            Some(Some(Followed::Message(_, number, _))) => {
                assert_eq!(number, self.told.end, "each once, in order");
                self.told.end += 1;
                true
            }
            Some(Some(Followed::Live(_, next))) => {
                assert!(!std::mem::replace(&mut self.is_live, true));
                if self.told.end == 0 {
                    self.told = next..next;
                }
                assert_eq!(next, self.told.end);
                true
            }
            Some(other) => panic!("{other:?}"),
            None => false,
        })
    }

    fn count(&self) -> u64 {
        self.told.end - self.told.start
    }
}

#[test]
fn slow_reader_costs_one_read_per_record() {
    let mut gateway = Gateway::at(600_000, 256);
    let mut slow = Reader::from(1, &gateway, ROOM);
    while !slow.is_live {
        gateway.turn(0);
        slow.read(100);
    }
    assert_eq!(slow.told, 1..600_000);
    let read = gateway.read;
    assert!(read < 610_000, "{read}");
}

#[test]
fn satisfied_request_stops_replay_live_ones_continue() {
    let mut gateway = Gateway::at(200_000, 256);
    let mut live = Reader::from(0, &gateway, ROOM);
    gateway.settle();
    for asked in 1..=10 {
        let mut page = Reader::from(1, &gateway, ROOM_OF_A_PAGE);
        while page.count() < 10 {
            gateway.turn(1);
            page.read(10 - page.count() as usize);
        }
        drop(page);
        gateway.turn(1);
        gateway.settle();
        let read = gateway.read;
        assert!(read < asked * 2_000, "{read}");
    }
    live.read(usize::MAX);
    assert_eq!(live.told, 200_000..gateway.next);
}

#[test]
fn one_who_has_no_room_does_not_hold_up_others() {
    let mut gateway = Gateway::at(100_000, 256);
    let mut stuck = Reader::from(1, &gateway, 1_024);
    let mut other = Reader::from(50_000, &gateway, ROOM);
    gateway.settle();
    other.read(usize::MAX);
    assert_eq!((other.told.clone(), other.is_live), (50_000..100_000, true));
    assert!(gateway.read < 55_000, "{}", gateway.read);
    stuck.read(1_024);
    gateway.settle();
    assert!(stuck.read(1_000), "as soon as he reads he is told on");
}

#[test]
fn each_subscriber_gets_all_once_with_minimal_reads() {
    for seed in 0..64 {
        let mut draw = Random::new(seed);
        let mut gateway = Gateway::at(3_000, 8);
        let (mut readers, mut told) = (Vec::<Reader>::new(), 0);
        for turn in 0..4_000 {
            let happens = u64::from(draw.below(4) == 0);
            gateway.turn(happens);
            if readers.len() < 4 && draw.below(50) == 0 {
                let from = draw.below(gateway.next);
                readers.push(Reader::from(from, &gateway, 128 << draw.below(3)));
            }
            for reader in &mut readers {
                reader.read(draw.below(16) as usize);
            }
            if !readers.is_empty() && draw.below(400) == 0 {
                told += readers.swap_remove(draw.below(readers.len() as u64) as usize).count();
            }
            if turn % 1_000 == 999 {
                gateway.reconnect();
            }
        }
        for _ in 0..5_000 {
            gateway.turn(0);
            readers.iter_mut().for_each(|reader| _ = reader.read(64));
        }
        let is_told = |reader: &Reader| reader.is_live && reader.told.end == gateway.next;
        assert!(readers.iter().all(is_told), "seed {seed}");
        told += readers.iter().map(Reader::count).sum::<u64>();
        assert!(gateway.read <= told, "{} for {told}, seed {seed}", gateway.read);
    }
}
