//! Copies what the exchange tells the member (docs/protocols/order-entry.md, *The stream of a member*).
//!
//! Any gateway tells it, under the same numbers, so a lost connection costs a look at the next one. The connection is on a thread of its own,
//! since connecting waits; what comes goes to the server over a way with room for little: if the server is behind, the gateway keeps
//! the rest.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::SyncSender;
use std::time::Duration;

use pares_client::{Client, ClientError, Credential, KeyFile, Options, Tls, Update};
use pares_types::{MemberId, Reply, ShardId};
use pares_wire::frame;
use serde::{Deserialize, Serialize};

use crate::sources::{CopiedReport, Handed, handing};

/// Reports on their way to the server.
const ROOM: usize = 4_096;
/// Between two tries, the first and the longest.
const PAUSE: (Duration, Duration) = (Duration::from_millis(50), Duration::from_secs(2));
const HEARTBEAT: Duration = Duration::from_secs(1);

/// The exchange whose reports are copied.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ExchangeConfig {
    /// Its gateways.
    pub gateways: Vec<SocketAddr>,
    /// Its shards.
    pub shards: Vec<u16>,
    /// Who the member is there.
    pub member: u32,
    /// The key file of each server, in their order; none where sign-on is open. A session is for one connection.
    #[serde(default)]
    pub keys: Vec<PathBuf>,
    /// The certificate of the exchange's authority, if its gateways speak TLS.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub authority: Option<PathBuf>,
}

impl ExchangeConfig {
    fn options(&self, server: u16) -> Result<Options, String> {
        let key = match self.keys.get(usize::from(server)) {
            Some(path) => Some(KeyFile::read(path).map_err(|error| error.to_string())?),
            None => None,
        };
        let tls = self.authority.as_deref().map(Tls::of_exchange).transpose();
        Ok(Options {
            credential: key.as_ref().map(Credential::from),
            resumes: true,
            heartbeat: Some(HEARTBEAT),
            tls: tls.map_err(|error| error.to_string())?,
            ..Options::default()
        })
    }
}

/// Copies from the given numbers on, for that server. `ring` wakes it; `complain` tells the operator.
///
/// # Errors
/// If a key cannot be read, or there is no room for another thread.
pub fn copy(
    config: &ExchangeConfig,
    server: u16,
    next: BTreeMap<ShardId, u64>,
    ring: impl FnMut() + Send + 'static,
    complain: impl Fn(String) + Send + 'static,
) -> std::io::Result<Handed<CopiedReport>> {
    let options = config.options(server).map_err(std::io::Error::other)?;
    let (sender, handed) = handing(ROOM);
    let (config, complain) = (config.clone(), Box::new(complain));
    let mut copier = Copier { config, options, next, sender, ring: Box::new(ring), complain, is_open: true };
    let thread = std::thread::Builder::new().name("reports".into());
    thread.spawn(move || copier.run())?;
    Ok(handed)
}

struct Copier {
    config: ExchangeConfig,
    options: Options,
    next: BTreeMap<ShardId, u64>,
    sender: SyncSender<CopiedReport>,
    ring: Box<dyn FnMut() + Send>,
    complain: Box<dyn Fn(String) + Send>,
    /// Whether the server still listens.
    is_open: bool,
}

impl Copier {
    fn run(&mut self) {
        let (mut turn, mut pause) = (0, PAUSE.0);
        let mut told = None;
        while self.is_open {
            let gateway = self.config.gateways[turn % self.config.gateways.len()];
            turn += 1;
            let before = self.next.clone();
            if let Err(error) = self.follow(gateway) {
                let why = format!("copying reports from {gateway}: {error}");
                if told.as_ref() != Some(&why) {
                    (self.complain)(why.clone());
                    told = Some(why);
                }
            }
            pause = if self.next == before { PAUSE.1.min(pause * 2) } else { PAUSE.0 };
            std::thread::sleep(pause);
        }
    }

    fn follow(&mut self, gateway: SocketAddr) -> Result<(), ClientError> {
        let member = MemberId(self.config.member);
        let mut client = Client::connect_with(gateway, member, self.options.clone())?;
        for (&shard, &next) in &self.next {
            client.resume(Some(shard), next)?;
        }
        client.flush()?;
        while self.is_open {
            client.wait(HEARTBEAT)?;
            let mut again = Vec::new();
            let count = client.poll(|update| again.extend(self.on_update(update)))?;
            for shard in again {
                client.resume(Some(shard), self.next[&shard])?;
            }
            client.flush()?;
            if count > 0 {
                (self.ring)();
            }
        }
        Ok(())
    }

    /// Hands a report on. The shard that is to be resumed again, if one is.
    fn on_update(&mut self, update: Update) -> Option<ShardId> {
        if let Update::NotResumed { shard, oldest, .. } = update
            && let Some(next) = self.next.get_mut(&shard)
        {
            if oldest <= *next {
                (self.complain)(format!("shard {}: reports from {next} on cannot be resumed there", shard.0));
                return None;
            }
            (self.complain)(format!(
                "shard {}: reports {next} to below {oldest} are not to be had any more",
                shard.0
            ));
            *next = oldest;
            return Some(shard);
        }
        let (shard, number, reply) = reply_of(update)?;
        let next = self.next.get_mut(&shard).filter(|next| number >= **next)?;
        *next = number + 1;
        let mut bytes = Vec::new();
        frame::write_reply(&mut bytes, &reply);
        self.is_open &= self.sender.send(CopiedReport { shard, number, frame: bytes }).is_ok();
        None
    }
}

/// What is part of the member's stream: its shard and number there.
fn reply_of(update: Update) -> Option<(ShardId, u64, Reply)> {
    let (shard, number, reply) = match update {
        Update::Answer(of) => (of.shard, of.number, Reply::Answer(of)),
        Update::Trade(of) => (of.shard, of.number, Reply::Trade(of)),
        Update::Cancelled(of) => (of.shard, of.number, Reply::Cancelled(of)),
        Update::News(of) => (of.shard, of.number, Reply::News(of)),
        Update::Busted(of) => (of.shard, of.number, Reply::Busted(of)),
        _ => return None,
    };
    (number > 0).then_some((shard, number, reply))
}
