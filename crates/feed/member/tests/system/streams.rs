//! Every trader receives the same, once, in one order, whatever becomes of servers.

use std::collections::BTreeSet;
use std::io::Read;
use std::net::TcpStream;
use std::path::Path;

use pares_config::DurabilitySetting;
use pares_desk::frame::{self, CutOff, DeskNews};
use pares_member::config::{stream, submissions};
use pares_member::{MemberConfig, TraderNews, start};
use pares_node::HostWorld;
use pares_types::ShardId;

use crate::rig::{Follower, Rig, eventually};

/// Every trader has been told what the first has, and each said so many things, which stand there once and in its order.
fn check(traders: &mut [Follower], each: u64) {
    traders.iter_mut().for_each(Follower::settle);
    let count = traders[0].client.next().0.max(traders.iter().map(|t| t.told.len() as u64).max().unwrap());
    traders.iter_mut().for_each(|trader| trader.until(|trader| trader.told.len() as u64 >= count));
    let shortest = traders.iter().map(|trader| trader.told.len()).min().unwrap();
    for trader in &*traders {
        assert_eq!(trader.told[..shortest], traders[0].told[..shortest]);
    }
    let names = traders[0].once();
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), names.len(), "nothing stands there twice");
    for trader in &*traders {
        let own: Vec<_> = names.iter().filter(|name| name.trader == trader.client.trader()).collect();
        let numbers: Vec<_> = own.iter().map(|name| name.number).collect();
        assert_eq!(numbers, (1..=each).collect::<Vec<_>>(), "nothing is lost");
    }
}

/// That many traders, who prefer one server after the other.
fn traders(rig: &Rig, count: u32) -> Vec<Follower> {
    (1..=count).map(|trader| rig.trader(trader, trader as usize)).collect()
}

/// Every trader says so much, once in each round.
fn talk(traders: &mut [Follower], rounds: usize, text: &str) {
    for round in 0..rounds {
        for trader in &mut *traders {
            trader.say(&format!("{text} {round}"));
            trader.poll();
        }
    }
}

/// What server 0 was filled with is what the trader received, as server 1 has it.
fn await_filled(rig: &Rig, trader: &Follower) {
    let told = trader.told.len();
    eventually(|| rig.log(0).len() >= told);
    assert_eq!(rig.log(0)[..told], rig.log(1)[..told]);
}

#[test]
fn traders_of_two_servers_are_told_the_same_in_one_order() {
    let rig = Rig::new(MemberConfig::local(2));
    let mut traders = traders(&rig, 20);
    talk(&mut traders, 50, "a word in each round");
    check(&mut traders, 50);
    assert_eq!(rig.log(0), rig.log(1));
}

#[test]
fn server_end_during_talk_loses_and_doubles_nothing() {
    let mut rig = Rig::new(MemberConfig::local(2));
    let mut traders = traders(&rig, 20);
    let mut talk = |rounds| talk(&mut traders, rounds, "a word in each round");
    talk(20);
    rig.end(0);
    talk(20);
    rig.start(0);
    talk(10);
    rig.end(1);
    talk(10);
    check(&mut traders, 60);
}

#[test]
fn lost_disk_server_refilled_then_continues_alone() {
    let mut rig = Rig::new(MemberConfig { window: 64, ..MemberConfig::local(2) });
    let mut traders: Vec<_> = (1..=4).map(|trader| rig.trader(trader, 1)).collect();
    let talk = |traders: &mut [Follower], rounds| talk(traders, rounds, &"words ".repeat(20));
    // What one server alone has would be lost with its disk, and only a start of all servers could continue: a trader that waits long
    // for its server submits at the other.
    let settled = |rig: &Rig, traders: &mut [Follower], server, positions| {
        traders.iter_mut().for_each(Follower::settle);
        eventually(|| rig.log(server).len() >= positions);
    };
    talk(&mut traders, 500);
    settled(&rig, &mut traders, 1, 2_000);
    rig.end(0);
    rig.wipe(0);
    talk(&mut traders, 100);
    rig.start(0);
    talk(&mut traders, 400);
    let mut late = rig.trader(9, 0);
    settled(&rig, &mut traders, 0, 4_000);
    late.until(|late| late.told.len() >= 4_000);
    rig.end(1);
    rig.wipe(1);
    talk(&mut traders, 100);
    rig.start(1);
    check(&mut traders, 1_100);
    late.until(|late| late.told.len() >= 4_400);
    assert_eq!(late.told[..4_400], traders[0].told[..4_400]);
}

