//! The window under every interleaving and every reordering that the memory model allows.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p pares-sequencer --test loom --release`
//!
//! The code under test is [`Window`] itself; only the memory differs from production. loom has no 128-bit
//! atomics, so a slot is packed into 64 bits, losing range and nothing else:
//!
//! ```text
//!  63      56 55            32 31      24 23             0
//! +----------+----------------+----------+----------------+
//! | epoch    | position       | gateway  | sequence       |
//! +----------+----------------+----------+----------------+
//! ```
//! loom decides where to switch threads by the last access to each object, and so overlooks switches
//! before a load that the same thread follows by a swap, which is what the window does all the time.
//! Hence every access first touches `turn`, an object of its own that all accesses contend for; it is
//! relaxed and orders nothing. That the switches do happen is itself tested: each test states the
//! outcomes that must have been met.
//!
//! Two tests weaken the memory and expect loom to find the fault: they show that the orderings of
//! `pares_os::window` are needed, and that these tests would notice their loss.
#![cfg(loom)]
#![allow(clippy::unwrap_used)] // a test may panic; clippy lets tests unwrap, but not what they share

use std::collections::BTreeSet;
use std::panic::catch_unwind;
use std::sync::{Arc as StdArc, Mutex};

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering};
use loom::thread;
use pares_sequencer::{Memory, ProposeError, Sequencer, Slot, Voiding, Vouched, Window};
use pares_types::{Epoch, GatewayId, Position, RequestId};

/// The orderings of a memory; the production one has acquire, release and both.
#[derive(Clone, Copy)]
struct Orderings {
    load: Ordering,
    swap: Ordering,
    raise: Ordering,
}

const REAL: Orderings =
    Orderings { load: Ordering::Acquire, swap: Ordering::AcqRel, raise: Ordering::AcqRel };
const RELAXED: Orderings =
    Orderings { load: Ordering::Relaxed, swap: Ordering::Relaxed, raise: Ordering::Relaxed };

struct LoomMemory {
    slots: Vec<AtomicU64>,
    recorded: AtomicU64,
    epoch: AtomicU64,
    vouched: AtomicU64,
    voids: AtomicU64,
    void: [AtomicU64; 2],
    turn: AtomicU64,
    orderings: Orderings,
}

#[derive(Clone)]
struct Shared(Arc<LoomMemory>);

impl Shared {
    fn new(capacity: usize, orderings: Orderings) -> Self {
        Self(Arc::new(LoomMemory {
            slots: (0..capacity).map(|_| AtomicU64::new(0)).collect(),
            recorded: AtomicU64::new(0),
            epoch: AtomicU64::new(1),
            vouched: AtomicU64::new(0),
            voids: AtomicU64::new(0),
            void: [AtomicU64::new(0), AtomicU64::new(0)],
            turn: AtomicU64::new(0),
            orderings,
        }))
    }

    fn handle(&self) -> Window<Self> {
        Window::new(self.clone())
    }

    /// The memory, for one access.
    fn at(&self) -> &LoomMemory {
        self.0.turn.fetch_add(0, Ordering::Relaxed);
        &self.0
    }

    /// As `SharedMemory::give_up`; returns what the slots held.
    fn give_up(&self) -> Vec<Slot> {
        self.at().epoch.fetch_max(2, Ordering::AcqRel);
        let fence = pack(Slot::fence(Epoch(2)));
        self.0.slots.iter().map(|slot| unpack(slot.swap(fence, Ordering::AcqRel))).collect()
    }
}

fn pack(slot: Slot) -> u64 {
    let request = slot.request().map_or(0, |id| u64::from(id.gateway().0) << 24 | id.sequence());
    u64::from(slot.epoch().0) << 56 | slot.position().0 << 32 | request
}

fn unpack(word: u64) -> Slot {
    let epoch = Epoch((word >> 56) as u32);
    match (epoch, word & 0xff_ffff) {
        (Epoch(0), _) => Slot::EMPTY,
        (_, 0) => Slot::fence(epoch),
        (_, sequence) => {
            let id = RequestId::new(GatewayId((word >> 24 & 0xff) as u16), sequence);
            Slot::new(epoch, Position(word >> 32 & 0xff_ffff), id)
        }
    }
}

