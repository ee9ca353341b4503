//! Streams told from the record, to several sessions at once, with and without an index.

use std::path::{Path, PathBuf};

use pares_config::NodeId;
use pares_log::Offset;
use pares_roles::duty::Duty;
use pares_roles::testing::records::{bid, request};
use pares_roles::world::World;
use pares_types::{Answer, ClientOrderId, GatewayId, MemberId, Reason, RecorderId, Reply, Request, ShardId};
use pares_wire::frame::{self, GatewayFrame};

use super::rig::{Rig, buy, config, result};

const LOG: NodeId = NodeId::Recorder(RecorderId(0));
const SHARD: ShardId = ShardId(0);
/// Who trades, in turn.
const MEMBERS: u64 = 3;

/// The order of another gateway at a position of the first shard.
fn order(position: u64) -> Request {
    order_of(GatewayId(1), position)
}

pub(super) fn order_of(gateway: GatewayId, position: u64) -> Request {
    let member = MemberId((position % MEMBERS) as u32 + 1);
    Request { member, command: bid(), ..request(gateway, position + 1) }
}

/// Members of another gateway had so many answers of the first shard.
pub(super) fn recorded(records: u64) -> Rig {
    let mut rig = Rig::new();
    rig.world.publish(LOG, &(0..records).map(|at| result(&order(at), at)).collect::<Vec<_>>());
    rig.look_around();
    rig.settle();
    rig
}

/// A client asks for its stream of the first shard.
fn resume(rig: &Rig, client: usize, next: u64) {
    rig.net.write(client, |out| frame::write_resume(out, Some(SHARD), next));
}

/// The gateway and its tasks have the time they need: logs of recorders that are not there are tried too.
fn settle(rig: &mut Rig) {
    for _ in 0..8 {
        rig.settle();
        rig.world.run_tasks();
        rig.world.pass(200_000_000);
    }
    rig.settle();
}

/// The numbers and names of the answers that a client receives, and from which number on the rest is live; `None` if it is not.
fn told(rig: &Rig, client: usize) -> (Vec<(u64, u64)>, Option<u64>) {
    let (mut answers, mut live) = (Vec::new(), None);
    for frame in rig.told(client) {
        match frame {
            GatewayFrame::Reply(Reply::Answer(answer)) => {
                answers.push((answer.number, answer.client_order_id.0));
            }
            GatewayFrame::Resumed { next, reason: Reason::None, .. } => live = Some(next),
            GatewayFrame::Resumed { reason: Reason::NotKept | Reason::Requested, .. } => {}
            other => panic!("{other:?}"),
        }
    }
    (answers, live)
}

/// What a member has to be told from number `next` on, of so many records.
fn expected(member: u64, next: u64, records: u64) -> (Vec<(u64, u64)>, Option<u64>) {
    let names = (0..records).filter(|at| at % MEMBERS + 1 == member).map(|at| at + 1);
    let all: Vec<_> = (1..).zip(names).collect();
    let live = all.len() as u64 + 1;
    (all.into_iter().filter(|(number, _)| *number >= next).collect(), Some(live))
}

#[test]
fn sessions_that_wait_for_more_than_a_turn_reads_are_told_all() {
    let records = 5_000;
    let mut rig = recorded(records);
    let clients: Vec<_> =
        (0..12).map(|at| (rig.sign_on((at % MEMBERS) as u32 + 1), at % MEMBERS + 1, at * 100 + 1)).collect();
    clients.iter().for_each(|&(client, _, next)| resume(&rig, client, next));
    settle(&mut rig);
    for (client, member, next) in clients {
        assert!(told(&rig, client) == expected(member, next, records), "member {member} from {next} on");
    }
    assert_eq!(rig.counter("resuming"), 0);
}

