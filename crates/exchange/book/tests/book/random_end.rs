//! Calls that end at random end at any moment alike, however often the book receives the time: no member gains by sending it, and
//! none knows the last moment. docs/rules.md, section 6.

use pares_book::{Book, FastBook, Instrument};
use pares_types::{Command, Phase, Request, Rule, Timestamp};

use pares_exercise::checked::instrument;
use pares_exercise::script::request;
use pares_random::Random;

const SECOND: u64 = 1_000_000_000;
const END: u64 = 100 * SECOND;
const RANDOM_END_NS: u64 = 32 * SECOND;

/// How long after its end an opening call ends, if the book receives the time after pauses of up to `pause_ns`.
fn late_ns(random: &mut Random, pause_ns: u64) -> u64 {
    let rules = Instrument { random_end_ns: RANDOM_END_NS, ..instrument(10) };
    let mut book = FastBook::new(Instrument::new(rules).unwrap());
    let mut events = Vec::new();
    let row = Rule::Schedule { at_ns: END, phase: Some(Phase::Continuous) };
    for (sequence, command) in (1..).zip([Command::SetPhase(Phase::OpeningCall), Command::SetRule(row)]) {
        book.apply(&request(sequence, 0, command), &mut events);
    }
    let mut now = END;
    for sequence in 3.. {
        let command = Command::Time { draw: random.below(1 << 31) << 33 };
        book.apply(&Request { stamp: Timestamp(now), ..request(sequence, 0, command) }, &mut events);
        if book.trading().phase == Phase::Continuous {
            break;
        }
        now += 1 + random.below(pause_ns);
    }
    now - END
}

#[test]
fn a_call_ends_at_any_moment_alike() {
    const CALLS: u64 = 4_000;
    let mut random = Random::new(7);
    for pause_ns in [SECOND / 20, SECOND / 2, SECOND] {
        let mut ended = [0_u64; 8];
        for _ in 0..CALLS {
            // The book receives the time at the first moment after the last one too.
            let late = late_ns(&mut random, pause_ns).min(RANDOM_END_NS - 1);
            ended[(late / (RANDOM_END_NS / 8)) as usize] += 1;
        }
        // Each eighth of the time has its eighth of the ends, give or take five deviations of a fair draw.
        let fair = CALLS / 8;
        let deviation = (CALLS * 7 / 64).isqrt();
        let edge = CALLS * pause_ns / RANDOM_END_NS;
        for in_eighth in ended {
            assert!(in_eighth.abs_diff(fair) < 5 * deviation + edge, "pauses of {pause_ns} ns: {ended:?}");
        }
    }
}
