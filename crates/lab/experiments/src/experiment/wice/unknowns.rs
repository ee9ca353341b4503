//! What the paper leaves open, varied one at a time.

use pares_load::LabError;
use pares_text::grouped;
use pares_tpcc::{Protocol, Setting, Waiters};
use serde::Serialize;

use super::figure::{CLIENTS, Point};
use super::{Scope, both};
use crate::experiment::report::Grid;

/// The most clients that the paper calls safe.
pub(super) const SAFE: u32 = 4_000;
/// Where growth is looked at: from here to [`SAFE`].
pub(super) const FEW: u32 = 1_000;

/// A parameter changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unknown {
    /// None: the figure's own.
    AsInFigure,
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
    ApplyFive, ApplyTen, AsInFigure, FixedWarehouses, Forgotten, HugeSentOnce, HugeWriteSets, Keying,
    LargeWriteSets, Scattered, SmallWriteSets, TakeTurns,
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

pub(super) const RUNS: usize = VARIED.len() * Protocol::ALL.len();

impl Unknown {
    fn name(self) -> &'static str {
        match self {
            AsInFigure => "as in the figure",
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
            AsInFigure => setting,
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
#[derive(Clone, Debug, Serialize)]
pub(super) struct Varied {
    #[serde(rename = "changed")]
    pub(super) unknown: Unknown,
    #[serde(flatten)]
    pub(super) point: Point,
}

impl Serialize for Unknown {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

pub(super) fn run(scope: &Scope, points: &[Point]) -> Result<Vec<Varied>, LabError> {
    let own = points.iter().filter(|point| [FEW, SAFE, 6_000].contains(&point.clients));
    let own = own.map(|point| Ok(Varied { unknown: AsInFigure, point: point.clone() }));
    let varied = VARIED.into_iter().map(|(unknown, clients)| {
        let setting = |line: Protocol| scope.setting(unknown.change(Setting::new(line, clients, 0)), true);
        Ok(Varied { unknown, point: Point::run(scope, clients, setting)? })
    });
    own.chain(varied).collect()
}

pub(super) fn grid(varied: &[Varied]) -> Grid {
    let aborts = |of: &Varied, line: Protocol| both(of.point.of(line), |side| side.abort_percent, 2);
    let latency = |of: &Varied, line: Protocol| both(of.point.of(line), |side| side.whole.mean_ms, 0);
    let per_minute = |of: &Varied| -> f64 {
        of.point.of(Protocol::DbsmCluster).sides.iter().map(|side| side.per_minute).sum()
    };
    Grid::of(
        varied,
        &[
            ("changed", &|of| of.unknown.name().to_owned()),
            (">clients", &|of| grouped(of.point.clients.into())),
            (">aborted, %, C_A / C_B: DBSM CLUSTER", &|of| aborts(of, Protocol::DbsmCluster)),
            (">DBSM", &|of| aborts(of, Protocol::Dbsm)),
            (">DBSM (sequencer)", &|of| aborts(of, Protocol::DbsmSequencer)),
            (">WICE", &|of| aborts(of, Protocol::Wice)),
            (">latency with resubmissions, ms: DBSM", &|of| latency(of, Protocol::Dbsm)),
            (">DBSM (sequencer)", &|of| latency(of, Protocol::DbsmSequencer)),
            (">WICE", &|of| latency(of, Protocol::Wice)),
            (">transactions per minute of both, DBSM CLUSTER", &|of| format!("{:.0}", per_minute(of))),
            (">its processors, %", &|of| {
                both(of.point.of(Protocol::DbsmCluster), |side| side.processor_percent, 0)
            }),
        ],
    )
}
