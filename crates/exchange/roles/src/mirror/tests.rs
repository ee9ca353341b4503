//! Both ends over mapped logs, with everything that comes between them.

use std::path::Path;

use pares_log::{Config, LogWriter, Offset};
use pares_mirror::MirrorMessage;

use super::source::{FILES_MAX, GO_NS, TAKEN_NS};
use super::*;
use crate::testing::TestWorld;
use crate::world::{File, World};

const G: LogName = LogName::Gateway(0);
const R: LogName = LogName::Recorder(0);

/// A source and a receiver; what one sent and the other did not get yet.
struct Pair {
    here: TestWorld,
    there: TestWorld,
    source: MirrorSource<TestWorld>,
    receiver: MirrorReceiver<TestWorld>,
    frames: Vec<Vec<u8>>,
    scope: Scope,
}

impl Pair {
    fn new() -> Self {
        let (here, there) = (TestWorld::new(), TestWorld::new());
        let (source, receiver) =
            (MirrorSource::new(&here, Box::new(|| vec![G, R])), MirrorReceiver::new(&there));
        Self { here, there, source, receiver, frames: Vec::new(), scope: Scope::Whole }
    }

    fn write(&self, log: LogName, records: u32) -> impl LogWriter + use<> {
        let config = Config::default().segment_bytes(4096);
        let mut writer = self.here.write_log(node_of(log), config).unwrap();
        for n in 0..records {
            writer.append(&[n as u8; 100]).unwrap();
        }
        writer.publish();
        writer
    }

    fn put(&self, path: &str, text: &[u8]) {
        self.here.create_file(Path::new(path)).unwrap().append(text).unwrap();
    }

    fn connect(&mut self) -> Result<(), MirrorEnded> {
        self.source = MirrorSource::new(&self.here, Box::new(|| vec![G, R])).within(self.scope.clone());
        let mut asked = Vec::new();
        self.receiver.ask([G, R], |frame| asked.push(frame.to_vec()))?;
        self.frames.clear();
        asked.iter().try_for_each(|frame| self.source.on_frame(frame))
    }

    /// Everything that is due comes over.
    fn run(&mut self) -> Result<(), MirrorEnded> {
        for _ in 0..1_000 {
            let frames = &mut self.frames;
            let more = self.source.turn(|frame| frames.push(frame.to_vec()))?;
            let mut answers = Vec::new();
            for frame in std::mem::take(&mut self.frames) {
                self.receiver.on_frame(&frame, |answer| answers.push(answer.to_vec()))?;
            }
            answers.iter().try_for_each(|answer| self.source.on_frame(answer))?;
            if !more && answers.is_empty() {
                return Ok(());
            }
        }
        panic!("it does not come to rest");
    }

    /// The receiver gets a message of this test's making.
    fn tell(&mut self, message: MirrorMessage<'_>) -> Result<(), MirrorEnded> {
        let mut frame = Vec::new();
        message.encode(&mut frame);
        self.receiver.on_frame(&frame, |_| {})
    }

    fn records(&self, world: &TestWorld, log: LogName) -> Vec<(Offset, Vec<u8>)> {
        let mut reader = world.read_log_from_start(node_of(log)).unwrap();
        let mut found = Vec::new();
        while let Some(record) = reader.next().unwrap() {
            found.push((record.offset, record.payload.to_vec()));
        }
        found
    }

    fn check_same(&self, log: LogName) {
        assert_eq!(self.records(&self.here, log), self.records(&self.there, log), "{log}");
    }
}

fn text(world: &TestWorld, path: &str) -> Option<String> {
    crate::whole_file::read(world, Path::new(path)).ok()
}

#[test]
fn receiver_knows_what_it_lacks_before_it_comes() {
    let mut pair = Pair::new();
    let gateway = pair.write(G, 100);
    pair.connect().unwrap();
    let frames = &mut pair.frames;
    pair.source.turn(|frame| frames.push(frame.to_vec())).unwrap();
    let mut lags = Vec::new();
    for frame in std::mem::take(&mut pair.frames) {
        pair.receiver.on_frame(&frame, |_| {}).unwrap();
        lags.extend(pair.receiver.progress().map(|(_, progress)| progress.lag_bytes));
    }
    assert_eq!((lags.iter().max(), lags.last()), (Some(&(gateway.tail().0 - 64)), Some(&0)));
}

#[test]
fn long_settings_of_the_same_length_come_over() {
    let mut pair = Pair::new();
    let _gateway = pair.write(G, 1);
    for letter in ["a", "b"] {
        let said = letter.repeat(90_000);
        pair.put("pares.toml", said.as_bytes());
        pair.connect().unwrap();
        pair.run().unwrap();
        assert_eq!(text(&pair.there, "pares.toml"), Some(said));
    }
}

