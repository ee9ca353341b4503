//! Figures 6.3 and 6.4: the paper's workers, computed.
//!
//! Commands are loaded in sections, to one worker after the other, as fast as eight of them execute. A worker executes one command after the other, and waits when it needs a quote that nobody has: the quote manager gives each question up after
//! 20 ms, 25, 35 and so on, and asks again.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use pares_broker::StockSymbol;
use pares_random::Random;
use pares_text::grouped;
use serde::Serialize;

use super::super::report::Grid;
use super::runs::Runs;

const WORKERS: [usize; 5] = [8, 9, 10, 11, 12];
/// Commands of a section.
const SECTION: usize = 3_300;
/// A worker takes this for a command, us: 3,600 a second.
const COMMAND_US: u64 = 278;
/// A section is loaded every so often, us: 28,800 commands a second.
const LOAD_US: u64 = 114_583;
/// An answer without a delay, us.
const WAY_US: u64 = 9_000;
/// Of a thousand answers so many have no delay.
const AT_ONCE: u64 = 660;
/// How long each question is waited for, us: 20 ms, and 5 ms more, twice that, ..
const PATIENCE_US: [u64; 6] = [20_000, 25_000, 35_000, 55_000, 95_000, 175_000];
/// A quote is used for so long, us.
const WINDOW_US: u64 = 60_000_000;
/// How often it is looked at, us.
const SAMPLE_US: u64 = 500_000;

/// What came of a number of workers.
#[derive(Clone, Debug, Serialize)]
pub(super) struct WorkersPoint {
    pub(super) workers: usize,
    pub(super) seconds: f64,
    commands_per_s: f64,
    most_waiting: usize,
    /// When the first worker had nothing to do though sections were still loaded, the beginning apart.
    starves_s: Option<f64>,
    /// Twice a second, what each worker had left.
    pub(super) left: Vec<Vec<usize>>,
}

/// All numbers of workers.
pub(super) fn run(needed: &[Option<StockSymbol>]) -> Vec<WorkersPoint> {
    WORKERS.iter().map(|workers| Model::new(*workers, needed).run()).collect()
}

struct Model<'a> {
    needed: &'a [Option<StockSymbol>],
    /// How many commands each worker has executed.
    done: Vec<usize>,
    /// When each worker is free; the earliest is next.
    free: BinaryHeap<Reverse<(u64, usize)>>,
    /// From when on each stock's quote is there.
    known: BTreeMap<StockSymbol, u64>,
    draw: Random,
    left: Vec<Vec<usize>>,
}

impl<'a> Model<'a> {
    fn new(workers: usize, needed: &'a [Option<StockSymbol>]) -> Self {
        let free = (0..workers).map(|worker| Reverse((0, worker))).collect();
        let (known, draw) = (BTreeMap::new(), Random::new(1));
        Self { needed, done: vec![0; workers], free, known, draw, left: Vec::new() }
    }

    /// When a section is loaded.
    fn loaded_us(section: usize) -> u64 {
        section as u64 * LOAD_US
    }

    /// The place in the workload of a worker's next command, and its section.
    fn next(&self, worker: usize) -> Option<(usize, usize)> {
        let (section, place) = (self.done[worker] / SECTION, self.done[worker] % SECTION);
        let section = section * self.done.len() + worker;
        let at = section * SECTION + place;
        (at < self.needed.len()).then_some((at, section))
    }

    fn run(mut self) -> WorkersPoint {
        let mut end_us = 0;
        while let Some(Reverse((now_us, worker))) = self.free.pop() {
            self.look(now_us);
            let Some((at, section)) = self.next(worker) else { continue };
            let mut begin_us = now_us.max(Self::loaded_us(section));
            if begin_us > now_us {
                // Other workers may continue meanwhile.
                self.free.push(Reverse((begin_us, worker)));
                continue;
            }
            if let Some(symbol) = self.needed[at] {
                begin_us = self.quote(symbol, begin_us);
            }
            self.done[worker] += 1;
            end_us = end_us.max(begin_us + COMMAND_US);
            self.free.push(Reverse((begin_us + COMMAND_US, worker)));
        }
        self.point(end_us)
    }