/// As after a restore of an older record: its member received more before.
#[test]
fn waiter_for_unused_number_may_ask_lower() {
    let records = 500;
    let mut rig = recorded(records);
    let client = rig.sign_on(1);
    for next in [1_000, 900] {
        resume(&rig, client, next);
        settle(&mut rig);
        assert_eq!((told(&rig, client), rig.counter("resuming")), ((vec![], None), 1));
    }
    let other = rig.sign_on(1);
    // In one go.
    [1_000, 21].into_iter().for_each(|next| resume(&rig, other, next));
    settle(&mut rig);
    assert!(told(&rig, other) == expected(1, 21, records));
    resume(&rig, client, 21);
    rig.settle();
    // Once more, while it is being told.
    resume(&rig, client, 1);
    settle(&mut rig);
    assert!(told(&rig, client) == expected(1, 21, records));
    assert_eq!(rig.counter("resuming"), 0);
}

#[test]
fn reader_skips_missed_part_and_gets_next() {
    let records = 5_000;
    let mut rig = recorded(records);
    rig.world.index();
    let client = rig.sign_on(1);
    resume(&rig, client, 1);
    while told(&rig, client).0.is_empty() {
        rig.gateway.work().unwrap();
        rig.world.run_tasks();
    }
    let before = rig.counter("records_resumed");
    resume(&rig, client, frame::RESUME_NOTHING);
    settle(&mut rig);
    let let_go = GatewayFrame::Resumed { shard: SHARD, next: 0, reason: Reason::Requested };
    assert_eq!(rig.told(client).last(), Some(&let_go), "and nothing behind it");
    assert_eq!((rig.counter("records_resumed"), rig.counter("resuming")), (before, 0));
    // In one go, while it is sent, and while it is looked for where to begin.
    [1, frame::RESUME_NOTHING, 2, frame::RESUME_NOTHING, 1_600]
        .into_iter()
        .for_each(|next| resume(&rig, client, next));
    settle(&mut rig);
    assert!(told(&rig, client) == expected(1, 1_600, records));
    // One that is live continues; what is behind is sent again.
    [frame::RESUME_NOTHING, 1_650].into_iter().for_each(|next| resume(&rig, client, next));
    settle(&mut rig);
    assert!(told(&rig, client) == expected(1, 1_650, records));
    assert!(rig.counter("records_resumed") - before < 1_000);
}

/// Has the first member told its stream from number `next` on. Says how many records were read for it.
fn records_read(rig: &mut Rig, next: u64, records: u64) -> u64 {
    let before = rig.counter("records_resumed");
    let client = rig.sign_on(1);
    resume(rig, client, next);
    settle(rig);
    assert!(told(rig, client) == expected(1, next, records), "from {next} on");
    rig.counter("records_resumed") - before
}

/// The files of streams' runs.
fn runs(rig: &Rig) -> Vec<PathBuf> {
    let dir = Path::new("recorder-0/index");
    let files = rig.world.list(dir).unwrap().into_iter();
    files.filter(|file| file.starts_with("streams")).map(|file| dir.join(file)).collect()
}

#[test]
fn with_an_index_the_same_is_told_and_less_is_read() {
    let records = 5_100;
    let mut rig = recorded(records);
    let wanted = [1, 2, 340, 1_200, 1_665, 1_690, 1_700];
    let read = wanted.map(|next| records_read(&mut rig, next, records));
    assert_eq!(read, [records; 7], "without an index");
    rig.world.index();
    let read = wanted.map(|next| records_read(&mut rig, next, records));
    assert_eq!(read, [5_100, 5_097, 5_100 - 3 * 339, 5_100 - 3 * 1_199, 108, 100, 100]);
}

#[test]
fn of_runs_that_are_lost_or_damaged_the_others_are_used() {
    let records = 5_100;
    let mut rig = recorded(records);
    rig.world.index();
    let runs = runs(&rig);
    rig.world.spoil(&runs[4], 100);
    assert_eq!(records_read(&mut rig, 1_690, records), 1_100);
    rig.world.remove_file(&runs[3]).unwrap();
    assert_eq!(records_read(&mut rig, 1_690, records), 2_100);
    assert_eq!(records_read(&mut rig, 340, records), 5_100 - 3 * 339);
    runs.iter().for_each(|run| _ = rig.world.remove_file(run));
    assert_eq!(records_read(&mut rig, 1_690, records), records);
    rig.world.index();
    assert_eq!(records_read(&mut rig, 1_690, records), 100);
}

