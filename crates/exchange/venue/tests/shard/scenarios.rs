//! Two venues as text: what each receives and when it steps; what it executes and with what result.
//!
//! ```text
//! A < 1:1 buy 100 10    venue A receives the first request of gateway 1
//! A step                it proposes, conforms, executes
//! recorded 3            the recorders have the positions below 3
//! A committed           the committed stream, as far as recorded, reaches A
//! ```

use std::fmt::Write;

use expect_test::{Expect, expect};
use pares_book::{Book, FastBook, NaiveBook};
use pares_sequencer::Sequencer;
use pares_types::{Event, Position, Request, Side};
use pares_venue::Stall;

use crate::rig::{Result, Venue, cancel, enter, window};

struct Script {
    a: Venue<FastBook>,
    b: Venue<NaiveBook>,
    recorded: Vec<Result>,
    trace: String,
}

fn parse(words: &[&str]) -> Request {
    let id = |word: &str| {
        let (gateway, sequence) = word.split_once(':').unwrap();
        (gateway.parse().unwrap(), sequence.parse().unwrap())
    };
    let (gateway, sequence) = id(words[0]);
    let number = |at: usize| words[at].parse::<u64>().unwrap();
    match words[1] {
        "buy" => enter(gateway, sequence, Side::Buy, number(2) as i64, number(3)),
        "sell" => enter(gateway, sequence, Side::Sell, number(2) as i64, number(3)),
        "cancel" => {
            let (other, target) = id(words[2]);
            cancel(gateway, sequence, enter(other, target, Side::Buy, 1, 1).id)
        }
        other => panic!("{other}?"),
    }
}

fn show(result: &Result) -> String {
    let Result { at, request, outcome, events } = result;
    let mut text = format!(
        "  {} {} {:?} executed {} remaining {}",
        at.position, request.id, outcome.status, outcome.executed, outcome.remaining
    );
    for event in events {
        match event {
            Event::Fill { resting, price, quantity, .. } => {
                write!(text, ", {quantity} with {resting} at {}", price.0).unwrap();
            }
            Event::Cancelled { order, quantity, .. } => write!(text, ", {quantity} of {order} gone").unwrap(),
            other => write!(text, ", {other:?}").unwrap(),
        }
    }
    text
}

fn step<B: Book>(venue: &mut Venue<B>) -> String {
    let before = venue.out.all.len();
    let progress = venue.step();
    let mut text = format!("executes {}", progress.executed);
    match progress.stall {
        Some(Stall::AwaitsBody(id)) => write!(text, ", awaits {id}").unwrap(),
        Some(stall) => write!(text, ", {stall:?}").unwrap(),
        None => {}
    }
    venue.out.all[before..].iter().for_each(|result| write!(text, "\n{}", show(result)).unwrap());
    text
}

impl Script {
    fn line(&mut self, line: &str) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["A", "<", ref request @ ..] => self.a.receive([&parse(request)]),
            ["B", "<", ref request @ ..] => self.b.receive([&parse(request)]),
            ["A", "step"] => self.say("A", |script| step(&mut script.a)),
            ["B", "step"] => self.say("B", |script| step(&mut script.b)),
            ["recorded", to] => self.record(to.parse().unwrap()),
            ["A", "committed"] => self.say("A", |script| committed(&mut script.a, &script.recorded)),
            ["B", "committed"] => self.say("B", |script| committed(&mut script.b, &script.recorded)),
            _ => panic!("{line}?"),
        }
    }

    fn say(&mut self, who: &str, what: impl FnOnce(&mut Self) -> String) {
        let text = what(self);
        writeln!(self.trace, "{who} {text}").unwrap();
    }

    fn record(&mut self, to: u64) {
        for position in self.recorded.len() as u64..to {
            let mut all = self.a.out.all.iter().chain(&self.b.out.all);
            let result = all.find(|result| result.at.position == Position(position));
            self.recorded.push(result.expect("somebody executed it").clone());
        }
        self.a.window.raise_recorded(Position(to));
    }
}