    /// When a quote is there that is wanted now.
    fn quote(&mut self, symbol: StockSymbol, now_us: u64) -> u64 {
        match self.known.get(&symbol) {
            Some(from) if now_us < from + WINDOW_US => now_us.max(*from),
            _ => {
                let from = now_us + self.asked();
                self.known.insert(symbol, from);
                from
            }
        }
    }

    /// How long the paper's quote manager takes for a quote.
    fn asked(&mut self) -> u64 {
        let mut gone = 0;
        for patience in PATIENCE_US {
            if self.draw.below(1_000) < AT_ONCE {
                return gone + WAY_US;
            }
            gone += patience;
        }
        gone + 1_000_000 + WAY_US
    }

    /// Commands that a worker has been loaded with until then.
    fn loaded(&self, worker: usize, now_us: u64) -> usize {
        let sections = (now_us / LOAD_US) as usize + 1;
        let own = (sections + self.done.len() - 1).saturating_sub(worker) / self.done.len();
        let all = self.needed.len();
        let full = |section: usize| all.saturating_sub(section * SECTION).min(SECTION);
        (0..own).map(|round| full(round * self.done.len() + worker)).sum()
    }

    fn look(&mut self, now_us: u64) {
        while self.left.len() as u64 * SAMPLE_US <= now_us {
            let at_us = self.left.len() as u64 * SAMPLE_US;
            let left = |(worker, done): (usize, &usize)| self.loaded(worker, at_us).saturating_sub(*done);
            self.left.push(self.done.iter().enumerate().map(left).collect());
        }
    }

    fn point(self, end_us: u64) -> WorkersPoint {
        let seconds = end_us as f64 / 1e6;
        let total = |left: &Vec<usize>| left.iter().sum::<usize>();
        let most = self.left.iter().map(total).max().unwrap_or_default();
        let peak = self.left.iter().position(|left| total(left) == most).unwrap_or_default();
        let last_load = Self::loaded_us(self.needed.len() / SECTION);
        let while_loaded = |at: usize| (at as u64 * SAMPLE_US) < last_load;
        let starves = (peak..self.left.len()).find(|&at| while_loaded(at) && self.left[at].contains(&0));
        WorkersPoint {
            workers: self.done.len(),
            seconds,
            commands_per_s: self.needed.len() as f64 / seconds,
            most_waiting: most,
            starves_s: starves.map(|at| (at as u64 * SAMPLE_US) as f64 / 1e6),
            left: self.left,
        }
    }
}

/// The paper's workers, and our runs of the same workload.
pub(super) fn table(points: &[WorkersPoint], runs: &Runs) -> Grid {
    let theirs = points.iter().map(|point| {
        let starves = point.starves_s.map_or("no".into(), |at| format!("from {at:.1} s on"));
        vec![
            format!("{} workers of the paper, computed", point.workers),
            format!("{:.1}", point.seconds),
            grouped(point.commands_per_s as u64),
            grouped(point.most_waiting as u64),
            starves,
        ]
    });
    let ours = runs.large().map(|(name, figures)| {
        let open = figures.backlog.iter().flatten().map(|at| at.for_quotes + at.for_users + at.under_way);
        vec![
            format!("here, measured: {name}"),
            format!("{:.1}", figures.seconds),
            grouped(figures.commands_per_s as u64),
            grouped(open.max().unwrap_or_default() as u64),
            "-".into(),
        ]
    });
    let head =
        vec!["", ">seconds", ">commands/s", ">most commands waiting", "workers without work while loading"];
    Grid { head, rows: theirs.chain(ours).collect() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_workers_keep_pace_twelve_run_out_of_work() {
        let stocks: Vec<_> = (0..26).map(|n| StockSymbol::new(&char::from(b'A' + n).to_string())).collect();
        let needed: Vec<_> = (0..400_000).map(|n| stocks[n % 26].filter(|_| n % 4 == 0)).collect();
        let points = run(&needed);
        let (eight, twelve) = (&points[0], &points[4]);
        assert!((13.0..17.0).contains(&eight.seconds), "{}", eight.seconds);
        assert!(twelve.starves_s.is_some() && twelve.most_waiting < eight.most_waiting * 2);
        let last = eight.left.last().unwrap().iter().sum::<usize>();
        assert!(last < SECTION, "all is executed in the end: {last}");
    }
}