#[test]
fn quorum_two_delivers_nothing_alone_and_all_later() {
    let mut rig =
        Rig::new(MemberConfig { quorum: 2, durability: DurabilitySetting::Disk, ..MemberConfig::local(2) });
    let mut trader = rig.trader(1, 0);
    trader.say("both");
    trader.settle();
    rig.end(1);
    trader.say("one alone");
    (0..50).for_each(|_| {
        trader.client.wait(std::time::Duration::from_millis(1));
        trader.poll();
    });
    assert_eq!(trader.told.len(), 1);
    rig.start(1);
    trader.settle();
    assert_eq!(trader.once().len(), 2);
}

#[test]
fn everything_that_stops_goes_on_where_it_was() {
    let mut rig = Rig::new(MemberConfig::local(2));
    let mut trader = rig.trader(1, 0);
    (0..10).for_each(|_| _ = trader.say("before"));
    trader.settle();
    let before = rig.log(0);
    [0, 1].into_iter().for_each(|server| rig.end(server));
    rig.begin();
    [0, 1].into_iter().for_each(|server| rig.start(server));
    (0..10).for_each(|_| _ = trader.say("after"));
    trader.settle();
    assert_eq!(trader.once().len(), 20);
    assert_eq!(rig.log(0)[..before.len()], before);
    assert!(rig.dir().join("epoch").exists());
}

/// A system whose stream is some megabytes long, and whose server 0 does not run.
fn long_stream() -> (Rig, Follower) {
    let mut rig = Rig::new(MemberConfig { window: 64, ..MemberConfig::local(2) });
    let mut trader = rig.trader(1, 1);
    let words = "words ".repeat(1_000);
    for _ in 0..100 {
        (0..20).for_each(|_| _ = trader.say(&words));
        trader.settle();
    }
    rig.end(0);
    (rig, trader)
}

#[test]
fn server_dying_while_filled_resumes_at_log_end() {
    let (mut rig, trader) = long_stream();
    rig.wipe(0);
    for _ in 0..3 {
        rig.start(0);
        std::thread::sleep(std::time::Duration::from_millis(20));
        rig.end(0);
        let (has, all) = (rig.log(0), rig.log(1));
        assert_eq!(has[..], all[..has.len()], "what it has is a part of the stream");
    }
    rig.start(0);
    await_filled(&rig, &trader);
}

#[test]
fn damaged_server_log_keeps_intact_part_and_refills() {
    let (mut rig, trader) = long_stream();
    let dir = rig.layout.log(pares_member::config::stream(0));
    let segments = std::fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
    let mut segments: Vec<_> =
        segments.filter(|path| path.extension().is_some_and(|of| of == "seg")).collect();
    segments.sort();
    let mut bytes = std::fs::read(&segments[0]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle..middle + 64].fill(0xff);
    std::fs::write(&segments[0], bytes).unwrap();
    rig.start(0);
    await_filled(&rig, &trader);
}

#[test]
fn of_three_servers_with_a_quorum_of_two_any_one_may_be_away() {
    let mut rig = Rig::new(MemberConfig { quorum: 2, ..MemberConfig::local(3) });
    let mut traders = traders(&rig, 6);
    for away in 0..3 {
        rig.end(away);
        talk(&mut traders, 20, "two of three");
        traders.iter_mut().for_each(Follower::settle);
        rig.start(away);
    }
    talk(&mut traders, 20, "two of three");
    check(&mut traders, 80);
}

#[test]
fn silent_strangers_keep_no_trader_and_no_peer_out() {
    let config = MemberConfig { quorum: 2, traders_max: 1, ..MemberConfig::local(2) };
    let mut rig = Rig::new(config);
    let silent = |server: usize| TcpStream::connect(rig.addresses()[server]).unwrap();
    let strangers: Vec<_> = (0..80).map(|stranger| silent(stranger % 2)).collect();
    rig.end(0);
    rig.start(0);
    let mut trader = rig.trader(1, 1);
    trader.say("with a peer's word");
    trader.settle();
    // The first to come made place, and was not waited for.
    let mut said = Vec::new();
    (&strangers[1]).read_to_end(&mut said).unwrap();
    let (kind, payload, _) = frame::split(&said, frame::NEWS_BYTES_MAX).unwrap().unwrap();
    assert_eq!(frame::read_news(kind, payload), Ok(DeskNews::Ended(CutOff::TooMany)));
}

/// Puts copies of the directories of one place into another, in the place of what is there.
fn put_back(from: &Path, to: &Path, names: &[String]) {
    for name in names {
        let _ = std::fs::remove_dir_all(to.join(name));
        std::fs::create_dir_all(to.join(name)).unwrap();
        for file in std::fs::read_dir(from.join(name)).unwrap().map(Result::unwrap) {
            std::fs::copy(file.path(), to.join(name).join(file.file_name())).unwrap();
        }
    }
}