impl Memory for Shared {
    fn capacity(&self) -> u64 {
        self.0.slots.len() as u64
    }
    fn load(&self, index: u64) -> Slot {
        unpack(self.at().slots[index as usize].load(self.0.orderings.load))
    }
    fn compare_exchange(&self, index: u64, expected: Slot, new: Slot) -> Result<(), Slot> {
        let Orderings { load, swap, .. } = self.0.orderings;
        let slot = &self.at().slots[index as usize];
        slot.compare_exchange(pack(expected), pack(new), swap, load).map(|_| ()).map_err(unpack)
    }
    fn recorded(&self) -> Position {
        Position(self.at().recorded.load(self.0.orderings.load))
    }
    fn raise_recorded(&self, to: Position) {
        self.at().recorded.fetch_max(to.0, self.0.orderings.raise);
    }
    fn vouched(&self) -> Vouched {
        Vouched::from_bits(self.at().vouched.load(self.0.orderings.load))
    }
    fn compare_exchange_vouched(&self, expected: Vouched, new: Vouched) -> Result<(), Vouched> {
        let Orderings { load, swap, .. } = self.0.orderings;
        let word = &self.at().vouched;
        let swapped = word.compare_exchange(expected.to_bits(), new.to_bits(), swap, load);
        swapped.map(|_| ()).map_err(Vouched::from_bits)
    }
    fn voids(&self) -> usize {
        self.at().voids.load(self.0.orderings.load) as usize
    }
    fn void(&self, index: usize) -> Position {
        Position(self.at().void[index].load(self.0.orderings.load) - 1)
    }
    fn add_void(&self, index: usize, position: Position) {
        let Orderings { load, swap, .. } = self.0.orderings;
        let _taken = self.at().void[index].compare_exchange(0, position.0 + 1, swap, load);
        let _counted = self.at().voids.compare_exchange(index as u64, index as u64 + 1, swap, load);
    }
    fn made_for(&self) -> Epoch {
        Epoch(1)
    }
    fn epoch(&self) -> Epoch {
        Epoch(self.at().epoch.load(self.0.orderings.load) as u32)
    }
}

fn id(gateway: u16, sequence: u64) -> RequestId {
    RequestId::new(GatewayId(gateway), sequence)
}

fn propose(handle: &mut impl Sequencer, at: u64, request: RequestId) -> Result<RequestId, ProposeError> {
    let mut decided = vec![];
    handle.propose(Position(at), &[request], 1, &mut decided).map(|()| decided[0])
}

/// Proposes own requests for positions 0 to `count - 1` and returns the order learnt.
fn order(mut handle: Window<Shared>, gateway: u16, count: u64) -> Vec<RequestId> {
    (0..count).map(|at| propose(&mut handle, at, id(gateway, at + 1)).unwrap()).collect()
}

/// Explores `execution`, with every schedule of up to four forced switches, and returns the outcomes met.
fn explore<T: Ord + Send + 'static>(execution: impl Fn() -> T + Send + Sync + 'static) -> BTreeSet<T> {
    let met = StdArc::new(Mutex::new(BTreeSet::new()));
    let outcomes = StdArc::clone(&met);
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(4);
    model.check(move || {
        let outcome = execution();
        outcomes.lock().unwrap().insert(outcome);
    });
    std::mem::take(&mut *met.lock().unwrap())
}

/// Short form of an answer, to be listed in sets.
fn brief(answer: Result<RequestId, ProposeError>) -> String {
    match answer {
        Ok(decided) => decided.to_string(),
        Err(ProposeError::TooFarBehind { .. }) => "behind".into(),
        Err(ProposeError::WindowFull { .. }) => "full".into(),
        Err(ProposeError::EpochOver { .. }) => "over".into(),
    }
}

fn set<const N: usize>(outcomes: [&str; N]) -> BTreeSet<String> {
    outcomes.map(String::from).into()
}

