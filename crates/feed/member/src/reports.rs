//! Copies what the exchange tells the member (docs/protocols/order-entry.md, *The stream of a member*).
//!
//! Any gateway tells it, under the same numbers, so a lost connection costs a look at the next one. The connection is on a thread of its own,
//! since connecting waits; what comes goes to the server over a way with room for little: if the server is behind, the gateway keeps
//! the rest.
//!
//! An exchange that is begun again numbers from 1, and its reports would be taken for copies of what the stream has. So each connection asks
//! for the last report that the stream has once more, and nothing is copied unless that is still the same.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::mpsc::SyncSender;
use std::time::{Duration, Instant};

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
/// A known report is asked for once more, and comes within this time.
const KNOWN_MAX: Duration = Duration::from_secs(10);

/// Where copies of a shard's reports continue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopiedTo {
    /// The number of the next report.
    pub next: u64,
    /// The report before it, as it came; none if the stream has none.
    pub last: Option<Vec<u8>>,
}

/// A shard's reports.
struct Copied {
    to: CopiedTo,
    /// Whether this connection has told the last one once more.
    is_known: bool,
    /// The exchange is another: nothing more is copied.
    is_other: bool,
}

impl Copied {
    fn asked_from(&self) -> u64 {
        self.to.next - u64::from(self.to.last.is_some())
    }
}

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

/// Copies from the given places on, for that server. `ring` wakes it; `complain` tells the operator.
///
/// # Errors
/// If a key cannot be read, or there is no room for another thread.
pub fn copy(
    config: &ExchangeConfig,
    server: u16,
    shards: BTreeMap<ShardId, CopiedTo>,
    ring: impl FnMut() + Send + 'static,
    complain: impl Fn(String) + Send + 'static,
) -> std::io::Result<Handed<CopiedReport>> {
    let options = config.options(server).map_err(std::io::Error::other)?;
    let (sender, handed) = handing(ROOM);
    let (config, complain) = (config.clone(), Box::new(complain));
    let begun = |(shard, to)| (shard, Copied { to, is_known: false, is_other: false });
    let shards = shards.into_iter().map(begun).collect();
    let mut copier =
        Copier { config, options, shards, sender, ring: Box::new(ring), complain, is_open: true };
    let thread = std::thread::Builder::new().name("reports".into());
    thread.spawn(move || copier.run())?;
    Ok(handed)
}

struct Copier {
    config: ExchangeConfig,
    options: Options,
    shards: BTreeMap<ShardId, Copied>,
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
            let before = self.progress();
            if let Err(error) = self.follow(gateway) {
                let why = format!("copying reports from {gateway}: {error}");
                if told.as_ref() != Some(&why) {
                    (self.complain)(why.clone());
                    told = Some(why);
                }
            }
            pause = if self.progress() == before { PAUSE.1.min(pause * 2) } else { PAUSE.0 };
            std::thread::sleep(pause);
        }
    }

    fn progress(&self) -> u64 {
        self.shards.values().map(|of| of.to.next).sum()
    }

    fn follow(&mut self, gateway: SocketAddr) -> Result<(), ClientError> {
        let member = MemberId(self.config.member);
        let mut client = Client::connect_with(gateway, member, self.options.clone())?;
        for (&shard, of) in &mut self.shards {
            of.is_known = of.to.last.is_none();
            client.resume(Some(shard), of.asked_from())?;
        }
        client.flush()?;
        let mut known_by = Some(Instant::now() + KNOWN_MAX);
        while self.is_open {
            if known_by.is_some_and(|by| Instant::now() > by) {
                known_by = None;
                self.complain_of_unknown();
            }
            client.wait(HEARTBEAT)?;
            let mut again = Vec::new();
            let count = client.poll(|update| again.extend(self.on_update(update)))?;
            for shard in again {
                client.resume(Some(shard), self.shards[&shard].asked_from())?;
            }
            client.flush()?;
            if count > 0 {
                (self.ring)();
            }
        }
        Ok(())
    }

    /// The exchange may be a new one with fewer reports, which tells nothing.
    fn complain_of_unknown(&self) {
        for (shard, of) in self.shards.iter().filter(|(_, of)| !of.is_known) {
            (self.complain)(format!(
                "shard {}: the exchange does not resend report {}, which this system has: if the exchange \
                 was set up again, start the member's system in another directory",
                shard.0,
                of.asked_from()
            ));
        }
    }

    /// Hands a report on. The shard that is to be resumed again, if one is.
    fn on_update(&mut self, update: Update) -> Option<ShardId> {
        if let Update::NotResumed { shard, oldest, .. } = update {
            return self.on_not_resumed(shard, oldest);
        }
        let (shard, number, reply) = reply_of(update)?;
        let of = self.shards.get_mut(&shard).filter(|of| !of.is_other)?;
        let mut bytes = Vec::new();
        frame::write_reply(&mut bytes, &reply);
        if number < of.to.next {
            let is_last = number + 1 == of.to.next;
            of.is_other = is_last && of.to.last.as_ref().is_some_and(|last| *last != bytes);
            of.is_known |= is_last;
            if of.is_other {
                (self.complain)(format!(
                    "shard {}: report {number} differs from this system's copy: the exchange is another \
                     one, or was set up again. Copying stops; start the member's system in another \
                     directory",
                    shard.0
                ));
            }
            return None;
        }
        (of.to, of.is_known) = (CopiedTo { next: number + 1, last: Some(bytes.clone()) }, true);
        self.is_open &= self.sender.send(CopiedReport { shard, number, frame: bytes }).is_ok();
        None
    }

    fn on_not_resumed(&mut self, shard: ShardId, oldest: u64) -> Option<ShardId> {
        let to = &mut self.shards.get_mut(&shard)?.to;
        if oldest < to.next {
            (self.complain)(format!(
                "shard {}: the exchange cannot resume reports from {} on",
                shard.0, to.next
            ));
            return None;
        }
        if oldest > to.next {
            (self.complain)(format!(
                "shard {}: reports from {} to below {oldest} are no longer available",
                shard.0, to.next
            ));
        }
        *to = CopiedTo { next: oldest, last: None };
        Some(shard)
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
