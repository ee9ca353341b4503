//! A system in a directory of its own, whose servers run on threads of the test.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::SyncSender;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use pares_config::Layout;
use pares_desk::item::{ItemBody, ItemName, TraderId};
use pares_member::config::{stream, submissions};
use pares_member::sources::{MarketNews, Sources, handing};
use pares_member::world::{address, address_file};
use pares_member::{MemberConfig, TraderClient, TraderNews, process, start};
use pares_node::{HostWorld, NodeError};

/// Far longer than anything takes.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// Waits until that holds.
pub(crate) fn eventually(mut holds: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !holds() {
        assert!(begun.elapsed() < PATIENCE, "it did not come about");
        std::thread::sleep(Duration::from_millis(2));
    }
}

type Running = (Arc<AtomicBool>, JoinHandle<Result<(), NodeError>>);

pub(crate) struct Rig {
    pub(crate) layout: Layout,
    pub(crate) config: MemberConfig,
    servers: Vec<Option<Running>>,
    _dir: tempfile::TempDir,
}

impl Rig {
    /// A system whose servers all run.
    pub(crate) fn new(config: MemberConfig) -> Self {
        let mut rig = Self::idle(config);
        (0..rig.config.count()).for_each(|server| rig.start(server));
        rig
    }

    /// A system of one server, and the market it receives.
    pub(crate) fn with_market(config: MemberConfig) -> (Self, SyncSender<MarketNews>) {
        let (market, handed) = handing(16);
        let sources = Sources { market: Some(handed), ..Sources::default() };
        (Self::with_sources(config, sources), market)
    }

    /// A system of one server, and what that receives from outside.
    pub(crate) fn with_sources(config: MemberConfig, sources: Sources) -> Self {
        let mut rig = Self::idle(config);
        rig.start_with(0, sources);
        rig
    }

    /// A system of which nothing runs yet.
    fn idle(config: MemberConfig) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let layout = Layout::new(dir.path());
        std::fs::create_dir_all(layout.run()).unwrap();
        std::fs::write(process::config_file(&layout), config.text()).unwrap();
        let servers = config.servers.iter().map(|_| None).collect();
        let mut rig = Self { layout, config, servers, _dir: dir };
        rig.begin();
        rig
    }

    /// Begins the window's next life.
    pub(crate) fn begin(&mut self) {
        self.begin_in(pares_os::clock::boot_id());
    }

    /// The same, in that boot of the host.
    pub(crate) fn begin_in(&mut self, boot: u128) {
        start::begin(&HostWorld::new(&self.layout).unwrap(), &self.config, boot).unwrap();
    }

    /// Starts a server and waits until it listens.
    pub(crate) fn start(&mut self, server: u16) {
        self.start_with(server, Sources::default());
    }

    pub(crate) fn start_with(&mut self, server: u16, sources: Sources) {
        let stop = Arc::new(AtomicBool::new(false));
        let (layout, flag) = (self.layout.clone(), Arc::clone(&stop));
        let _ = std::fs::remove_file(self.layout.pid(submissions(server)));
        let thread = std::thread::spawn(move || process::run_with(server, &layout, sources, &flag));
        let begun = Instant::now();
        while process::announced(&self.layout, server).is_none() {
            assert!(begun.elapsed() < PATIENCE && !thread.is_finished(), "{:?}", thread.join());
            std::thread::sleep(Duration::from_millis(1));
        }
        self.servers[usize::from(server)] = Some((stop, thread));
    }

    /// Ends a server.
    pub(crate) fn end(&mut self, server: u16) {
        let (stop, thread) = self.servers[usize::from(server)].take().unwrap();
        stop.store(true, Ordering::Relaxed);
        thread.join().unwrap().unwrap();
    }

    /// A server's disk is lost.
    pub(crate) fn wipe(&self, server: u16) {
        for log in [stream(server), submissions(server)] {
            std::fs::remove_dir_all(self.layout.log(log)).unwrap();
        }
        assert!(address_file(&self.layout, server).exists(), "it keeps its port");
    }

    pub(crate) fn addresses(&self) -> Vec<SocketAddr> {
        (0..self.config.count()).map(|server| address(&self.layout, server).unwrap()).collect()
    }

    /// A trader that prefers that server.
    pub(crate) fn trader(&self, trader: u32, first: usize) -> Follower {
        let mut servers = self.addresses();
        let count = servers.len();
        servers.rotate_left(first % count);
        Follower::new(TraderClient::connect(&servers, TraderId(trader)).unwrap())
    }

    /// What lies in a server's log of the stream.
    pub(crate) fn log(&self, server: u16) -> Vec<Vec<u8>> {
        let mut reader = pares_log::Reader::at_start(&self.layout.log(stream(server))).unwrap();
        let mut records = Vec::new();
        while let Some(record) = reader.next().unwrap() {
            records.push(record.payload.to_vec());
        }
        records
    }

    pub(crate) fn dir(&self) -> PathBuf {
        self.layout.root().into()
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        for (stop, thread) in self.servers.drain(..).flatten() {
            stop.store(true, Ordering::Relaxed);
            let _ = thread.join();
        }
    }
}

/// A trader that notes all it receives.
pub(crate) struct Follower {
    pub(crate) client: TraderClient,
    /// Each position: its name, and whether it is a repeat.
    pub(crate) told: Vec<(ItemName, bool)>,
}

impl Follower {
    fn new(client: TraderClient) -> Self {
        Self { client, told: Vec::new() }
    }

    pub(crate) fn say(&mut self, text: &str) -> u64 {
        self.client.submit(&ItemBody::Message { to: TraderId(0), text }).unwrap()
    }

    pub(crate) fn poll(&mut self) -> usize {
        let told = &mut self.told;
        self.client.poll(|news| match news {
            TraderNews::Item(item) => {
                assert_eq!(item.position.0, told.len() as u64, "in order, from the beginning");
                told.push((item.item.name, item.repeats.is_some()));
            }
            TraderNews::Refused { number, refusal } => panic!("{number} is refused: {refusal:?}"),
            TraderNews::Lost => panic!("the stream is lost"),
            _ => {}
        })
    }

    /// Polls until all that was submitted is placed.
    pub(crate) fn settle(&mut self) {
        self.until(|follower| follower.client.unplaced() == 0);
    }

    pub(crate) fn until(&mut self, done: impl Fn(&Self) -> bool) {
        let begun = Instant::now();
        while !done(self) {
            assert!(
                begun.elapsed() < PATIENCE,
                "told {}, unplaced {}",
                self.told.len(),
                self.client.unplaced()
            );
            self.client.wait(Duration::from_millis(10));
            self.poll();
        }
    }

    /// Names that are no repeats, in order.
    pub(crate) fn once(&self) -> Vec<ItemName> {
        self.told.iter().filter(|(_, repeat)| !repeat).map(|&(name, _)| name).collect()
    }
}
