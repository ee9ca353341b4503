//! A member's system of its own: its servers as they ship, each a thread; for the benchmark of the feed and for paper 2.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use pares_desk::item::{ItemBody, ItemName, OrderedItem, SubmittedItem, TraderId};
use pares_load::{LabError, LabResult, ScratchDirectory, Worker, failed};
use pares_log::Config;
use pares_member::config::{stream, submissions};
use pares_member::sources::Sources;
use pares_member::world::address;
use pares_member::{MemberConfig, process, start};
use pares_node::{HostWorld, Layout, NodeError};
use pares_roles::World;
use pares_types::{Epoch, GatewayId, Position, RequestId};

/// A message as long as the paper's: the longest there may be.
pub(crate) const LARGE: usize = 8_188;
/// The server that traders follow.
pub(crate) const GIVES: u16 = 1;
/// The server whose disk is lost.
pub(crate) const TAKES: u16 = 0;
/// How long a server may take to come up.
const PATIENCE: Duration = Duration::from_secs(60);
/// Who said what a stream is made of.
const AUTHOR: TraderId = TraderId(1);
/// A server's first number: its first life.
const FIRST_NUMBER: u64 = 1 << 28;

/// A system of servers, none of which runs yet.
pub(crate) struct Desk {
    pub(crate) layout: Layout,
    config: MemberConfig,
    servers: Vec<Option<Worker<Result<(), NodeError>>>>,
    _dir: ScratchDirectory,
}

impl Desk {
    /// A system of two servers with nothing in it.
    ///
    /// # Errors
    /// If its files cannot be made.
    pub(crate) fn new() -> Result<Self, LabError> {
        Self::of(MemberConfig::local(2))
    }

    /// A system of two servers that run, and where the giving one listens.
    ///
    /// # Errors
    /// If a server does not come up.
    pub(crate) fn running() -> Result<(Self, SocketAddr), LabError> {
        let mut desk = Self::new()?;
        [TAKES, GIVES].into_iter().try_for_each(|server| desk.start(server))?;
        let address = desk.address(GIVES)?;
        Ok((desk, address))
    }

    /// A system with nothing in it.
    ///
    /// # Errors
    /// If its files cannot be made.
    pub(crate) fn of(config: MemberConfig) -> Result<Self, LabError> {
        let dir = ScratchDirectory::create(None)?;
        let layout = Layout::new(dir.path().join("desk"));
        // What a run that was killed left under this process's number.
        let _ = std::fs::remove_dir_all(layout.root());
        std::fs::create_dir_all(layout.run()).map_err(LabError::io("making the system's directory"))?;
        std::fs::write(process::config_file(&layout), config.text())
            .map_err(LabError::io("writing member.toml"))?;
        let servers = (0..config.servers.len()).map(|_| None).collect();
        let desk = Self { layout, config, servers, _dir: dir };
        desk.begin()?;
        Ok(desk)
    }

    /// A system of which only the giving server has its log, of so many messages.
    ///
    /// # Errors
    /// If its files cannot be made.
    pub(crate) fn with_stream(messages: u64) -> Result<Self, LabError> {
        let desk = Self::new()?;
        let world = desk.world()?;
        let config = Config::default().segment_bytes(desk.config.segment_mib << 20);
        let mut log = world.write_log(stream(GIVES), config).map_err(NodeError::from)?;
        let (text, mut body, mut record) = ("x".repeat(LARGE), Vec::new(), Vec::new());
        let says = ItemBody::Message { to: TraderId(0), text: &text };
        says.write(&mut body);
        for position in 0..messages {
            let name = ItemName { trader: AUTHOR, number: position + 1 };
            let request = RequestId::new(GatewayId(GIVES), FIRST_NUMBER + position);
            let item = SubmittedItem { name, request, stamp_ns: 0, kind: says.kind(), body: &body };
            let epoch = Epoch(1);
            record.clear();
            OrderedItem { epoch, position: Position(position), repeats: None, item }.write(&mut record);
            log.append(&record).map_err(failed("writing the stream"))?;
        }
        log.publish();
        drop(log);
        desk.begin()?;
        Ok(desk)
    }

    /// What a server of it touches.
    ///
    /// # Errors
    /// As the system says.
    pub(crate) fn world(&self) -> Result<HostWorld, LabError> {
        Ok(HostWorld::new(&self.layout)?)
    }

    /// Begins the window's next life.
    fn begin(&self) -> LabResult {
        start::begin(&self.world()?, &self.config, pares_os::clock::boot_id())?;
        Ok(())
    }

    /// Starts a server and waits until it serves.
    ///
    /// # Errors
    /// If it does not come up.
    pub(crate) fn start(&mut self, server: u16) -> LabResult {
        let layout = self.layout.clone();
        let _ = std::fs::remove_file(self.layout.pid(submissions(server)));
        let run = move |stop: &Arc<AtomicBool>| process::run_with(server, &layout, Sources::default(), stop);
        self.servers[usize::from(server)] = Some(Worker::start("member server", run)?);
        let begun = Instant::now();
        while process::announced(&self.layout, server).is_none() {
            if begun.elapsed() > PATIENCE || self.is_over(server) {
                self.end(server)?;
                return Err(LabError::Failed(format!("member server {server} does not come up")));
            }
            std::thread::sleep(Duration::from_micros(200));
        }
        Ok(())
    }

    fn is_over(&self, server: u16) -> bool {
        self.servers[usize::from(server)].as_ref().is_none_or(Worker::is_finished)
    }

    /// Ends a server.
    ///
    /// # Errors
    /// Whatever ended it before.
    pub(crate) fn end(&mut self, server: u16) -> LabResult {
        Ok(self.servers[usize::from(server)].take().map_or(Ok(()), Worker::finish)?)
    }

    /// Where a server listens.
    ///
    /// # Errors
    /// If it has not said so.
    pub(crate) fn address(&self, server: u16) -> Result<SocketAddr, LabError> {
        address(&self.layout, server).map_err(LabError::io("finding a member server"))
    }
}

impl Drop for Desk {
    fn drop(&mut self) {
        // How a server ends that nobody asked to end is of no interest any more.
        (0..self.servers.len() as u16).for_each(|server| drop(self.end(server)));
    }
}