fn committed<B: Book>(venue: &mut Venue<B>, records: &[Result]) -> String {
    let follow = |record: &&Result| venue.follow(record).unwrap();
    format!("observes {}", records.iter().filter(follow).count())
}

fn check(window_positions: usize, script: &str, expected: &Expect) {
    let window = window(window_positions);
    let (a, b) = (Venue::new(&window), Venue::new(&window));
    let mut run = Script { a, b, recorded: Vec::new(), trace: String::new() };
    script.lines().map(str::trim).filter(|line| !line.is_empty()).for_each(|line| run.line(line));
    let same = run.a.shard.state_hash() == run.b.shard.state_hash();
    writeln!(run.trace, "A at {}, B at {}", run.a.shard.position(), run.b.shard.position()).unwrap();
    writeln!(run.trace, "{}", if same { "same state" } else { "different states" }).unwrap();
    expected.assert_eq(&run.trace);
}

#[test]
fn venue_dies_between_decision_and_result() {
    check(
        8,
        "
        A < 1:1 buy 100 10
        A < 2:1 sell 100 4
        B < 2:1 sell 100 4
        A step
        B step
        B < 1:1 buy 100 10
        B step
        B step
        ",
        &expect![[r#"
            A executes 2
              0 1:1 Resting executed 0 remaining 10
              1 2:1 Filled executed 4 remaining 0, 4 with 1:1 at 100
            B executes 0, awaits 1:1
            B executes 2
              0 1:1 Resting executed 0 remaining 10
              1 2:1 Filled executed 4 remaining 0, 4 with 1:1 at 100
            B executes 0
            A at 2, B at 2
            same state
        "#]],
    );
}

#[test]
fn follower_observes_records_and_takes_over() {
    check(
        8,
        "
        A < 1:1 buy 100 10
        A < 1:2 buy 101 5
        A < 1:3 sell 100 12
        A step
        recorded 2
        B committed
        B < 1:1 buy 100 10
        B < 1:2 buy 101 5
        B < 1:3 sell 100 12
        B < 1:4 cancel 1:1
        B step
        B step
        A < 1:4 cancel 1:1
        A step
        ",
        &expect![[r#"
            A executes 3
              0 1:1 Resting executed 0 remaining 10
              1 1:2 Resting executed 0 remaining 5
              2 1:3 Filled executed 12 remaining 0, 5 with 1:2 at 101, 7 with 1:1 at 100
            B observes 2
            B executes 2
              2 1:3 Filled executed 12 remaining 0, 5 with 1:2 at 101, 7 with 1:1 at 100
              3 1:4 Cancelled executed 7 remaining 0, 3 of 1:1 gone
            B executes 0
            A executes 1
              3 1:4 Cancelled executed 7 remaining 0, 3 of 1:1 gone
            A at 4, B at 4
            same state
        "#]],
    );
}

#[test]
fn sleeper_wakes_behind_a_window_of_four() {
    check(
        4,
        "
        A < 1:1 buy 100 10
        A < 1:2 buy 101 5
        A < 1:3 sell 100 12
        A < 1:4 cancel 1:1
        A < 1:5 buy 90 1
        A step
        recorded 4
        A step
        recorded 5
        B < 1:1 buy 100 10
        B step
        B committed
        B step
        ",
        &expect![[r#"
            A executes 4, WindowFull
              0 1:1 Resting executed 0 remaining 10
              1 1:2 Resting executed 0 remaining 5
              2 1:3 Filled executed 12 remaining 0, 5 with 1:2 at 101, 7 with 1:1 at 100
              3 1:4 Cancelled executed 7 remaining 0, 3 of 1:1 gone
            A executes 1
              4 1:5 Resting executed 0 remaining 1
            B executes 0, TooFarBehind
            B observes 5
            B executes 0
            A at 5, B at 5
            same state
        "#]],
    );
}
