//! The drill under way.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use clap::ValueEnum;
use hdrhistogram::Histogram;
use pares_load::{FrontTold, LabError, LabResult, Load, Observed, Records, Stretch};
use pares_node::NodeId;
use pares_text::progress;
use pares_types::GatewayId;
use rustix::process::Signal;

use super::expected_reports::FrontNotes;
use super::stage::Stage;
use super::{Args, FrontProtocol, MEMBERS, Outcome, Tally, VICTIMS};
use crate::drill::figures::Gaps;

/// How long the load runs before anything counts, and continues behind the last fault.
const WARM_UP: Duration = Duration::from_millis(500);
/// How long members may take to continue, and what was killed to be back, after the last answer that they received;
/// ten times that in all.
const PATIENCE: Duration = Duration::from_secs(60);

/// Who is killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Victim {
    Gateway(GatewayId),
    Server(usize),
}

impl Victim {
    /// Gateways by turns; over HTTP a server before each.
    fn of(round: u64, protocol: FrontProtocol) -> Self {
        let (turn, is_server) =
            if protocol.is_web() { (round / 2, round.is_multiple_of(2)) } else { (round, false) };
        let place = (turn % u64::from(VICTIMS)) as u16;
        if is_server { Self::Server(place.into()) } else { Self::Gateway(GatewayId(place)) }
    }
}

pub(super) struct KillFront {
    protocol: FrontProtocol,
    stage: Stage,
    told: Arc<FrontTold>,
    records: Records<FrontNotes>,
    fronts: Load,
    others: Load,
    /// Longest times without an answer, ns: to the others around each fault and in quiet, and to those hit.
    gaps: Vec<u64>,
    baseline: Vec<u64>,
    moved: Vec<u64>,
}

impl KillFront {
    pub(super) fn start(args: &Args) -> Result<Self, LabError> {
        let stage = Stage::set(args)?;
        let told = Arc::<FrontTold>::default();
        let [fronts, others] = stage.plans(args, &told)?;
        let supervisor = &stage.system.supervisor;
        let notes = FrontNotes::of(MEMBERS, args.protocol);
        Ok(Self {
            protocol: args.protocol,
            records: Records::new(supervisor.layout(), supervisor.config(), notes),
            fronts: Load::start(fronts)?,
            others: Load::start(others)?,
            stage,
            told,
            gaps: Vec::new(),
            baseline: Vec::new(),
            moved: Vec::new(),
        })
    }

    pub(super) fn rounds(&mut self, args: &Args) -> LabResult {
        self.pause(WARM_UP)?;
        self.others.observed().forget_latencies();
        for round in progress::over("drilling", 0..args.count) {
            self.round(round, Duration::from_millis(args.quiet_ms))?;
        }
        self.pause(WARM_UP)
    }

    /// A quiet stretch, then a process is killed, its members continue elsewhere, and it comes back.
    fn round(&mut self, round: u64, quiet: Duration) -> LabResult {
        // Not in step with anything in the system: a multiplicative hash of the round number.
        self.pause(Duration::from_micros(round.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 50))?;
        self.others.observed().take_gap_max_ns();
        self.pause(quiet)?;
        self.baseline.push(self.others.observed().take_gap_max_ns());
        self.others.observed().enter(Stretch::Disturbed);
        self.fronts.observed().take_gap_max_ns();
        // Of before.
        self.fronts.observed().take_resumed_ns();
        match Victim::of(round, self.protocol) {
            Victim::Gateway(gateway) => self.kill_gateway(NodeId::Gateway(gateway))?,
            Victim::Server(server) => self.kill_server(server)?,
        }
        self.gaps.push(self.others.observed().take_gap_max_ns());
        self.others.observed().enter(Stretch::Quiet);
        Ok(())
    }

    fn kill_gateway(&mut self, node: NodeId) -> LabResult {
        self.stage.system.supervisor.hold(node, true);
        self.stage.system.supervisor.signal(node, Signal::KILL)?;
        self.wait_until("the gateway is dead", |drill| !drill.stage.system.supervisor.is_up(node))?;
        if self.protocol.is_web() {
            self.wait_until_answered()?;
        } else {
            self.wait_until_moved()?;
        }
        self.moved.push(self.fronts.observed().take_gap_max_ns());
        self.stage.system.supervisor.hold(node, false);
        self.wait_until("the gateway is back", |drill| drill.stage.system.supervisor.is_up(node))
    }

    fn kill_server(&mut self, server: usize) -> LabResult {
        self.stage.servers[server].kill();
        self.wait_until_moved()?;
        self.moved.push(self.fronts.observed().take_gap_max_ns());
        self.stage.restart(server)
    }

