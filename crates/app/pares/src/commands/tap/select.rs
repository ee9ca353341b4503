//! Which taps, which connections of them, and which moments.

use std::collections::BTreeSet;
use std::fs::DirEntry;

use pares_node::{Layout, SystemConfig};
use pares_tap::TapedConnection;
use pares_types::GatewayId;

use super::taped::{Taps, untold};
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
    /// Only connections of this session of the member
    #[arg(long, global = true)]
    session: Option<u16>,
    /// Only this connection, by its name in `pares tap list`: LIFE.NUMBER, or NUMBER for the connections of that number in all runs of the gateway
    #[arg(long, global = true)]
    connection: Option<Named>,
    /// Only messages at or after this time: 2026-08-01, 2026-08-01T09:30:00 (UTC), or an age: 90s, 15m, 2h, 3d
    #[arg(long, global = true)]
    from: Option<Moment>,
    /// Only messages before this time
    #[arg(long, global = true)]
    until: Option<Moment>,
}

/// The name of a connection: `NUMBER`, of every life of its gateway, or `LIFE.NUMBER`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Named {
    life: Option<u64>,
    number: u32,
}

impl std::str::FromStr for Named {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.split_once('.') {
            Some((life, number)) => Self { life: Some(life.parse()?), number: number.parse()? },
            None => Self { life: None, number: text.parse()? },
        })
    }
}

/// The name of a connection, as `--connection` takes it.
pub fn name(connection: &TapedConnection) -> String {
    format!("{}.{}", connection.life, connection.number)
}

/// The moments that are looked at, nanoseconds since 1970.
#[derive(Clone, Copy, Default)]
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
        let is_named = |named: Named| {
            named.number == connection.number && named.life.is_none_or(|life| life == connection.life)
        };
        of(self.member, connection.who.map(|(member, _)| member))
            && of(self.session.map(u32::from), connection.who.map(|(_, session)| session.into()))
            && self.connection.is_none_or(is_named)
            && connection.seen_ns >= span.from_ns
            && connection.opened_ns < span.to_ns
    }

    /// Whether nothing is left out.
    pub fn is_all(&self) -> bool {
        self.gateway.is_none()
            && self.member.is_none()
            && self.session.is_none()
            && self.connection.is_none()
            && self.from.is_none()
            && self.until.is_none()
    }

    /// Reads which connections there are; their bytes are read by [`Taped::follow`](super::taped::Taped::follow), since who a connection was is known only once it has signed on.
    /// One that cannot be read to its end keeps nobody from the others.
    ///
    /// # Errors
    /// If there is none.
    pub fn read(&self, layout: &Layout) -> Result<Taps, CommandError> {
        let (config, span) = (configuration(layout)?, self.span());
        let mut taps = Taps::read(self.gateways(&config, layout), layout);
        taps.taped.iter_mut().for_each(|taped| taped.connections.retain(|_, one| self.wants(one, span)));
        if !taps.taped.is_empty() {
            return Ok(taps);
        }
        let root = layout.root().display();
        Err(CommandError::Usage(match self.gateway {
            Some(gateway) => format!("there is no tap of gateway-{gateway} in {root}"),
            None => format!(
                "there is no tap in {root}: set `tap = true` in its pares.toml, or start it with `pares up --tap`"
            ),
        }))
    }

    /// Also one that was taken out of the configuration: what came in there is in the record.
    fn gateways(&self, config: &SystemConfig, layout: &Layout) -> BTreeSet<GatewayId> {
        let named = |entry: DirEntry| {
            let number = entry.file_name().to_str()?.strip_prefix("gateway-")?.parse();
            number.ok().map(GatewayId)
        };
        let kept = std::fs::read_dir(layout.taps()).into_iter().flatten().flatten().filter_map(named);
        let wanted = |id: &GatewayId| self.gateway.is_none_or(|wanted| wanted == id.0);
        let is_there = |id: &GatewayId| layout.tap(*id).exists() || untold(layout, *id) != (0, 0);
        config.gateway_ids().chain(kept).filter(wanted).filter(is_there).collect()
    }
}

/// Says that there is nothing to print, where programs do not read it as a row.
pub fn nothing(what: &str) {
    pares_text::aside!("pares: the taps have no matching {what}");
}

/// Member and session, as they are written.
pub fn who(connection: &TapedConnection) -> String {
    connection.who.map_or_else(|| "-".to_owned(), |(member, session)| format!("{member}/{session}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_connection_is_named_with_its_life_or_in_every_life() {
        let (of_one, of_all) = (Named { life: Some(64), number: 3 }, Named { life: None, number: 3 });
        assert_eq!(("64.3".parse(), "3".parse()), (Ok(of_one), Ok(of_all)));
        for wrong in ["", ".", "3.", "x.3", "1.2.3"] {
            assert!(wrong.parse::<Named>().is_err(), "{wrong}");
        }
    }
}
