//! The rounds of one scenario: who runs, in which order, and what is made of it.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use pares_book::{FastBook, NaiveBook};
use pares_books::{Books, Contender, Latency, Measured, Sums, Task};
use pares_flow::{BookMessage, BookScenario};
use pares_load::{LabError, LabResult, ScratchDirectory, failed};

use super::peers::Peers;
use super::{EngineFigures, ScenarioFigures};

/// Messages over which all engines must agree, or are said not to. The obviously right book scans, and would take an hour
/// for all of them.
const COMPARED: usize = 200_000;

/// Our book.
fn own() -> Contender {
    Contender::new::<Books<FastBook>>("pares", "")
}

/// All engines that participate.
pub(super) struct Contest {
    /// Seconds after which a run is stopped, and an engine sits out the other rounds.
    seconds: u64,
    own: Contender,
    peers: Option<Peers>,
    scratch: ScratchDirectory,
}

/// A stream, as it lies in memory and in a file.
struct Stream<'a> {
    messages: &'a [BookMessage],
    path: PathBuf,
}

/// What one engine has done in a scenario so far.
struct Entrant {
    name: String,
    tally: Sums,
    latency: Latency,
    /// Nanoseconds per message of each round.
    ns: Vec<f64>,
    spent: Duration,
    /// The fewest messages it took of those that are timed, if its time was up.
    stopped_at: Option<u64>,
}

impl Contest {
    /// With the books of others, or without.
    ///
    /// # Errors
    /// If they cannot be built.
    pub(super) fn new(with_peers: bool, seconds: u64) -> Result<Self, LabError> {
        let peers = if with_peers { Peers::start()? } else { None };
        Ok(Self { seconds, own: own(), peers, scratch: ScratchDirectory::create(None)? })
    }

    /// What must be known about the engines that participate.
    pub(super) fn notes(&self) -> Vec<(String, String)> {
        let own = [(self.own.name.to_owned(), self.own.note.to_owned())].into_iter();
        let peers = self.peers.iter().flat_map(Peers::introductions);
        let peers = peers.map(|peer| (peer.name.clone(), peer.note.clone()));
        own.chain(peers).filter(|(_, note)| !note.is_empty()).collect()
    }

    /// Measures every engine over one scenario.
    ///
    /// # Errors
    /// If our two books disagree, or another process fails.
    pub(super) fn hold(&mut self, scenario: &BookScenario, runs: u32) -> Result<ScenarioFigures, LabError> {
        let messages = scenario.messages();
        let compared = &messages[..COMPARED.min(messages.len())];
        check_own(scenario, compared)?;
        let whole = self.stream(&messages, scenario.name)?;
        let beginning = self.stream(compared, &format!("{}-beginning", scenario.name))?;
        let mut entrants = self.enter(&beginning)?;
        let bar = pares_text::progress::steps(scenario.name, u64::from(runs) + 1);
        for _ in 0..runs {
            for entrant in &mut entrants {
                self.time(entrant, &whole)?;
            }
            bar.inc(1);
        }
        for entrant in &mut entrants {
            let measured = self.run(&entrant.name, Task::Latency, &whole)?;
            entrant.latency = measured.latency.unwrap_or_default();
        }
        bar.finish_and_clear();
        let all = self.run(self.own.name, Task::Check, &whole)?.tally.unwrap_or_default();
        let truth = entrants[0].tally;
        Ok(ScenarioFigures {
            scenario: scenario.name,
            messages: messages.len(),
            compared: compared.len(),
            resting: all.resting,
            trades: all.trades,
            engines: entrants.iter().map(|entrant| entrant.figures(&truth)).collect(),
        })
    }

    fn stream<'a>(&self, messages: &'a [BookMessage], name: &str) -> Result<Stream<'a>, LabError> {
        let path = self.scratch.path().join(name);
        if self.peers.is_some() {
            pares_books::save(messages, &path).map_err(LabError::io("writing a stream"))?;
        }
        Ok(Stream { messages, path })
    }

    /// All engines, with what they make of the beginning.
    fn enter(&mut self, beginning: &Stream<'_>) -> Result<Vec<Entrant>, LabError> {
        let own = [self.own.name.to_owned()].into_iter();
        let peers = self.peers.iter().flat_map(Peers::introductions).map(|peer| peer.name.clone());
        let names: Vec<String> = own.chain(peers).collect();
        let enter = |name: String| {
            let tally = self.run(&name, Task::Check, beginning)?.tally.unwrap_or_default();
            let (latency, ns, spent) = (Latency::default(), Vec::new(), Duration::ZERO);
            Ok(Entrant { name, tally, latency, ns, spent, stopped_at: None })
        };
        names.into_iter().map(enter).collect()
    }

    /// One round of one engine, unless its time is up and it ran at least once.
    fn time(&mut self, entrant: &mut Entrant, stream: &Stream<'_>) -> LabResult {
        if !entrant.ns.is_empty() && entrant.spent.as_secs() >= self.seconds {
            return Ok(());
        }
        let begun = Instant::now();
        let Measured { messages, elapsed_ns, .. } = self.run(&entrant.name, Task::Throughput, stream)?;
        entrant.spent += begun.elapsed();
        entrant.ns.push(elapsed_ns as f64 / messages as f64);
        if messages < stream.messages.len() as u64 {
            entrant.stopped_at = entrant.stopped_at.into_iter().chain([messages]).min();
        }
        Ok(())
    }

    fn run(&mut self, name: &str, task: Task, stream: &Stream<'_>) -> Result<Measured, LabError> {
        if name == self.own.name {
            return Ok(self.own.run(task, stream.messages, Duration::from_secs(self.seconds)));
        }
        let peers = self.peers.as_mut().expect("who is not ours is a peer");
        peers.run(name, task, self.seconds, &stream.path).map_err(failed(name))
    }
}

/// The obviously right book and the fast one say the same.
fn check_own(scenario: &BookScenario, messages: &[BookMessage]) -> LabResult {
    let of = |contender: Contender| contender.run(Task::Check, messages, Duration::MAX).tally;
    let (right, fast) = (of(Contender::new::<Books<NaiveBook>>("naive", "")), of(own()));
    if fast == right {
        return Ok(());
    }
    Err(LabError::Failed(format!(
        "{}: after {} messages the fast book has {fast:?}, the obviously right one {right:?}",
        scenario.name,
        messages.len()
    )))
}

impl Entrant {
    fn figures(&self, truth: &Sums) -> EngineFigures {
        let mut ns = self.ns.clone();
        ns.sort_by(f64::total_cmp);
        let trades = |tally: &Sums| (tally.trades, tally.shares, tally.trades_checksum);
        let (median, best) = (ns[ns.len() / 2], ns[0]);
        EngineFigures {
            engine: self.name.clone(),
            runs: ns.len(),
            stopped_at: self.stopped_at,
            mmsg_per_s: 1e3 / median,
            mmsg_per_s_best: 1e3 / best,
            ns_per_message: median,
            p50_ns: self.latency.p50_ns,
            p99_ns: self.latency.p99_ns,
            p999_ns: self.latency.p999_ns,
            trades_agree: trades(&self.tally) == trades(truth),
            trades: self.tally.trades,
            shares: self.tally.shares,
        }
    }
}
