//! Mirrors in the simulator: both ends as they ship, on two machines, with a connection between them that loses what is on its way.
//!
//! Either process dies at any call into its world, the receiver's machine loses power, frames are damaged, a source's log is lost and another begins in its place. At any
//! time what a mirror has is the beginning of a log that its source had, byte for byte, and it calls nothing durable that its source did not. As long as nobody lost
//! anything, a recorder's mirror tells of nothing that the gateways' mirrors lack.

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use pares_config::NodeId;
use pares_flow::Random;
use pares_log::{Config, Durability, LogWriter, Offset};
use pares_roles::mirror::{LogName, MirrorEnded, MirrorReceiver, MirrorSource, node_of};
use pares_roles::world::{File, World};
use pares_types::PublisherId;

use crate::memory::host::{Host, Killed};
use crate::memory::log::Log;
use crate::memory::machine::Machine;
use crate::memory::seam::Seam;
use crate::memory::writer::Writer;

const LOGS: [LogName; 3] = [LogName::Gateway(0), LogName::Gateway(1), LogName::Recorder(0)];
/// The process that sends, on one machine, and the one that receives, on the other.
const PROCESS: NodeId = NodeId::Publisher(PublisherId(0));
const STEPS: u32 = 400;
const NOTE: &str = "shut-out/venue-0";

struct Run {
    random: Random,
    here: Machine,
    there: Machine,
    writers: BTreeMap<LogName, Writer>,
    /// Where the last record of each ends.
    ends: BTreeMap<LogName, u64>,
    /// All logs that a source ever had under a name.
    sources: BTreeMap<LogName, Vec<Log>>,
    receiver: Option<MirrorReceiver<Host>>,
    source: Option<MirrorSource<Host>>,
    sent: VecDeque<Vec<u8>>,
    answers: VecDeque<Vec<u8>>,
    /// Something was lost: recorders' mirrors may tell of what gateways' lack.
    is_lost: bool,
    kills: u64,
    rounds: u64,
}

impl Run {
    fn new(seed: u64) -> Self {
        let [here, there] = [0; 2].map(|_| Machine::new(Seam::default(), false));
        let mut run = Self {
            random: Random::new(seed),
            here,
            there,
            writers: BTreeMap::new(),
            ends: BTreeMap::new(),
            sources: BTreeMap::new(),
            receiver: None,
            source: None,
            sent: VecDeque::new(),
            answers: VecDeque::new(),
            is_lost: false,
            kills: 0,
            rounds: 0,
        };
        LOGS.into_iter().for_each(|log| run.begin_log(log));
        run
    }

    fn begin_log(&mut self, log: LogName) {
        self.writers.remove(&log);
        self.here.lock().logs.remove(&node_of(log));
        let durability = if self.random.one_in(2) { Durability::Os } else { Durability::Disk };
        let host = Host::new(&self.here, node_of(log));
        self.writers
            .insert(log, host.write_log(node_of(log), Config::default().durability(durability)).unwrap());
        self.ends.insert(log, 0);
        self.sources.entry(log).or_default().push(self.here.log(node_of(log)).unwrap());
    }

    /// A gateway's records say nothing; a recorder's how far the gateways' logs were.
    fn append(&mut self, log: LogName) {
        for _ in 0..self.random.between(1, 10) {
            let ends = LOGS[..2].iter().flat_map(|log| self.ends[log].to_le_bytes());
            let mut payload: Vec<u8> = ends.collect();
            payload.resize(16 + self.random.below(4_000) as usize, 7);
            let writer = self.writers.get_mut(&log).unwrap();
            writer.append(&payload).unwrap();
            self.ends.insert(log, writer.tail().0);
        }
        // Who records a request has read it: it is published.
        LOGS.iter().for_each(|log| _ = self.writers.get_mut(log).unwrap().publish());
    }

    /// Has a process do something in which it may be killed; one that was killed is gone, and its connection.
    fn attempt(&mut self, is_receiver: bool, act: impl FnOnce(&mut Self) -> Result<(), MirrorEnded>) {
        match catch_unwind(AssertUnwindSafe(|| act(self))) {
            Ok(Ok(())) => {}
            Ok(Err(MirrorEnded::Broken(_))) => self.cut(),
            Ok(Err(MirrorEnded::Hopeless(error))) => panic!("{error}"),
            Err(payload) if payload.is::<Killed>() => self.bury(is_receiver, false),
            Err(payload) => resume_unwind(payload),
        }
    }

    fn cut(&mut self) {
        (self.source, self.sent, self.answers) = (None, VecDeque::new(), VecDeque::new());
    }

    fn bury(&mut self, is_receiver: bool, power: bool) {
        self.cut();
        self.kills += 1;
        if !is_receiver {
            return;
        }
        self.there.lock().fate(PROCESS).life += u32::from(power);
        self.receiver = None;
        let logs: Vec<Log> = self.there.lock().logs.values().cloned().collect();
        for log in logs {
            log.lock().process_died(&mut self.random, true);
            if power {
                log.lock().power_failed(&mut self.random);
            }
        }
        self.is_lost |= power;
    }

    fn connect(&mut self) {
        self.cut();
        self.attempt(true, |run| {
            let host = Host::new(&run.there, PROCESS);
            let receiver = run.receiver.get_or_insert_with(|| MirrorReceiver::new(&host));
            run.source = Some(MirrorSource::new(&Host::new(&run.here, PROCESS), Box::new(|| LOGS.to_vec())));
            receiver.ask(LOGS, |frame| run.answers.push_back(frame.to_vec()))
        });
    }

    fn turn_of_source(&mut self) {
        self.attempt(false, |run| {
            let (Some(source), sent) = (&mut run.source, &mut run.sent) else { return Ok(()) };
            for answer in run.answers.drain(..) {
                source.on_frame(&answer)?;
            }
            source.turn(|frame| sent.push_back(frame.to_vec())).map(|_| ())
        });
    }

