//! A gateway, its clients, and the rest of an exchange as far as the gateway sees it: logs.

use std::sync::Arc;

use pares_config::{NodeId, SystemConfig};
use pares_doors::Doors;
use pares_roles::NodeError;
use pares_roles::durable_log;
use pares_roles::duty::Duty;
use pares_roles::testing::{TestWorld, records};
use pares_roles::world::World;
use pares_types::{
    ClientOrderId, ClientRequest, Epoch, GatewayId, InstrumentId, NewOrder, Position, Price, Quantity,
    Reason, RecorderId, Reply, Request, Side, Status,
};
use pares_wire::frame::{self, GatewayFrame, Ping, SignOn};
use pares_wire::record::{self, RequestRecord};

use super::sockets::Net;
use crate::GatewayNode;

pub(super) const SELF: NodeId = NodeId::Gateway(GatewayId(0));
/// The other one.
pub(super) const PEER: NodeId = NodeId::Gateway(GatewayId(1));
pub(super) const EPOCH: Epoch = Epoch(3);

/// A small system of two gateways, with two shards: instruments 1 and 2.
pub(super) fn config() -> SystemConfig {
    let mut config =
        SystemConfig { segment_mib: 2, window: 1_024, names_max: 4_096, ..SystemConfig::default() };
    config.gateways.push(config.gateways[0]);
    config.instruments.truncate(2);
    config
}

/// Everything.
pub(super) struct Rig {
    pub(super) world: TestWorld,
    pub(super) net: Net,
    pub(super) gateway: GatewayNode<TestWorld, Net>,
    pub(super) config: SystemConfig,
}

/// The system is started again, in that epoch; each shard continues at `first`.
pub(super) fn start_anew(world: &TestWorld, epoch: Epoch, first: u64) {
    world.lose_run();
    for &shard in config().shards().unwrap().keys() {
        world.create_window(shard, 1_024, epoch, Position(first)).unwrap();
    }
}

impl Rig {
    pub(super) fn new() -> Self {
        Self::with(config())
    }

    pub(super) fn with(config: SystemConfig) -> Self {
        let world = TestWorld::new();
        for &shard in config.shards().unwrap().keys() {
            world.create_window(shard, 1_024, EPOCH, Position(0)).unwrap();
        }
        drop(world.write_log(SELF, durable_log(&config)).unwrap());
        let net = Net::default();
        let gateway = open(&world, &config, &net).unwrap();
        Self { world, net, gateway, config }
    }

    /// The gateway's process dies; `meanwhile` happens, and another begins.
    pub(super) fn restart(self, meanwhile: impl FnOnce(&TestWorld)) -> Result<Self, NodeError> {
        let Self { world, gateway, config, .. } = self;
        drop(gateway);
        meanwhile(&world);
        let net = Net::default();
        let gateway = open(&world, &config, &net)?;
        Ok(Self { world, net, gateway, config })
    }

    /// Turns until there is nothing to do.
    pub(super) fn settle(&mut self) {
        while self.gateway.work().unwrap() > 0 {}
    }

    pub(super) fn sign_on(&mut self, member: u32) -> usize {
        let client = self.net.connect();
        let told = self.send(client, |out| out.extend(sign_on(member)));
        assert!(matches!(told[..], [GatewayFrame::SignedOn(_)]));
        client
    }

    /// A gateway that member 7 has asked for orders of these names in the first shard.
    pub(super) fn of(names: impl IntoIterator<Item = u64>) -> (Self, usize) {
        let mut rig = Self::new();
        let client = rig.sign_on(7);
        rig.enter(client, names);
        (rig, client)
    }

    /// A client asks for orders of these names in the first shard.
    pub(super) fn enter(&mut self, client: usize, names: impl IntoIterator<Item = u64>) {
        names.into_iter().for_each(|name| _ = self.ask(client, &buy(name, 1)));
    }

