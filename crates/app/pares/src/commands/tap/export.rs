//! `pares tap export`: the bytes as packets of TCP.
//!
//! A tap has what passed at the socket, not how the network cut it. So the segments are made up. Addresses, ports and times are real; missing bytes are a
//! gap in a stream's numbers, as in a capture that lost a packet.

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use pares_node::Layout;
use pares_port::TapDoor;
use pares_tap::{TapeEnd, TapedConnection, TapedPiece};
use pares_types::GatewayId;

use super::select::{Select, Span};
use super::taped::Follow;
use crate::commands::frames::{MadeConnection, PacketFile};
use crate::error::{CommandError, CommandResult};
use crate::text::count;

/// Where connections come from whose beginning the tap does not have any more: addresses that are for documents.
const UNKNOWN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Their ports begin here.
const PORT_FIRST: u16 = 1_024;

/// Writes them, gateway after gateway.
///
/// # Errors
/// If there is no tap, one cannot be read, or the file cannot be written.
pub fn run(layout: &Layout, select: &Select, to: &Path) -> CommandResult {
    let taps = select.read(layout)?;
    let file = PacketFile::create_ng(to).map_err(writing())?;
    let (span, gateway) = (select.span(), GatewayId(0));
    let mut export = Export { file, span, layout, gateway, connections: 0, ports: BTreeSet::new() };
    for taped in &taps.taped {
        export.gateway = taped.gateway;
        taped.follow(&mut export)?;
    }
    let Export { file, connections, ports, .. } = export;
    let packets = file.packets;
    file.finish().map_err(writing())?;
    let (packets, connections) = (count(packets, "packet"), count(connections, "connection"));
    pares_text::tell!("{}: {packets} of {connections}", to.display());
    for (door, port) in ports {
        let dissector = match door {
            TapDoor::Fix => "fix",
            TapDoor::Ouch => "soupbintcp",
            TapDoor::Binary => continue,
        };
        pares_text::tell!("dissect {dissector} with -d tcp.port=={port},{dissector}");
    }
    taps.done()
}

fn writing() -> impl FnOnce(io::Error) -> CommandError {
    CommandError::io("writing the packets")
}

struct Export<'a> {
    file: PacketFile,
    span: Span,
    layout: &'a Layout,
    gateway: GatewayId,
    connections: u64,
    /// Where connections went.
    ports: BTreeSet<(TapDoor, u16)>,
}

impl Export<'_> {
    /// The connection, whose handshake is written by now.
    fn made<'a>(
        &mut self,
        made: &'a mut Option<MadeConnection>,
        connection: &TapedConnection,
    ) -> Result<&'a mut MadeConnection, CommandError> {
        if made.is_none() {
            let ends = ends(connection, self.gateway, self.layout);
            let at = Duration::from_nanos(connection.opened_ns);
            self.connections += 1;
            self.ports.insert((connection.door, ends[1].port()));
            let opened = MadeConnection::opened(&mut self.file, at, ends).map_err(writing())?;
            *made = Some(if connection.door == TapDoor::Ouch { opened.of_soup() } else { opened });
        }
        Ok(made.as_mut().expect("just made"))
    }
}

impl Follow for Export<'_> {
    type State = Option<MadeConnection>;

    fn begin(&mut self, _: &TapedConnection) -> Self::State {
        None
    }

    fn pass(
        &mut self,
        made: &mut Self::State,
        connection: &TapedConnection,
        piece: &TapedPiece<'_>,
    ) -> CommandResult {
        if !self.span.has(piece.wall_ns) {
            return Ok(());
        }
        let (at, end) = (Duration::from_nanos(piece.wall_ns), usize::from(!piece.is_in));
        let made = self.made(made, connection)?;
        made.skip_to(end, piece.at);
        made.sent(&mut self.file, at, end, piece.bytes).map_err(writing())
    }

    fn end(&mut self, mut made: Self::State, connection: &TapedConnection) -> CommandResult {
        let made = self.made(&mut made, connection)?;
        if connection.end == TapeEnd::Open {
            return Ok(());
        }
        let at = Duration::from_nanos(connection.seen_ns);
        made.closed(&mut self.file, at).map_err(writing())
    }
}

/// A connection's addresses; made up as far as the tap does not have them any more.
fn ends(one: &TapedConnection, gateway: GatewayId, layout: &Layout) -> [SocketAddr; 2] {
    let mut said = one.addresses.split(' ').filter_map(|address| address.parse().ok());
    if let (Some(peer), Some(own)) = (said.next(), said.next()) {
        return [peer, own];
    }
    let path = match one.door {
        TapDoor::Binary => layout.gateway_address(gateway),
        TapDoor::Fix => layout.fix_address(gateway),
        TapDoor::Ouch => layout.ouch_address(gateway),
    };
    let own = std::fs::read_to_string(path).ok().and_then(|text| text.trim().parse().ok());
    let port = PORT_FIRST + (one.number % u32::from(u16::MAX - PORT_FIRST)) as u16;
    [SocketAddr::from((UNKNOWN, port)), own.unwrap_or(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)))]
}
