//! Which taps, and what of them.

use std::collections::BTreeSet;
use std::path::Path;

use pares_log::Reader;
use pares_node::{Layout, SystemConfig};
use pares_tap::{TapEntry, Tape, TapedConnection};
use pares_types::GatewayId;

use crate::commands::journal::failed;
use crate::commands::stat::configuration;
use crate::error::CommandError;
use crate::utc::Moment;

/// What to look at; every condition given must hold.
#[derive(clap::Args)]
pub struct Select {
    /// Only this gateway's tap
    #[arg(long, global = true)]
    gateway: Option<u16>,
    /// Only connections of this member
    #[arg(long, global = true)]
    member: Option<u32>,
    /// Only those of this session of its
    #[arg(long, global = true)]
    session: Option<u16>,
    /// Only this connection, by its number in the list of connections
    #[arg(long, global = true)]
    connection: Option<u32>,
    /// Only what passed at or after this moment: 2026-08-01, 2026-08-01T09:30:00 (UTC), or how long ago: 90s, 15m, 2h, 3d
    #[arg(long, global = true)]
    from: Option<Moment>,
    /// Only what passed before this moment
    #[arg(long, global = true)]
    until: Option<Moment>,
}

/// A gateway's tap, as far as it was asked for.
pub struct Taped {
    pub gateway: GatewayId,
    pub connections: Vec<TapedConnection>,
    /// Entries and bytes that the gateway says it lost.
    pub lost: (u64, u64),
}

/// Nanoseconds since 1970 of what is looked at.
#[derive(Clone, Copy)]
pub struct Span {
    from_ns: u64,
    to_ns: u64,
}

impl Span {
    pub fn has(self, ns: u64) -> bool {
        (self.from_ns..self.to_ns).contains(&ns)
    }
}

impl Select {
    /// The moments that are looked at.
    pub fn span(&self) -> Span {
        let now_ns = pares_os::clock::now_ns();
        let resolve = |moment: Option<Moment>| moment.map(|moment| moment.resolve(now_ns));
        Span {
            from_ns: resolve(self.from).unwrap_or_default(),
            to_ns: resolve(self.until).unwrap_or(u64::MAX),
        }
    }

    fn wants(&self, connection: &TapedConnection, span: Span) -> bool {
        let of = |wanted: Option<u32>, found: Option<u32>| wanted.is_none() || wanted == found;
        of(self.member, connection.who.map(|(member, _)| member))
            && of(self.session.map(u32::from), connection.who.map(|(_, session)| session.into()))
            && of(self.connection, Some(connection.number))
            && connection.seen_ns >= span.from_ns
            && connection.opened_ns < span.to_ns
    }

    /// Reads the taps; with the bytes of the connections that are wanted, or without any.
    ///
    /// # Errors
    /// If there is none, or one cannot be read.
    pub fn read(&self, layout: &Layout, with_bytes: bool) -> Result<Vec<Taped>, CommandError> {
        let (config, span) = (configuration(layout)?, self.span());
        let mut taped = Vec::new();
        for gateway in self.gateways(&config, layout) {
            let log = layout.tap(gateway);
            // Who a connection was is known when it has signed on: its first bytes are taken in a second reading.
            let mut tape = read(&log, &|_| false)?;
            if with_bytes {
                let wanted = tape.connections.iter().filter(|one| self.wants(one, span));
                let wanted: BTreeSet<(u32, u32)> = wanted.map(|one| (one.life, one.number)).collect();
                tape = read(&log, &|place| wanted.contains(&place))?;
            }
            tape.connections.retain(|one| self.wants(one, span));
            taped.push(Taped { gateway, connections: tape.connections, lost: tape.lost });
        }
        if taped.is_empty() {
            return Err(CommandError::Usage(format!(
                "there is no tap in {}: set `tap = true` in its pares.toml, or start it with `pares up --tap`",
                layout.root().display()
            )));
        }
        Ok(taped)
    }

    fn gateways(&self, config: &SystemConfig, layout: &Layout) -> Vec<GatewayId> {
        let wanted = |id: &GatewayId| self.gateway.is_none_or(|wanted| wanted == id.0);
        config.gateway_ids().filter(wanted).filter(|&id| layout.tap(id).join("marks").exists()).collect()
    }
}

fn read(log: &Path, keeps: &dyn Fn((u32, u32)) -> bool) -> Result<Tape, CommandError> {
    let mut tape = Tape::default();
    let mut reader = Reader::at_start(log).map_err(|error| failed(log, &error))?;
    loop {
        match reader.next() {
            Ok(Some(record)) => {
                let entry = TapEntry::read(record.payload)
                    .map_err(|fault| CommandError::Failed(format!("{}: {fault}", log.display())))?;
                tape.take(&entry, keeps);
            }
            Ok(None) => return Ok(tape),
            Err(pares_log::ReadError::Released { first, .. }) => {
                // The oldest went while it was read.
                reader.seek(first).map_err(|error| failed(log, &error))?;
            }
            Err(error) => return Err(failed(log, &error)),
        }
    }
}

/// Member and session, as they are written.
pub fn who(connection: &TapedConnection) -> String {
    connection.who.map_or_else(|| "-".to_owned(), |(member, session)| format!("{member}/{session}"))
}