fn logs(servers: &[u16]) -> Vec<String> {
    servers
        .iter()
        .flat_map(|server| [stream(*server), submissions(*server)])
        .map(|log| log.to_string())
        .collect()
}

#[test]
fn server_with_old_logs_accepts_submissions() {
    let mut rig = Rig::new(MemberConfig::local(2));
    let (copy, of_one) = (tempfile::tempdir().unwrap(), logs(&[1]));
    // With a quorum of one, what server 1 alone has would be lost with the state of its disk that is put back.
    let speak = |rig: &Rig, trader, count| {
        let mut trader = rig.trader(trader, 1);
        (0..count).for_each(|_| _ = trader.say("at the second server"));
        trader.settle();
        eventually(|| rig.log(0).len() >= trader.told.len());
    };
    speak(&rig, 1, 5);
    rig.end(1);
    put_back(&rig.dir(), copy.path(), &of_one);
    rig.start(1);
    speak(&rig, 2, 15);
    rig.end(1);
    put_back(copy.path(), &rig.dir(), &of_one);
    rig.start(1);
    speak(&rig, 3, 10);
    eventually(|| rig.log(1).len() == 30 && rig.log(0).len() == 30);
    assert_eq!(rig.log(0), rig.log(1));
}

#[test]
fn trader_ahead_of_all_logs_learns_of_lost_stream() {
    let mut rig = Rig::new(MemberConfig::local(1));
    let copy = tempfile::tempdir().unwrap();
    let all = logs(&[0]);
    let mut trader = rig.trader(1, 0);
    trader.say("kept");
    trader.settle();
    rig.end(0);
    put_back(&rig.dir(), copy.path(), &all);
    rig.start(0);
    trader.say("in no copy");
    trader.settle();
    rig.end(0);
    put_back(copy.path(), &rig.dir(), &all);
    // The window alone would know better.
    std::fs::remove_file(rig.layout.window(ShardId(0))).unwrap();
    rig.begin();
    rig.start(0);
    let mut is_lost = false;
    eventually(|| {
        trader.client.wait(std::time::Duration::from_millis(2));
        trader.client.poll(|news| is_lost |= matches!(news, TraderNews::Lost));
        is_lost
    });
}

#[test]
fn power_loss_starts_new_stream_unless_all_synced() {
    let [one, two, three] = [0x1111_0000_u128, 0x2222_0000, 0x3333_0000];
    for (durability, begins) in [(DurabilitySetting::Os, true), (DurabilitySetting::Disk, false)] {
        let mut rig = Rig::new(MemberConfig { durability, ..MemberConfig::local(1) });
        rig.end(0);
        let world = HostWorld::new(&rig.layout).unwrap();
        let mut stream_in = |boot| {
            rig.begin_in(boot);
            start::stream_number(&world).unwrap()
        };
        start::end(&world).unwrap();
        let first = stream_in(one);
        assert_eq!(stream_in(one), first, "the same boot");
        let second = stream_in(two);
        assert_eq!(second != first, begins, "the servers ran when the host went down");
        assert_eq!(stream_in(0) != second, begins, "nobody can tell");
        start::end(&world).unwrap();
        let third = stream_in(two);
        start::end(&world).unwrap();
        assert_eq!(stream_in(three), third, "they had ended");
    }
}

#[test]
fn log_unopenable_at_start_returns_nothing_old() {
    let mut rig = Rig::new(MemberConfig { quorum: 2, ..MemberConfig::local(3) });
    let mut trader = rig.trader(1, 0);
    trader.say("kept");
    trader.settle();
    rig.end(1);
    rig.end(2);
    trader.say("written down at one server, and told to nobody");
    eventually(|| {
        trader.poll();
        rig.log(0).len() == 2
    });
    drop(trader);
    rig.end(0);
    let dir = rig.dir();
    let hidden = |name: &String| (dir.join(name), dir.join(format!("hidden-{name}")));
    for (log, hidden) in logs(&[0]).iter().map(hidden) {
        std::fs::rename(&log, hidden).unwrap();
        std::fs::write(log, "in its place").unwrap();
    }
    rig.begin();
    rig.start(1);
    rig.start(2);
    let mut other = rig.trader(2, 1);
    other.say("what stands there now");
    other.settle();
    for (log, hidden) in logs(&[0]).iter().map(hidden) {
        std::fs::remove_file(&log).unwrap();
        std::fs::rename(hidden, log).unwrap();
    }
    rig.start(0);
    let mut late = rig.trader(3, 0);
    late.say("at the one that was left out");
    late.settle();
    other.until(|other| other.told.len() >= late.told.len());
    assert_eq!(late.told, other.told[..late.told.len()]);
    eventually(|| rig.log(0).get(1) == rig.log(1).get(1));
}
