//! Two venues as text, in `tests/scenarios`: what each receives and when it steps; below that, indented, what it executes and with what
//! result. `UPDATE_EXPECT=1` writes what they do.
//!
//! ```text
//! window 8              two new venues, with a window of eight positions
//! A < 1:1 buy 100 10    venue A receives the first request of gateway 1
//! A step                it proposes, conforms, executes; `A step one`: one position at most
//! recorded 3            the recorders have the positions below 3
//! B ignores 1:1 buy ..  it was ordered before it reaches B
//! A committed           the committed stream, as far as recorded, reaches A
//! state                 where they are, and whether their states are the same
//! ```

use std::fmt::Write;
use std::path::Path;

use expect_test::expect_file;
use pares_book::{Book, FastBook, NaiveBook};
use pares_sequencer::Sequencer;
use pares_types::{Event, Position, Request, Side};
use pares_venue::{Progress, Stall};

use crate::rig::{Result, Venue, cancel, enter, window};

struct Script {
    a: Venue<FastBook>,
    b: Venue<NaiveBook>,
    recorded: Vec<Result>,
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

fn step<B: Book>(venue: &mut Venue<B>, step: impl Fn(&mut Venue<B>) -> Progress) -> String {
    let before = venue.out.all.len();
    let progress = step(venue);
    let mut text = format!("executes {}", progress.executed);
    match progress.stall {
        Some(Stall::AwaitsBody(id)) => write!(text, ", awaits {id}").unwrap(),
        Some(stall) => write!(text, ", {stall:?}").unwrap(),
        None => {}
    }
    if progress.executed > 0 && progress.won == 0 {
        text.push_str(", wins none");
    }
    venue.out.all[before..].iter().for_each(|result| write!(text, "\n{}", show(result)).unwrap());
    text
}

impl Script {
    fn new(positions: usize) -> Self {
        let window = window(positions);
        Self { a: Venue::new(&window), b: Venue::new(&window), recorded: Vec::new() }
    }

    /// What comes of a line.
    fn say(&mut self, line: &str) -> String {
        match line.split_whitespace().collect::<Vec<&str>>()[..] {
            ["window", positions] => *self = Self::new(positions.parse().unwrap()),
            ["A", "<", ref request @ ..] => self.a.receive([&parse(request)]),
            ["B", "<", ref request @ ..] => self.b.receive([&parse(request)]),
            ["B", "ignores", ref request @ ..] => assert!(!self.b.shard.on_request(&parse(request))),
            ["A", "step"] => return step(&mut self.a, Venue::step),
            ["B", "step"] => return step(&mut self.b, Venue::step),
            ["A", "step", "one"] => return step(&mut self.a, Venue::step_one),
            ["B", "step", "one"] => return step(&mut self.b, Venue::step_one),
            ["recorded", to] => self.record(to.parse().unwrap()),
            ["A", "committed"] => return committed(&mut self.a, &self.recorded),
            ["B", "committed"] => return committed(&mut self.b, &self.recorded),
            ["state"] => {
                let same = self.a.shard.state_hash() == self.b.shard.state_hash();
                let (a, b) = (self.a.shard.position(), self.b.shard.position());
                return format!(
                    "A at {a}, B at {b}, {}",
                    if same { "same state" } else { "different states" }
                );
            }
            _ => panic!("{line}?"),
        }
        String::new()
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

#[test]
fn two_venues_end_each_scenario_as_it_is_written() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scenarios");
    let mut files: Vec<_> = dir.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    assert!(files.len() >= 4, "{} scenarios", files.len());
    for file in files {
        let (mut run, mut trace) = (Script::new(8), String::new());
        let text = std::fs::read_to_string(&file).unwrap();
        for line in text.lines().filter(|line| !line.starts_with(' ')) {
            writeln!(trace, "{line}").unwrap();
            let said = if line.starts_with('#') { String::new() } else { run.say(line) };
            said.lines().for_each(|said| writeln!(trace, "    {said}").unwrap());
        }
        expect_file![file].assert_eq(&trace);
    }
}