#[test]
fn mirror_damaged_while_it_is_open_is_copied_again() {
    let mut pair = Pair::new();
    let _gateway = pair.write(G, 20);
    pair.connect().unwrap();
    pair.run().unwrap();
    let at = pair.records(&pair.there, G)[10].0;
    pair.there.flip(node_of(G), at);
    pair.connect().unwrap();
    pair.run().unwrap();
    pair.check_same(G);
    pair.connect().unwrap();
    pair.run().unwrap();
    let aside = |n: u32| pair.there.real(&Path::new("gateway-0").join(format!("damaged-{n}")));
    assert!(aside(1).is_dir() && !aside(2).exists(), "one for one damage");
}

#[test]
fn own_log_with_damaged_marks_is_refused_by_name() {
    let mut pair = Pair::new();
    let _gateway = pair.write(G, 20);
    drop(pair.there.write_log(node_of(G), Config::default()).unwrap());
    std::fs::write(pair.there.real(Path::new("gateway-0/marks")), b"spoilt").unwrap();
    let refused = pair.connect().and_then(|()| pair.run());
    assert!(matches!(&refused, Err(MirrorEnded::Hopeless(_))), "{refused:?}");
    assert!(refused.unwrap_err().to_string().contains("gateway-0/marks"));
    assert!(!pair.there.real(Path::new("gateway-0/damaged-1")).exists());
}

#[test]
fn logs_that_the_settings_do_not_allow_are_not_begun() {
    for (log, segment_bytes) in [(LogName::Recorder(16), 4096), (G, 65 << 20)] {
        let mut pair = Pair::new();
        pair.connect().unwrap();
        let hello = MirrorMessage::Hello { speaks: 1, understands: 1 };
        let begins = MirrorMessage::Begins { log, segment_bytes, from: 0, afresh: false };
        let told: Vec<_> = [hello, begins].map(|message| pair.tell(message)).into();
        assert!(matches!(&told[..], [Ok(()), Err(MirrorEnded::Broken(_))]), "{log}: {told:?}");
        assert!(!pair.there.real(Path::new(&log.to_string())).exists());
    }
    let mut pair = Pair::new();
    let config = Config::default().segment_bytes(65 << 20);
    let _gateway = pair.here.write_log(node_of(G), config).unwrap();
    pair.put("pares.toml", b"segment_mib = 65");
    pair.connect().unwrap();
    pair.run().unwrap();
    pair.check_same(G);
}

#[test]
fn silent_receivers_lose_their_place() {
    let mut pair = Pair::new();
    let _gateway = pair.write(G, 20);
    pair.connect().unwrap();
    let mut sent = 0;
    pair.source.turn(|frame| sent += frame.len()).unwrap();
    pair.here.pass(TAKEN_NS);
    assert!(sent > 2_000 && pair.source.turn(|_| {}).is_ok());
    pair.here.pass(1);
    assert!(pair.source.turn(|_| {}).is_err(), "it took nothing");
    pair.source = MirrorSource::new(&pair.here, Box::new(Vec::new));
    pair.here.pass(GO_NS + 1);
    assert!(pair.source.turn(|_| {}).is_err(), "it said nothing");
    pair.connect().unwrap();
    pair.run().unwrap();
    pair.here.pass(TAKEN_NS + 1);
    assert!(pair.source.turn(|_| {}).is_ok() && pair.source.lag_bytes() == Some(0), "it has everything");
}

#[test]
fn receivers_name_so_many_files() {
    let mut source = MirrorSource::new(&TestWorld::new(), Box::new(Vec::new));
    let mut tell = |message: MirrorMessage<'_>| {
        let mut frame = Vec::new();
        message.encode(&mut frame);
        source.on_frame(&frame)
    };
    tell(MirrorMessage::Hello { speaks: 1, understands: 1 }).unwrap();
    for n in 0..=FILES_MAX {
        let path = &format!("recorder-0/checkpoints/{n}");
        assert_eq!(tell(MirrorMessage::HaveFile { bytes: 0, digest: 0, path }).is_ok(), n < FILES_MAX, "{n}");
    }
}

