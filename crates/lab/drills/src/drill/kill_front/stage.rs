//! The system, and what is offered to whom.

use std::net::SocketAddr;
use std::sync::Arc;

use pares_config::SignOnSetting;
use pares_load::{
    FixPlan, FrontTold, LabError, LoadPlan, LoadProtocol, OuchPlan, Rate, ScratchSystem, WebPlan, WebProcess,
    setup,
};
use pares_node::SystemConfig;

use super::{Args, FrontProtocol, MEMBERS, VICTIMS};

/// The system, and the servers beside it.
pub(super) struct Stage {
    pub(super) system: ScratchSystem,
    pub(super) servers: Vec<WebProcess>,
}

impl Stage {
    pub(super) fn set(args: &Args) -> Result<Self, LabError> {
        let system = ScratchSystem::start(&config(args), args.dir.clone())?;
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let count = if args.protocol.is_web() { VICTIMS } else { 0 };
        let server = |_| WebProcess::start(system.supervisor.layout(), any);
        let servers = (0..count).map(server).collect::<Result<_, _>>()?;
        Ok(Self { system, servers })
    }

    /// A server that was killed starts again where it was.
    pub(super) fn restart(&mut self, server: usize) -> Result<(), LabError> {
        let address = self.servers[server].address();
        self.servers[server] = WebProcess::start(self.system.supervisor.layout(), address)?;
        Ok(())
    }

    /// What is offered to those who are killed, and to the gateway that lives.
    pub(super) fn plans(&self, args: &Args, told: &Arc<FrontTold>) -> Result<[LoadPlan; 2], LabError> {
        let config = self.system.supervisor.config();
        let (addresses, protocol) = self.front(args.protocol, told)?;
        let credentials = match config.sign_on {
            SignOnSetting::Required => self.system.let_in(2 * MEMBERS)?,
            SignOnSetting::Open => Vec::new(),
        };
        let plan = LoadPlan::new(config, Vec::new(), Rate::PerSecond(args.rate / 2));
        let plan = LoadPlan { members: MEMBERS, seed: args.seed, ..plan };
        let (some, rest) = plan.instruments.split_at(plan.instruments.len() / 2);
        let (of_fronts, of_others) = credentials.split_at(credentials.len() / 2);
        let fronts = LoadPlan {
            addresses,
            protocol,
            credentials: of_fronts.to_vec(),
            instruments: some.to_vec(),
            resume: true,
            ..plan.clone()
        };
        let others = LoadPlan {
            addresses: self.system.addresses()?[usize::from(VICTIMS)..].to_vec(),
            credentials: of_others.to_vec(),
            first_member: MEMBERS + 1,
            instruments: rest.to_vec(),
            ..plan.clone()
        };
        Ok([fronts, others])
    }

    /// Where those trade who are killed, and how.
    fn front(
        &self,
        protocol: FrontProtocol,
        told: &Arc<FrontTold>,
    ) -> Result<(Vec<SocketAddr>, LoadProtocol), LabError> {
        let (victims, tally) = (usize::from(VICTIMS), Some(Arc::clone(told)));
        let mut addresses = match protocol {
            FrontProtocol::Fix => self.system.fix_addresses()?,
            FrontProtocol::Ouch => self.system.ouch_addresses()?,
            FrontProtocol::Http | FrontProtocol::Ws => self.servers.iter().map(WebProcess::address).collect(),
        };
        addresses.truncate(victims);
        let mut follows = Vec::new();
        if protocol == FrontProtocol::Ws {
            follows = self.system.supervisor.config().shards()?.into_keys().map(|shard| shard.0).collect();
        }
        let speaks = match protocol {
            FrontProtocol::Fix => LoadProtocol::Fix(FixPlan { told: tally, ..FixPlan::default() }),
            FrontProtocol::Ouch => LoadProtocol::Ouch(OuchPlan { told: tally }),
            FrontProtocol::Http | FrontProtocol::Ws => {
                LoadProtocol::Web(WebPlan { told: tally, follows, sharing: None })
            }
        };
        Ok((addresses, speaks))
    }
}

fn config(args: &Args) -> SystemConfig {
    // A session over OUCH receives one shard's stream. OUCH has no way to prove a member's identity; no server over HTTP keeps a key.
    let is_ouch = args.protocol == FrontProtocol::Ouch;
    let load = setup::Args {
        rate: Rate::PerSecond(args.rate),
        seconds: 0,
        gateways: VICTIMS + 1,
        venues: args.venues,
        recorders: args.recorders,
        symbols: args.symbols,
        shards: if is_ouch { Some(1) } else { args.shards },
        sequencer: true,
        durability: args.durability,
        in_flight: 0,
        seed: args.seed,
        dir: None,
        json: false,
    };
    let config = load.config();
    let is_fix = args.protocol == FrontProtocol::Fix;
    SystemConfig {
        sign_on: if is_fix { SignOnSetting::Required } else { SignOnSetting::Open },
        fix: if is_fix { config.gateways.clone() } else { Vec::new() },
        ouch: if is_ouch { config.gateways.clone() } else { Vec::new() },
        ..config
    }
}