/// So many records, of which the first half is in a checkpoint, and about that much of the log is dropped.
fn dropped_behind_a_checkpoint(records: u64) -> Rig {
    let rig = recorded(records);
    let requests: Vec<_> = (0..records / 2).map(order).collect();
    let (places, half) = (rig.world.places(LOG), requests.len() - 1);
    rig.world.store_checkpoint(&config(), SHARD, &requests, places[half]);
    assert!(drop_beginning(&rig, places[half], &places) > 0);
    rig
}

/// The log's beginning is dropped; says how many records are gone.
fn drop_beginning(rig: &Rig, before: Offset, places: &[Offset]) -> u64 {
    let released = rig.world.release(LOG, before);
    places.partition_point(|place| *place < released) as u64
}

#[test]
fn truncated_log_reports_kept_part_and_oldest_number() {
    let records = 40_000;
    let mut rig = recorded(records);
    let places = rig.world.places(LOG);
    rig.world.index();
    let gone = drop_beginning(&rig, places[19_999], &places);
    assert!(gone > 0);
    for again in 0..2 {
        let oldest = gone.div_ceil(MEMBERS) + 1;
        for next in [oldest, oldest + 1, oldest + 500, records / MEMBERS - 1] {
            records_read(&mut rig, next, records);
        }
        for next in [1, oldest - 1] {
            let client = rig.sign_on(1);
            resume(&rig, client, next);
            settle(&mut rig);
            let not_kept = GatewayFrame::Resumed { shard: SHARD, next: oldest, reason: Reason::NotKept };
            assert_eq!(rig.told(client), [not_kept], "from {next} on");
        }
        // The recorder's process starts again.
        if again == 0 {
            rig.world.index();
        }
    }
}

#[test]
fn dropped_repeat_is_too_old_kept_one_answered() {
    let records = 40_000;
    let mut rig = recorded(records);
    let places = rig.world.places(LOG);
    let client = rig.sign_on(1);
    let ask = |rig: &mut Rig, name: u64| {
        let mut told = rig.ask(client, &buy(name, 1));
        settle(rig);
        told.extend(rig.told(client));
        told
    };
    let is_repeat = |told: &[GatewayFrame]| {
        matches!(told, [GatewayFrame::Reply(Reply::Answer(Answer { repeat: true, .. }))])
    };
    assert!(is_repeat(&ask(&mut rig, 1)) && is_repeat(&ask(&mut rig, records)));
    let gone = drop_beginning(&rig, places[19_999], &places);
    for name in [1, gone - gone % MEMBERS - 2] {
        let client_order_id = ClientOrderId(name);
        let too_old = Reply::Rejected { client_order_id, reason: Reason::TooOld };
        assert_eq!(ask(&mut rig, name), [GatewayFrame::Reply(too_old)]);
    }
    assert!(is_repeat(&ask(&mut rig, records)));
}

#[test]
fn without_an_index_a_checkpoint_says_where_to_begin() {
    let records = 40_000;
    let mut rig = dropped_behind_a_checkpoint(records);
    let counted = 20_000_u64.div_ceil(MEMBERS);
    assert!(records_read(&mut rig, counted + 1, records) < 21_000);
    let client = rig.sign_on(1);
    resume(&rig, client, counted);
    settle(&mut rig);
    let none_is_known = GatewayFrame::Resumed { shard: SHARD, next: 0, reason: Reason::NotKept };
    assert_eq!(rig.told(client), [none_is_known]);
}

#[test]
fn index_counts_from_checkpoint_after_release() {
    let records = 40_000;
    let mut rig = dropped_behind_a_checkpoint(records);
    rig.world.index();
    assert_eq!(records_read(&mut rig, 13_001, records), 1_000);
    let client = rig.sign_on(1);
    resume(&rig, client, 1);
    settle(&mut rig);
    assert_eq!(told(&rig, client), (vec![], None));
}