#[test]
fn two_proposers_agree_on_two_positions() {
    let met = explore(|| {
        let memory = Shared::new(2, REAL);
        let other = memory.handle();
        let other = thread::spawn(move || order(other, 2, 2));
        let one = order(memory.handle(), 1, 2);
        assert_eq!(one, other.join().unwrap());
        one
    });
    assert_eq!(met.len(), 4, "each position may go to either: {met:?}");
}

#[test]
fn three_proposers_agree() {
    let met = explore(|| {
        let memory = Shared::new(1, REAL);
        let [two, three] = [2, 3].map(|gateway| {
            let handle = memory.handle();
            thread::spawn(move || order(handle, gateway, 1))
        });
        let one = order(memory.handle(), 1, 1);
        assert_eq!(one, two.join().unwrap());
        assert_eq!(one, three.join().unwrap());
        one
    });
    assert_eq!(met.len(), 3, "any of them may win: {met:?}");
}

/// The leader decides, records and reuses the only slot; the other proposes for position 0 and may sleep
/// anywhere, in particular between its load and its swap.
#[test]
fn late_waker_never_wins_a_position_wrongly() {
    let met = explore(|| {
        let memory = Shared::new(1, REAL);
        let mut sleeper = memory.handle();
        let sleeper = thread::spawn(move || propose(&mut sleeper, 0, id(2, 1)));
        let mut leader = memory.handle();
        let zero = propose(&mut leader, 0, id(1, 1)).unwrap();
        leader.raise_recorded(Position(1));
        let one = propose(&mut leader, 1, id(1, 2)).unwrap();
        assert_eq!(one, id(1, 2), "the sleeper never proposed for position 1");
        let learnt = sleeper.join().unwrap();
        match learnt {
            Ok(learnt) => assert_eq!(learnt, zero),
            Err(error) => assert_eq!(error, ProposeError::TooFarBehind { oldest: Position(1) }),
        }
        brief(learnt)
    });
    assert_eq!(met, set(["1:1", "2:1", "behind"]));
}

#[test]
fn slot_is_never_reused_before_its_position_is_recorded() {
    let met = explore(|| {
        let memory = Shared::new(1, REAL);
        let mut leader = memory.handle();
        let zero = propose(&mut leader, 0, id(1, 1)).unwrap();
        let mut recorder = memory.handle();
        let recorder = thread::spawn(move || {
            let mut learnt = vec![];
            recorder.propose(Position(0), &[], 1, &mut learnt).unwrap();
            recorder.raise_recorded(Position(1));
            learnt
        });
        let answer = propose(&mut leader, 1, id(1, 2));
        assert_eq!(recorder.join().unwrap(), [zero], "the recorder could still learn what it records");
        brief(answer)
    });
    assert_eq!(met, set(["1:2", "full"]));
}

/// A joiner that sees the mark at 1 must find position 0 in the window: it was decided in this epoch.
fn mark_implies_decision(orderings: Orderings) -> BTreeSet<(bool, bool)> {
    explore(move || {
        let memory = Shared::new(2, orderings);
        let mut leader = memory.handle();
        let leader = thread::spawn(move || {
            propose(&mut leader, 0, id(1, 1)).unwrap();
            leader.raise_recorded(Position(1));
        });
        let mut joiner = memory.handle();
        let mut learnt = vec![];
        let marked = joiner.recorded() == Position(1);
        joiner.propose(Position(0), &[], 1, &mut learnt).unwrap();
        leader.join().unwrap();
        (marked, !learnt.is_empty())
    })
}

#[test]
fn whoever_sees_the_mark_sees_the_decisions_below_it() {
    assert_eq!(mark_implies_decision(REAL), [(false, false), (false, true), (true, true)].into());
}

#[test]
fn with_relaxed_memory_the_mark_can_be_seen_before_the_decision() {
    assert!(catch_unwind(|| mark_implies_decision(RELAXED)).is_err(), "loom finds the missing release");
}

