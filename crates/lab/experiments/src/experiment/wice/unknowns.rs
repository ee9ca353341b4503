//! What the paper leaves open, varied one at a time.

use pares_load::LabError;
use pares_text::grouped;
use pares_tpcc::{RunResult, Setting, Waiters};
use serde::Serialize;

use super::figure::{CLIENTS, LINES, Line, Point, figures};
use super::{Scope, both};
use crate::experiment::report::Grid;

/// The most clients that the paper calls safe.
pub(super) const SAFE: u32 = 4_000;
/// Where growth is looked at: from here to [`SAFE`].
pub(super) const FEW: u32 = 1_000;

/// A parameter changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// The database has the size of 6,000 clients, however many there are.
    FixedWarehouses,
    Scattered,
    TakeTurns,
    SmallWriteSets,
    LargeWriteSets,
    HugeWriteSets,
    HugeSentOnce,
    Forgotten,
    Keying,
    ApplyFive,
    ApplyTen,
}

use Unknown::{
    ApplyFive, ApplyTen, FixedWarehouses, Forgotten, HugeSentOnce, HugeWriteSets, Keying, LargeWriteSets,
    Scattered, SmallWriteSets, TakeTurns,
};

/// What is run: with which change, and how many clients.
const VARIED: [(Unknown, u32); 15] = [
    (FixedWarehouses, FEW),
    (FixedWarehouses, SAFE),
    (Scattered, SAFE),
    (TakeTurns, FEW),
    (TakeTurns, SAFE),
    (SmallWriteSets, SAFE),
    (LargeWriteSets, SAFE),
    (HugeWriteSets, SAFE),
    (HugeSentOnce, SAFE),
    (Forgotten, SAFE),
    (Keying, 6_000),
    (ApplyFive, SAFE),
    (ApplyFive, 6_000),
    (ApplyTen, SAFE),
    (ApplyTen, 6_000),
];

pub(super) const RUNS: usize = VARIED.len() * LINES.len();

impl Unknown {
    fn name(self) -> &'static str {
        match self {
            FixedWarehouses => "600 warehouses for any number of clients",
            Scattered => "clients of a warehouse at all servers",
            TakeTurns => "waiters take turns (locks before the snapshot)",
            SmallWriteSets => "write sets of 1 KiB",
            LargeWriteSets => "write sets of 8 KiB",
            HugeWriteSets => "write sets of 12 KiB",
            HugeSentOnce => "12 KiB, DBSM sends once over the link",
            Forgotten => "aborted transactions are not sent again",
            Keying => "clients key before they send",
            ApplyFive => "applying costs 5 %",
            ApplyTen => "applying costs 10 %",
        }
    }

    fn change(self, setting: Setting) -> Setting {
        match self {
            FixedWarehouses => Setting { warehouses: Some(CLIENTS[CLIENTS.len() - 1] / 10), ..setting },
            Scattered => Setting { scattered: true, ..setting },
            TakeTurns => Setting { waiters: Waiters::TakeTurns, ..setting },
            SmallWriteSets => Setting { write_set_bytes: 1 << 10, ..setting },
            LargeWriteSets => Setting { write_set_bytes: 8 << 10, ..setting },
            HugeWriteSets => Setting { write_set_bytes: 12 << 10, ..setting },
            HugeSentOnce => Setting { write_set_bytes: 12 << 10, unicast: false, ..setting },
            Forgotten => Setting { resubmit: pares_tpcc::Resubmit::Never, ..setting },
            Keying => Setting { keying: true, ..setting },
            ApplyFive => Setting { apply_percent: 5, ..setting },
            ApplyTen => Setting { apply_percent: 10, ..setting },
        }
    }
}

/// All lines with one parameter changed.
#[derive(Clone, Debug)]
pub(super) struct Varied {
    /// None for the figure's own.
    pub(super) unknown: Option<Unknown>,
    pub(super) clients: u32,
    outcomes: Vec<RunResult>,
}

impl Varied {
    pub(super) fn of(&self, line: Line) -> &RunResult {
        &self.outcomes[line as usize]
    }

    fn name(&self) -> &'static str {
        self.unknown.map_or("as in the figure", Unknown::name)
    }
}

impl Serialize for Varied {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut fields = serde_json::Map::new();
        fields.insert("changed".into(), self.name().into());
        fields.insert("clients".into(), self.clients.into());
        for line in LINES {
            fields.insert(line.name().into(), figures(self.of(line)));
        }
        fields.serialize(serializer)
    }
}

pub(super) fn run(scope: &Scope, points: &[Point]) -> Result<Vec<Varied>, LabError> {
    let own = points.iter().filter(|point| [FEW, SAFE, 6_000].contains(&point.clients)).map(|point| {
        let outcomes = LINES.into_iter().map(|line| point.of(line).clone()).collect();
        Ok(Varied { unknown: None, clients: point.clients, outcomes })
    });
    let varied = VARIED.into_iter().map(|(unknown, clients)| {
        let outcome = |line: Line| scope.run(&scope.setting(unknown.change(line.setting(clients)), true));
        let outcomes = LINES.into_iter().map(outcome).collect::<Result<_, _>>()?;
        Ok(Varied { unknown: Some(unknown), clients, outcomes })
    });
    own.chain(varied).collect()
}

pub(super) fn grid(varied: &[Varied]) -> Grid {
    let head = vec![
        "changed",
        ">clients",
        ">aborted, %, C_A / C_B: DBSM CLUSTER",
        ">DBSM",
        ">DBSM (sequencer)",
        ">WICE",
        ">latency with resubmissions, ms: DBSM",
        ">DBSM (sequencer)",
        ">WICE",
        ">transactions per minute of both, DBSM CLUSTER",
        ">its processors, %",
    ];
    let row = |varied: &Varied| {
        let aborts = LINES.map(|line| both(varied.of(line), |side| side.abort_percent, 2));
        let far = [Line::Dbsm, Line::Sequencer, Line::Wice];
        let latency = far.map(|line| both(varied.of(line), |side| side.whole.mean_ms, 0));
        let near = varied.of(Line::Cluster);
        let per_minute: f64 = near.sides.iter().map(|side| side.per_minute).sum();
        let ends = [format!("{per_minute:.0}"), both(near, |side| side.processor_percent, 0)];
        let begins = [varied.name().to_owned(), grouped(varied.clients.into())];
        begins.into_iter().chain(aborts).chain(latency).chain(ends).collect()
    };
    Grid { head, rows: varied.iter().map(row).collect() }
}
