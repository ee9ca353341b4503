//! Running programs of tests, several at once, and reading what they print.
//!
//! Some programs compute (the simulator, models, fuzzing): as many of them as there are cores. Others start processes and wait for
//! sockets, disks and timers: more of them at once. Not both together, because nodes of the exchange start in the background
//! (docs/decisions/0007-turns-on-the-processor.md), and beside a program that computes they would get no processor time.
//! In both groups the longest start first; otherwise one of them would run alone at the end.
//!
//! The harness reports each test's time with `--report-time`. That option is unstable, so `RUSTC_BOOTSTRAP` is set for these
//! programs; nothing is compiled with it.

use std::collections::VecDeque;
use std::process::{Command, ExitStatus, Stdio};
use std::sync::{Mutex, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use crate::programs::Program;
use crate::report::Tally;
use crate::target_dir;

/// How programs are run.
#[derive(Debug)]
pub(crate) struct Way {
    /// Also tests that the gate leaves to `--all`.
    pub(crate) ignored: bool,
    /// Tests that are run by hand only: the harness skips every test whose name contains one of these.
    pub(crate) skip: Vec<String>,
    /// Variables of their environment.
    pub(crate) variables: Vec<(&'static str, String)>,
}

/// What runs at a time.
#[derive(Clone, Copy)]
struct Width {
    programs: usize,
    /// Tests within each of them.
    tests: usize,
}

/// How long a program may run in the gate, and with `--all`. Without a limit a program that hangs would leave no report.
const PATIENCE: [Duration; 2] = [Duration::from_mins(15), Duration::from_mins(45)];
/// How often a program that still runs is looked at.
const LOOK: Duration = Duration::from_millis(200);
/// How often those that still run are named.
const REMIND: Duration = Duration::from_secs(120);

/// The programs that run longest, which start first. A missing name costs time at the end, nothing else.
const FIRST: &[&str] = &[
    "pares-wice: model",
    "pares-sim: mutations",
    "pares-sim: seeds",
    "pares-wice: published",
    "pares-sim: wice",
    "pares-experiments",
    "pares-tpcc: paper",
    "pares-fuzz: short_runs",
    "pares-broker: rules",
    "pares-window: processes",
    "pares: system",
    "pares-brokerage",
    "pares-lab: drill",
    "pares-lab: faults",
    "pares-site: sql",
    "pares: sites",
    "pares-site: sites",
    "pares: broker",
];

/// Packages whose programs start processes and wait for them.
const WAITING: &[&str] = &[
    "bank",
    "pares",
    "pares-api",
    "pares-brokerage",
    "pares-lab",
    "pares-link",
    "pares-member",
    "pares-node",
    "pares-receiver",
    "pares-site",
    "pares-store",
    "pares-web",
];

/// Runs programs and counts their results.
pub(crate) fn run(programs: Vec<Program>, way: &Way) -> Tally {
    let cores = thread::available_parallelism().map_or(2, usize::from);
    let (waiting, computing) = programs.into_iter().partition(waits);
    let mut tally = Tally::default();
    group(computing, Width { programs: cores, tests: 1 }, way, &mut tally);
    group(waiting, Width { programs: cores + 1, tests: 2 }, way, &mut tally);
    tally
}

fn waits(program: &Program) -> bool {
    let package = program.name.split(':').next().unwrap_or(&program.name);
    WAITING.contains(&package)
}

/// Runs programs, as many at a time as the width says.
fn group(programs: Vec<Program>, width: Width, way: &Way, tally: &mut Tally) {
    let count = programs.len();
    let queue = Mutex::new(in_order(programs));
    let (done, results) = mpsc::channel();
    thread::scope(|scope| {
        for _ in 0..width.programs {
            let (queue, done) = (&queue, done.clone());
            scope.spawn(move || {
                while let Some(program) = next(queue) {
                    let result = one(&program, width.tests, way);
                    if done.send((program, result)).is_err() {
                        return;
                    }
                }
            });
        }
        drop(done);
        collect(&results, count, tally);
    });
}

fn next(queue: &Mutex<VecDeque<Program>>) -> Option<Program> {
    queue.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

fn in_order(mut programs: Vec<Program>) -> VecDeque<Program> {
    let place =
        |program: &Program| FIRST.iter().position(|name| *name == program.name).unwrap_or(FIRST.len());
    programs.sort_by_key(place);
    programs.into()
}

/// One program's output, its status (none: it was killed after [`PATIENCE`]), and how long it took.
type Outcome = std::io::Result<(String, Option<ExitStatus>, Duration)>;

fn collect(results: &mpsc::Receiver<(Program, Outcome)>, count: usize, tally: &mut Tally) {
    let begun = Instant::now();
    for number in 1.. {
        let (program, outcome) = loop {
            match results.recv_timeout(REMIND) {
                Ok(result) => break result,
                Err(mpsc::RecvTimeoutError::Timeout) => {
                    println!("  .. {} of {count} done after {} s", number - 1, begun.elapsed().as_secs());
                }
                Err(mpsc::RecvTimeoutError::Disconnected) => return,
            }
        };
        match outcome {
            Ok((output, status, took)) => {
                let ended = tally.add_program(&program.name, &output);
                println!("[{number:>3}/{count}] {:>6.1} s  {}: {ended}", took.as_secs_f64(), program.name);
                tally.check_status(&program.name, status);
            }
            Err(error) => {
                println!("[{number:>3}/{count}] {}: {error}", program.name);
                tally.fail(format!("{}: {error}", program.name));
            }
        }
    }
}

/// Runs one program to its end.
fn one(program: &Program, tests: usize, way: &Way) -> Outcome {
    let begun = Instant::now();
    // A file, not a pipe: a process that a test leaves behind would keep a pipe open.
    let path = target_dir().join("test-output").join(program.name.replace([':', ' ', '/'], "-"));
    std::fs::create_dir_all(path.parent().expect("it is in a folder"))?;
    let into = std::fs::File::create(&path)?;
    let mut command = Command::new(&program.executable);
    command.current_dir(&program.folder).env("CARGO_MANIFEST_DIR", &program.folder);
    command.env("RUSTC_BOOTSTRAP", "1").env("RUST_TEST_THREADS", tests.to_string());
    command.envs(way.variables.iter().map(|(name, value)| (name, value)));
    command.args(["-Zunstable-options", "--report-time", "--show-output"]);
    command.args(way.ignored.then_some("--include-ignored"));
    command.args(way.skip.iter().flat_map(|name| ["--skip", name]));
    let mut child = command.stdin(Stdio::null()).stdout(into.try_clone()?).stderr(into).spawn()?;
    let status = loop {
        match child.try_wait()? {
            Some(status) => break Some(status),
            None if begun.elapsed() < PATIENCE[usize::from(way.ignored)] => thread::sleep(LOOK),
            None => {
                child.kill()?;
                child.wait()?;
                break None;
            }
        }
    };
    Ok((String::from_utf8_lossy(&std::fs::read(&path)?).into_owned(), status, begun.elapsed()))
}
