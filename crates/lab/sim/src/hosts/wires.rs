//! What connects the hosts: messages of orderers, which are lost, late, repeated and overtake each other, and connections of mirrors, which are none of this but end at
//! any byte.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use pares_flow::Random;
use pares_roles::orderer::Peers;
use pares_types::HostId;

use crate::Bug;
use crate::scenario::US;

/// What most messages need.
const USUAL_NS: (u64, u64) = (40 * US, 400 * US);
/// What a message needs that takes another way.
const LATE_NS: u64 = 5_000 * US;

/// Two hosts, in the direction in which something goes.
pub(super) type Way = (HostId, HostId);

/// One direction of a connection: frames arrive in order.
#[derive(Default)]
pub(super) struct Line {
    frames: VecDeque<(u64, Vec<u8>)>,
    last_ns: u64,
}

/// A connection over which the first host of a pair sends its logs to the second, who opens it.
#[derive(Default)]
pub(super) struct Pipe {
    pub(super) number: u64,
    /// It ends behind what is on its way.
    pub(super) is_over: bool,
    stretches: Line,
    answers: Line,
}

/// All of it.
pub(super) struct Wires {
    pub(super) now_ns: u64,
    pub(super) random: Random,
    pub(super) loss_percent: u64,
    /// In which directions nothing passes.
    pub(super) cuts: BTreeSet<Way>,
    bug: Option<Bug>,
    /// By receiver, time of arrival and number.
    messages: BTreeMap<(HostId, u64, u64), (HostId, Vec<u8>)>,
    sent: u64,
    /// Whose connections have ended, by who learns of it.
    ended: BTreeMap<HostId, Vec<HostId>>,
    pub(super) pipes: BTreeMap<Way, Pipe>,
}

/// One set of wires for all.
pub(super) type SharedWires = Rc<RefCell<Wires>>;

impl Wires {
    pub(super) fn new(random: Random, loss_percent: u64, bug: Option<Bug>) -> SharedWires {
        let (messages, ended, pipes) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (now_ns, sent, cuts) = (0, 0, BTreeSet::new());
        let wires = Self { now_ns, random, loss_percent, cuts, bug, messages, sent, ended, pipes };
        Rc::new(RefCell::new(wires))
    }

    fn send(&mut self, way: Way, mut message: Vec<u8>) {
        if self.bug == Some(Bug::PlaceProposed) {
            call_committed(&mut message);
        }
        let copies = 1 + u64::from(self.random.percent(self.loss_percent / 3));
        for _ in 0..copies {
            let is_late = self.random.percent(self.loss_percent);
            let delay_ns = self.random.between(USUAL_NS.0, if is_late { LATE_NS } else { USUAL_NS.1 });
            if !self.cuts.contains(&way) && !self.random.percent(self.loss_percent) {
                self.sent += 1;
                let key = (way.1, self.now_ns + delay_ns, self.sent);
                self.messages.insert(key, (way.0, message.clone()));
            }
        }
    }

    fn take(&mut self, to: HostId) -> Option<(HostId, Vec<u8>)> {
        let key = *self.messages.range((to, 0, 0)..=(to, self.now_ns, u64::MAX)).next()?.0;
        self.messages.remove(&key)
    }

    /// The orderer of a host begins: what came before is nobody's.
    pub(super) fn begin(&mut self, host: HostId) {
        while self.take(host).is_some() {}
        self.ended.remove(&host);
    }

    /// Those who can be reached learn that the orderer of a host is gone.
    pub(super) fn end(&mut self, host: HostId, others: impl Iterator<Item = HostId>) {
        for other in others.filter(|&other| other != host && !self.cuts.contains(&(host, other))) {
            self.ended.entry(other).or_default().push(host);
        }
    }

    pub(super) fn pipe(&mut self, way: Way) -> &mut Pipe {
        self.pipes.entry(way).or_default()
    }

    /// The second host connects to the first. Says under which number.
    pub(super) fn connect(&mut self, way: Way) -> u64 {
        let pipe = self.pipe(way);
        *pipe = Pipe { number: pipe.number + 1, ..Pipe::default() };
        pipe.number
    }

    /// A connection ends, somewhere within what is on its way.
    pub(super) fn hang_up(&mut self, way: Way) {
        let Self { random, pipes, .. } = self;
        let pipe = pipes.entry(way).or_default();
        for line in [&mut pipe.stretches, &mut pipe.answers] {
            let kept = random.below(line.frames.len() as u64 + 1) as usize;
            line.frames.truncate(kept);
        }
        pipe.is_over = true;
    }

    /// A frame is missing between others: what a sender in error would do.
    pub(super) fn skip_frame(&mut self, way: Way) {
        let Self { random, pipes, .. } = self;
        let frames = &mut pipes.entry(way).or_default().stretches.frames;
        if !frames.is_empty() {
            let at = random.index(frames.len());
            frames.remove(at);
        }
    }

    /// Sends a frame of a connection, to its second host or from it.
    pub(super) fn push(&mut self, way: Way, is_answer: bool, frame: &[u8]) {
        let at_ns = self.now_ns + self.random.between(USUAL_NS.0, USUAL_NS.1);
        let pipe = self.pipe(way);
        if pipe.is_over {
            return;
        }
        let line = if is_answer { &mut pipe.answers } else { &mut pipe.stretches };
        line.last_ns = line.last_ns.max(at_ns);
        line.frames.push_back((line.last_ns, frame.to_vec()));
    }

    /// What has arrived of a connection; or nothing, and whether it is over.
    pub(super) fn pop(&mut self, way: Way, is_answer: bool) -> Result<Vec<u8>, bool> {
        let direction = if is_answer { (way.1, way.0) } else { way };
        let (now_ns, is_cut) = (self.now_ns, self.cuts.contains(&direction));
        let pipe = self.pipe(way);
        let line = if is_answer { &mut pipe.answers } else { &mut pipe.stretches };
        let front = line.frames.pop_front_if(|(at_ns, _)| *at_ns <= now_ns && !is_cut);
        front.map(|(_, frame)| frame).ok_or(pipe.is_over && line.frames.is_empty())
    }
}

/// Where a message of the replicated log, behind the byte that says it is one, has its kind, and the place up to which all is committed (`pares-cluster`, `wire.rs`).
const AT_KIND: usize = 1 + 1;
const AT_COMMIT: usize = 1 + 56;

/// Who receives entries takes all of them for committed.
fn call_committed(message: &mut [u8]) {
    if message[0] == 0 && message[AT_KIND] == 1 {
        message[AT_COMMIT..AT_COMMIT + 8].copy_from_slice(&u64::MAX.to_le_bytes());
    }
}

/// A host's end of the orderers' connections.
pub(super) struct End(pub(super) HostId, pub(super) SharedWires);

impl Peers for End {
    fn send(&mut self, to: HostId, message: Vec<u8>) {
        self.1.borrow_mut().send((self.0, to), message);
    }

    fn receive(&mut self) -> Option<(HostId, Vec<u8>)> {
        self.1.borrow_mut().take(self.0)
    }

    fn ended(&mut self) -> Option<HostId> {
        self.1.borrow_mut().ended.get_mut(&self.0)?.pop()
    }
}