    fn turn_of_receiver(&mut self, most: usize) {
        self.attempt(true, |run| {
            let (Some(receiver), answers) = (&mut run.receiver, &mut run.answers) else { return Ok(()) };
            for _ in 0..most {
                let Some(frame) = run.sent.pop_front() else { break };
                receiver.on_frame(&frame, |answer| answers.push_back(answer.to_vec()))?;
            }
            run.rounds = run.rounds.max(receiver.rounds());
            Ok(())
        });
    }

    fn befall(&mut self) {
        let log = self.random.pick(&LOGS);
        match self.random.below(40) {
            0..10 => self.append(log),
            10..12 => _ = self.writers.get_mut(&log).unwrap().sync().unwrap(),
            12 => _ = self.writers.get_mut(&log).unwrap().begin_segment(),
            13 => {
                let writer = self.writers.get_mut(&log).unwrap();
                writer.release_before(Offset(self.random.below(writer.tail().0)));
            }
            14..16 => {
                let (machine, after) =
                    (self.random.pick(&[true, false]), u32::try_from(self.random.below(60)).unwrap());
                let machine = if machine { &self.here } else { &self.there };
                machine.lock().fate(PROCESS).killed_in = Some(after);
            }
            16 => self.cut(),
            17 if self.random.one_in(4) => self.bury(true, true),
            18 if self.random.one_in(4) => {
                self.begin_log(log);
                self.is_lost = true;
            }
            19 => {
                // In the head of a stretch's first record.
                if let Some(frame) = self.sent.back_mut().filter(|frame| frame[0] == 17) {
                    frame[12 + self.random.index(8)] ^= 1 << self.random.below(8);
                }
            }
            20 => self.note(),
            21..24 => self.pass(150_000_000),
            24..27 => self.connect(),
            27..33 => self.turn_of_source(),
            _ => {
                let most = self.random.between(1, 12) as usize;
                self.turn_of_receiver(most);
            }
        }
    }

    fn pass(&self, ns: u64) {
        for machine in [&self.here, &self.there] {
            machine.lock().now_ns += ns;
        }
    }

    fn note(&mut self) {
        let host = Host::new(&self.here, NodeId::Replayer(pares_types::ReplayerId(0)));
        let text = self.random.bytes(40);
        host.create_file(Path::new(NOTE)).unwrap().append(&text).unwrap();
    }

    fn check(&self) {
        for log in LOGS {
            let Some(mirror) = self.there.log(node_of(log)) else { continue };
            let mirror = mirror.lock();
            let is_beginning = |source: &Log| {
                let source = source.lock();
                let (from, to) = (mirror.released as usize, mirror.written as usize);
                let durable = source.durable.max(mirror.released + 64);
                source.bytes.get(from..to) == mirror.bytes.get(from..to) && mirror.durable <= durable
            };
            assert!(mirror.durable <= mirror.written, "{log} calls durable what it lacks");
            assert!(self.sources[&log].iter().any(is_beginning), "{log} has what no source had");
        }
        self.check_cause();
    }

    /// What the last record of the recorder's mirror tells of is there.
    fn check_cause(&self) {
        let recorder = Host::supervisor(&self.there).read_log_from_start(node_of(LOGS[2]));
        let Some(mut reader) = recorder.ok().filter(|_| !self.is_lost) else { return };
        let mut last = None;
        while let Some(record) = pares_log::LogReader::next(&mut reader).unwrap() {
            last = record.payload.first_chunk::<16>().copied();
        }
        for (log, end) in LOGS.iter().zip(last.iter().flat_map(|last| last.as_chunks::<8>().0)) {
            let has = self.there.log(node_of(*log)).map_or(0, |log| log.lock().written);
            assert!(has >= u64::from_le_bytes(*end), "{log} lacks what was recorded of it");
        }
    }

    /// Without faults everything is there in the end.
    fn settle(&mut self) {
        for machine in [&self.here, &self.there] {
            machine.lock().fate(PROCESS).killed_in = None;
        }
        for log in LOGS {
            self.append(log);
        }
        for turn in 0..2_000 {
            if self.source.is_none() || self.receiver.is_none() {
                self.connect();
            }
            self.turn_of_source();
            self.turn_of_receiver(usize::MAX);
            self.pass(10_000_000);
            if turn % 50 == 49 && self.is_whole() {
                return;
            }
        }
        panic!("the mirrors do not come to have everything");
    }

    fn is_whole(&self) -> bool {
        let text = |machine: &Machine| machine.lock().files.bytes(Path::new(NOTE));
        let same = |log: &LogName| {
            let [source, mirror] = [&self.here, &self.there].map(|machine| machine.log(node_of(*log)));
            let (Some(source), Some(mirror)) = (source, mirror) else { return false };
            let (source, mirror) = (source.lock(), mirror.lock());
            source.written == mirror.written && source.durable <= mirror.durable
        };
        LOGS.iter().all(same) && text(&self.here) == text(&self.there)
    }
}

#[test]
fn a_mirror_is_the_beginning_of_its_source_whatever_befalls() {
    let (mut kills, mut rounds) = (0, 0);
    for seed in 0..60 {
        let mut run = Run::new(seed);
        let ran = catch_unwind(AssertUnwindSafe(|| {
            for step in 0..STEPS {
                run.befall();
                if step % 8 == 0 {
                    run.check();
                }
            }
            run.settle();
            run.check();
        }));
        assert!(ran.is_ok(), "seed {seed}");
        kills += run.kills;
        rounds += run.rounds;
    }
    assert!(kills > 200 && rounds > 150, "{kills} kills, {rounds} rounds");
}