/// A venue that learns position 1 continues to 2, relying on 0 being seen as decided.
fn learning_one_implies_zero(orderings: Orderings) -> BTreeSet<(bool, bool)> {
    explore(move || {
        let memory = Shared::new(2, orderings);
        let leader = memory.handle();
        let leader = thread::spawn(move || order(leader, 1, 2));
        let mut observer = memory.handle();
        let mut learnt = vec![];
        observer.propose(Position(1), &[], 1, &mut learnt).unwrap();
        let zero = memory.load(0);
        leader.join().unwrap();
        (!learnt.is_empty(), zero != Slot::EMPTY)
    })
}

#[test]
fn whoever_learns_a_position_sees_all_before_it() {
    assert_eq!(learning_one_implies_zero(REAL), [(false, false), (false, true), (true, true)].into());
}

#[test]
fn relaxed_memory_can_learn_position_before_previous() {
    assert!(learning_one_implies_zero(RELAXED).contains(&(true, false)));
}

#[test]
fn proposer_learns_epoch_end_or_ender_its_decision() {
    let met = explore(|| {
        let memory = Shared::new(1, REAL);
        let mut proposer = memory.handle();
        let proposer = thread::spawn(move || propose(&mut proposer, 0, id(1, 1)));
        let held = memory.give_up();
        let answer = proposer.join().unwrap();
        match answer {
            Ok(decided) => assert_eq!(held[0].request(), Some(decided)),
            Err(_) => assert_eq!(held[0], Slot::EMPTY),
        }
        brief(answer)
    });
    assert_eq!(met, set(["1:1", "over"]));
}

/// What became of position 0 at a venue that can execute it: asked, executed, vouched.
fn execute(handle: &mut Window<Shared>) -> &'static str {
    match handle.is_void(Position(0)) {
        true => "void",
        false => match handle.vouch(Position(0), Position(1)) {
            Ok(()) => "executed",
            Err(_) => "overruled",
        },
    }
}

/// One venue fails at position 0 and wants it void, another executes it; a third comes and continues beyond it.
fn void_or_executed(orderings: Orderings) -> BTreeSet<(&'static str, &'static str)> {
    explore(move || {
        let memory = Shared::new(2, orderings);
        let (mut failing, mut other) = (memory.handle(), memory.handle());
        let failing = thread::spawn(move || match failing.void(Position(0)) {
            Voiding::Void => {
                assert!(failing.is_void(Position(0)));
                // It records the position as void and continues.
                failing.vouch(Position(0), Position(1)).unwrap();
                "void"
            }
            Voiding::Stands => "stands",
            Voiding::Refused => panic!("there is room"),
        });
        let executed = execute(&mut other);
        let failed = failing.join().unwrap();
        match failed {
            "void" => assert_ne!(executed, "executed", "both executed and void"),
            _ => assert_eq!(executed, "executed", "neither executed nor void"),
        }
        assert_eq!(memory.handle().is_void(Position(0)), failed == "void", "a late comer learns it");
        (failed, executed)
    })
}

#[test]
fn a_position_is_executed_or_void_and_never_both() {
    let met = void_or_executed(REAL);
    assert_eq!(met, [("stands", "executed"), ("void", "overruled"), ("void", "void")].into());
}

#[test]
fn with_relaxed_memory_a_venue_can_vouch_for_what_is_void() {
    assert!(catch_unwind(|| void_or_executed(RELAXED)).is_err(), "loom finds the missing release");
}

#[test]
fn two_venues_that_fail_at_the_same_position_void_it_once() {
    let met = explore(|| {
        let memory = Shared::new(2, REAL);
        let fail = |mut handle: Window<Shared>| {
            move || {
                let verdict = handle.void(Position(0));
                assert!(handle.is_void(Position(0)));
                handle.vouch(Position(0), Position(1)).unwrap();
                verdict
            }
        };
        let other = thread::spawn(fail(memory.handle()));
        let verdicts = [fail(memory.handle())(), other.join().unwrap()];
        assert_eq!(verdicts, [Voiding::Void; 2]);
        (memory.voids(), memory.vouched() == Vouched::good(Position(1)))
    });
    assert_eq!(met, [(1, true)].into());
}
