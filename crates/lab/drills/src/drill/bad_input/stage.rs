//! The exchange whose members trade, and the server of it that guests come to as well.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use pares_config::SignOnSetting;
use pares_load::{LabError, LabResult, Load, LoadPlan, Observed, ScratchSystem, WebProcess};
use pares_node::SystemConfig;

use super::{Args, MEMBERS, Port};

/// How long the load runs before anything counts.
const WARM_UP: Duration = Duration::from_secs(1);
/// The load's latencies are handed over about that often: what is older belongs to the stretch before.
const SETTLED: Duration = Duration::from_millis(150);

pub(super) struct Stage {
    system: ScratchSystem,
    server: WebProcess,
    load: Load,
}

impl Stage {
    pub(super) fn start(args: &Args) -> Result<Self, LabError> {
        pares_os::descriptors::raise_limit();
        let system = ScratchSystem::start(&config(args), args.load.dir.clone())?;
        let server = WebProcess::start(system.supervisor.layout(), ([127, 0, 0, 1], 0).into())?;
        let plan = LoadPlan::new(system.supervisor.config(), system.addresses()?, args.load.rate);
        let credentials = system.let_in(MEMBERS)?;
        let load = Load::start(LoadPlan { members: MEMBERS, credentials, seed: args.load.seed, ..plan })?;
        let mut stage = Self { system, server, load };
        stage.pass(WARM_UP)?;
        Ok(stage)
    }

    /// Where guests go: to the first gateway's ports and to the server's.
    pub(super) fn ports(&self) -> Result<[(Port, SocketAddr); 4], LabError> {
        Ok([
            (Port::Binary, self.system.addresses()?[0]),
            (Port::Fix, self.system.fix_addresses()?[0]),
            (Port::Ouch, self.system.ouch_addresses()?[0]),
            (Port::Http, self.server.address()),
        ])
    }

    /// The 99th percentile of what is answered in the next stretch.
    pub(super) fn p99_ns(&mut self, stretch: Duration) -> Result<u64, LabError> {
        self.pass(SETTLED)?;
        drop(self.load.observed().take_recent());
        self.pass(stretch)?;
        Ok(p99_of(&self.load.observed().take_recent(), stretch))
    }

    /// Lets time pass while looking after the system.
    ///
    /// # Errors
    /// If any of it dies.
    pub(super) fn pass(&mut self, stretch: Duration) -> LabResult {
        let Self { system, server, load } = self;
        system.pass(stretch, |deaths| match deaths.first() {
            Some(death) => Err(LabError::Failed(format!("{} died while guests came", death.node))),
            None if server.has_died() => {
                Err(LabError::Failed("the server of HTTP died while guests came".into()))
            }
            None => load.goes_on(),
        })
    }

    /// Ends the load, and says how it went.
    pub(super) fn end(self) -> Result<Arc<Observed>, LabError> {
        self.load.finish()
    }
}

/// Where nothing is answered all members wait as long as the stretch lasts.
fn p99_of(answered: &Histogram<u64>, stretch: Duration) -> u64 {
    match answered.len() {
        0 => u64::try_from(stretch.as_nanos()).expect("stretches are short"),
        _ => answered.value_at_quantile(0.99),
    }
}

fn config(args: &Args) -> SystemConfig {
    let config = args.load.config();
    let any = config.gateways.clone();
    SystemConfig { sign_on: SignOnSetting::Required, fix: any.clone(), ouch: any, ..config }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stretch_in_which_nothing_is_answered_is_no_quick_one() {
        let mut answered = Histogram::new(3).unwrap();
        let stretch = Duration::from_secs(1);
        assert_eq!(p99_of(&answered, stretch), 1_000_000_000);
        answered.record(7).unwrap();
        assert_eq!(p99_of(&answered, stretch), 7);
    }
}