#[test]
fn logs_and_files_come_over_and_stay_alike() {
    let mut pair = Pair::new();
    let mut gateway = pair.write(G, 100);
    pair.put("epoch", b"1");
    pair.put("left-out/recorder-1", b"note");
    pair.put("recorder-0/checkpoints/0-5.checkpoint", &[7; 600_000]);
    pair.put("keys/operator.key", b"secret");
    pair.connect().unwrap();
    pair.run().unwrap();
    pair.check_same(G);
    // A log that appears later.
    let _recorder = pair.write(R, 10);
    gateway.append(b"more").unwrap();
    gateway.publish();
    std::fs::remove_file(pair.here.real(Path::new("left-out/recorder-1"))).unwrap();
    pair.put("epoch", b"2");
    pair.here.pass(1_000_000_000);
    pair.run().unwrap();
    pair.check_same(G);
    pair.check_same(R);
    assert_eq!(text(&pair.there, "epoch").as_deref(), Some("2"));
    assert_eq!(text(&pair.there, "recorder-0/checkpoints/0-5.checkpoint").unwrap().len(), 600_000);
    assert_eq!(
        (text(&pair.there, "left-out/recorder-1"), text(&pair.there, "keys/operator.key")),
        (None, None)
    );
    let (log, progress) = pair.receiver.progress().next().unwrap();
    assert_eq!((log, progress.next, progress.lag_bytes), (G, gateway.tail(), 0));
    assert_eq!(progress.durable, gateway.durable());
}

#[test]
fn a_connection_continues_where_the_last_one_ended() {
    let mut pair = Pair::new();
    let mut gateway = pair.write(G, 60);
    pair.connect().unwrap();
    pair.run().unwrap();
    gateway.append(b"more").unwrap();
    gateway.publish();
    pair.connect().unwrap();
    let mut sent = Vec::new();
    assert!(!pair.source.turn(|frame| sent.push(frame.to_vec())).unwrap());
    let bytes: usize = sent.iter().map(Vec::len).sum();
    assert!(bytes < 400, "{bytes} bytes: only what is new");
    pair.frames = sent;
    pair.run().unwrap();
    pair.check_same(G);
}

#[test]
fn another_log_sets_the_mirror_aside() {
    let mut pair = Pair::new();
    drop(pair.write(G, 60));
    pair.connect().unwrap();
    pair.run().unwrap();
    pair.here.remove_dir("gateway-0");
    let mut other = pair.write(G, 5);
    other.append(b"of another log").unwrap();
    other.publish();
    pair.here.pass(1_000_000_000);
    assert!(pair.run().is_err(), "the connection ends");
    pair.connect().unwrap();
    pair.run().unwrap();
    pair.check_same(G);
    assert!(pair.there.real(Path::new("gateway-0/damaged-1")).is_dir());
}

#[test]
fn damaged_frames_end_the_connection_and_harm_nothing() {
    let mut pair = Pair::new();
    let _gateway = pair.write(G, 60);
    pair.connect().unwrap();
    let mut sent = Vec::new();
    while pair.source.turn(|frame| sent.push(frame.to_vec())).unwrap() {}
    let stretch = sent.iter().position(|frame| frame[0] == 17).unwrap();
    for frame in &sent[..stretch] {
        pair.receiver.on_frame(frame, |_| {}).unwrap();
    }
    let whole = sent[stretch].clone();
    for at in (0..whole.len()).step_by(7) {
        let mut frame = whole.clone();
        frame[at] ^= 0x21;
        let taken = pair.receiver.on_frame(&frame, |_| {});
        assert!(taken.is_err() || at > 12, "{at}");
        if taken.is_ok() {
            break; // a byte that pads
        }
    }
    pair.connect().unwrap();
    pair.run().unwrap();
    pair.check_same(G);
}

/// The logs and files of three hosts lie side by side at each.
#[test]
fn host_sends_only_what_it_writes_and_reaches_nothing_else() {
    const FOREIGN: LogName = LogName::Recorder(1);
    let mut pair = Pair::new();
    pair.scope = Scope::Written([G, R].into());
    let _writers = [G, R, FOREIGN].map(|log| pair.write(log, 3));
    pair.put("pares.toml", b"");
    pair.put("recorder-0/checkpoints/0-1.checkpoint", b"own");
    pair.put("recorder-1/checkpoints/0-1.checkpoint", b"foreign");
    pair.there.create_file(Path::new("shut-out/venue-1")).unwrap().append(b"local").unwrap();
    pair.receiver = MirrorReceiver::new(&pair.there).within(pair.scope.clone());
    pair.connect().unwrap();
    pair.run().unwrap();
    [G, R].into_iter().for_each(|log| pair.check_same(log));
    let came =
        ["pares.toml", "recorder-0/checkpoints/0-1.checkpoint", "recorder-1/checkpoints/0-1.checkpoint"];
    assert_eq!(came.map(|path| text(&pair.there, path).is_some()), [false, true, false]);
    assert_eq!(text(&pair.there, "shut-out/venue-1").as_deref(), Some("local"), "it is this host's own");
    let begins = MirrorMessage::Begins { log: FOREIGN, segment_bytes: 4096, from: 0, afresh: true };
    assert!(pair.tell(begins).unwrap_err().to_string().contains("not written there"));
}
