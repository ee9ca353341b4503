//! A replayer whose sockets are made up.

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};

use pares_config::{FeedConfig, Layout};
use pares_feed::mold::Header;
use pares_feed::publication::Session;
use pares_node::HostWorld;
use pares_roles::world::Ready;
use pares_table::Origin;
use pares_types::Position;
use zerocopy::IntoBytes;

use super::*;
use crate::logged::{Published, Reached, push_block};

/// A stream that takes nothing, and that nothing comes from.
pub(super) struct Full;

impl Read for Full {
    fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
        Err(ErrorKind::WouldBlock.into())
    }
}

impl Write for Full {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Ok(0)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Sockets at which a client of that origin connects each time one is asked for.
pub(super) struct EndlessSockets {
    pub(super) origin: Origin,
}

impl EndlessSockets {
    pub(super) fn of(origin: Origin) -> Self {
        Self { origin }
    }
}

impl Sockets for EndlessSockets {
    type Stream = Full;

    fn accept(&mut self) -> io::Result<Full> {
        Ok(Full)
    }

    fn origin(&self, _: &mut Full) -> Origin {
        self.origin
    }

    fn register(&mut self, _: &mut Full, _: usize) -> io::Result<()> {
        Ok(())
    }

    fn deregister(&mut self, _: &mut Full) {}

    fn poll(&mut self, _: Duration, _: &mut Vec<Ready>) -> io::Result<()> {
        Ok(())
    }
}

/// Requests that came.
struct Requests(VecDeque<Vec<u8>>);

impl Datagrams for Requests {
    fn receive(&mut self, bytes: &mut [u8]) -> io::Result<(SocketAddr, usize)> {
        let request = self.0.pop_front().ok_or(ErrorKind::WouldBlock)?;
        bytes[..request.len()].copy_from_slice(&request);
        Ok((SocketAddr::from(([127, 0, 0, 1], 9)), request.len()))
    }

    fn send(&mut self, _: SocketAddr, _: &[u8]) {}
}

#[test]
fn a_request_that_meets_a_log_which_cannot_be_opened_is_counted() {
    let dir = tempfile::tempdir().unwrap();
    let layout = Layout::new(dir.path());
    let world = HostWorld::new(&layout).unwrap();
    let config = SystemConfig { feed: Some(FeedConfig::default()), ..SystemConfig::default() };
    let session = Session(*b"0000000001");
    let log = NodeId::Publisher(PublisherId(0));
    let mut writer = world.write_log(log, pares_log::Config::default().segment_bytes(1 << 20)).unwrap();
    let mut blocks = Vec::new();
    push_block(&mut blocks, b"S");
    let reached = Reached { session, next: 2, chain: 0, over: false };
    let (position, blocks) = (Position(0), &blocks[..]);
    let published = Published { shard: ShardId(0), first: 1, count: 1, reached, position, blocks };
    writer.append(&[published.head().as_bytes(), blocks].concat()).unwrap();
    writer.publish();
    let header = Header { session: session.0, sequence: 1.into(), count: 1.into() };
    let edge = (EndlessSockets::of(None), Requests(VecDeque::new()));
    let mut replayer = ReplayerNode::open(ReplayerId(0), &config, world, edge, 1).unwrap();
    replayer.read_log();
    assert_eq!(replayer.shards[&ShardId(0)].tape.standing().len(), 1);
    std::fs::remove_dir_all(layout.log(log)).unwrap();
    replayer.datagrams.0.push_back(header.as_bytes().to_vec());
    replayer.resend(0);
    assert_eq!(replayer.resending.resent.unreadable, 1);
}

#[test]
fn no_two_replayers_have_a_seed_in_common() {
    let dir = tempfile::tempdir().unwrap();
    let config = SystemConfig { feed: Some(FeedConfig::default()), ..SystemConfig::default() };
    let seeds = [0, 1].map(|id| {
        let world = HostWorld::new(&Layout::new(dir.path())).unwrap();
        let edge = (EndlessSockets::of(None), Requests(VecDeque::new()));
        ReplayerNode::open(ReplayerId(id), &config, world, edge, 1).unwrap().seed
    });
    assert_ne!(seeds[0], seeds[1]);
}