    fn wait_until_moved(&mut self) -> LabResult {
        let mut has_gone_on = false;
        self.wait_until("a session goes on elsewhere", |drill| {
            let observed = drill.fronts.observed();
            has_gone_on = has_gone_on || observed.take_resumed_ns().is_some();
            has_gone_on && observed.away.load(Ordering::Relaxed) == 0
        })
    }

    /// Members of a server do not see its gateway die: all that they have asked so far is answered.
    fn wait_until_answered(&mut self) -> LabResult {
        let sent = self.fronts.observed().sent.load(Ordering::Relaxed);
        self.wait_until("what was asked is answered through another gateway", |drill| {
            drill.answered() >= sent
        })
    }

    /// Answers that the members of the fronts received so far.
    fn answered(&self) -> u64 {
        let observed = self.fronts.observed();
        observed.completed.load(Ordering::Relaxed) + observed.rejected.load(Ordering::Relaxed)
    }

    fn wait_until(&mut self, what: &str, mut is_so: impl FnMut(&mut Self) -> bool) -> LabResult {
        let begun = Instant::now();
        let (mut answered, mut since) = (self.answered(), begun);
        while !is_so(self) {
            self.pause(Duration::from_millis(1))?;
            if self.answered() > answered {
                (answered, since) = (self.answered(), Instant::now());
            }
            if since.elapsed() > PATIENCE || begun.elapsed() > 10 * PATIENCE {
                return Err(LabError::Failed(format!("waited in vain until {what}")));
            }
        }
        Ok(())
    }

    /// Lets time pass while looking after the system.
    fn pause(&mut self, stretch: Duration) -> LabResult {
        let Self { stage, fronts, others, .. } = self;
        stage.system.pass(stretch, |_| fronts.goes_on().and_then(|()| others.goes_on()))
    }

    /// What a load that ended by itself says of it.
    pub(super) fn why(self, error: LabError) -> LabError {
        let said = [self.fronts, self.others].map(|load| load.is_finished().then(|| load.finish().err()));
        said.into_iter().flatten().flatten().next().unwrap_or(error)
    }

    /// Ends the load, and compares what members received with the record.
    pub(super) fn finish(self) -> Result<Outcome, LabError> {
        let Self { protocol, mut stage, told, mut records, fronts, others, gaps, baseline, moved } = self;
        let count = gaps.len();
        let (fronts, others) = (fronts.finish()?, others.finish()?);
        records.await_level(&mut stage.system.supervisor)?;
        let tally = tally(protocol, &told, &mut records, [&fronts, &others]);
        let [quiet, disturbed] =
            [Stretch::Quiet, Stretch::Disturbed].map(|one| p99_us(&others.latencies(one)));
        let of = |observed: &Observed| observed.completed.load(Ordering::Relaxed);
        let rejected = [&fronts, &others].map(|load| load.rejected.load(Ordering::Relaxed)).iter().sum();
        Ok(Outcome {
            drill: "kill-front",
            protocol: protocol.to_possible_value().expect("none is hidden").get_name().to_owned(),
            count,
            gaps: Gaps::of(gaps, baseline, moved),
            tally,
            others_p99_us_quiet: quiet,
            others_p99_us_disturbed: disturbed,
            others_p99_ratio: disturbed / quiet,
            rejected,
            client_retries: fronts.retried.load(Ordering::Relaxed),
            completed: of(&fronts),
            others_completed: of(&others),
        })
    }
}

fn tally(
    protocol: FrontProtocol,
    told: &FrontTold,
    records: &mut Records<FrontNotes>,
    [fronts, others]: [&Observed; 2],
) -> Tally {
    let answered = fronts.answered();
    let most = |count: &dyn Fn(&FrontNotes) -> u64| records.notes().map(count).max().unwrap_or(0);
    let not_recorded = most(&|notes| notes.missing(&answered, told));
    let skipped = if protocol == FrontProtocol::Ws { told.gaps() } else { 0 };
    let resend_missing = most(&|notes| notes.untold(told)) + skipped;
    let executed_twice = most(&|notes| notes.executed_twice);
    let told_twice = told.repeated() + told.low();
    let (recorded, records_differing) = records.differing(|_, _| false);
    Tally {
        lost: fronts.in_flight() + others.in_flight() + not_recorded + resend_missing,
        duplicated: told_twice + executed_twice + others.duplicated.load(Ordering::Relaxed),
        resend_missing,
        executions: told.executions(),
        told_again: told.marked(),
        gaps: told.gaps(),
        records: recorded,
        records_differing,
    }
}

fn p99_us(latencies: &Histogram<u64>) -> f64 {
    latencies.value_at_quantile(0.99) as f64 / 1e3
}