    /// A client asks. What it receives at once.
    pub(super) fn ask(&mut self, client: usize, request: &ClientRequest) -> Vec<GatewayFrame> {
        self.send(client, |out| frame::write_request(out, request))
    }

    /// A client sends what is written. What it receives at once.
    pub(super) fn send(&mut self, client: usize, write: impl FnOnce(&mut Vec<u8>)) -> Vec<GatewayFrame> {
        self.net.write(client, write);
        self.settle();
        self.told(client)
    }

    /// What came to a client.
    pub(super) fn told(&self, client: usize) -> Vec<GatewayFrame> {
        let bytes = self.net.receive(client);
        let (mut rest, mut frames) = (&bytes[..], Vec::new());
        while let Some((kind, body, after)) = frame::split(rest).unwrap() {
            frames.push(frame::decode_gateway(kind, body).unwrap());
            rest = after;
        }
        frames
    }

    pub(super) fn journalled(&self) -> Vec<Request> {
        let mut all = self.world.payloads(SELF);
        all.retain(|payload| record::schema(payload) == Some(record::REQUEST));
        all.iter().map(|payload| RequestRecord::read(payload).unwrap()).collect()
    }

    pub(super) fn counter(&self, name: &str) -> u64 {
        self.world.counter("gateway-0", name).unwrap()
    }

    /// Enough turns to look for a log that was not there.
    pub(super) fn look_around(&mut self) {
        (0..70).for_each(|_| _ = self.gateway.work().unwrap());
    }

    /// All that is journalled is executed and recorded; says what that is.
    pub(super) fn commit_all(&mut self) -> Vec<Request> {
        let requests = self.journalled();
        self.commit(&requests);
        requests
    }

    /// The venues execute these requests, each shard's from position 0 on, and a recorder records them.
    pub(super) fn commit(&mut self, requests: &[Request]) {
        let mut next = [0; 2];
        let results = requests.iter().map(|request| {
            let position = &mut next[usize::from(request.shard.0)];
            *position += 1;
            result(request, *position - 1)
        });
        self.world.publish(NodeId::Recorder(RecorderId(0)), &results.collect::<Vec<_>>());
        self.look_around();
    }
}

pub(super) fn open(
    world: &TestWorld,
    config: &SystemConfig,
    net: &Net,
) -> Result<GatewayNode<TestWorld, Net>, NodeError> {
    GatewayNode::open(GatewayId(0), config, world.clone(), net.clone(), Arc::new(Doors))
}

/// What a venue says of a request: it rests.
pub(super) fn result(request: &Request, position: u64) -> Vec<u8> {
    result_of(request, position, Status::Resting)
}

pub(super) fn result_of(request: &Request, position: u64, status: Status) -> Vec<u8> {
    records::result_to(request, (EPOCH, position), (status, Reason::None))
}

pub(super) fn sign_on(member: u32) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::write(&mut bytes, &SignOn { member: member.into(), ..SignOn::default() });
    bytes
}

pub(super) fn write_ping(out: &mut Vec<u8>) {
    frame::write(out, &Ping { token: 5.into() });
}

pub(super) fn buy(name: u64, instrument: u32) -> ClientRequest {
    let order = NewOrder::limit(Side::Buy, Price(1), Quantity(1));
    let (client_order_id, instrument) = (ClientOrderId(name), InstrumentId(instrument));
    ClientRequest::Enter { client_order_id, instrument, order }
}

pub(super) fn rejected(frames: &[GatewayFrame]) -> Option<Reason> {
    match frames {
        [GatewayFrame::Reply(Reply::Rejected { reason, .. })] => Some(*reason),
        _ => None,
    }
}

/// The names answered.
pub(super) fn answered(frames: &[GatewayFrame]) -> Vec<u64> {
    let name = |frame: &GatewayFrame| match frame {
        GatewayFrame::Reply(Reply::Answer(answer)) => Some(answer.client_order_id.0),
        _ => None,
    };
    frames.iter().filter_map(name).collect()
}
