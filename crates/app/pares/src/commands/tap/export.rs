//! `pares tap export`: the bytes as packets of TCP.
//!
//! A tap has what passed at the socket, not how the network cut it. So the segments are made up. Addresses, ports and times are real; what is missing is a
//! gap in a stream's numbers, as in a capture that lost a packet.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use pares_node::Layout;
use pares_tap::{TapDoor, TapeEnd, TapedConnection};
use pares_types::GatewayId;

use super::select::Select;
use crate::commands::frames::{MadeConnection, PacketFile};
use crate::error::{CommandError, CommandResult};
use crate::text::count;

/// Where connections come from whose beginning the tap does not have any more: addresses that are for documents.
const UNKNOWN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
/// Their ports begin here.
const PORT_FIRST: u16 = 1_024;

/// What happens, in order of time.
enum Step {
    Open,
    Piece(usize),
    Close,
}

/// Writes them.
///
/// # Errors
/// If there is no tap, it cannot be read, or the file cannot be written.
pub fn run(layout: &Layout, select: &Select, to: &Path) -> CommandResult {
    let mut connections = Vec::new();
    for taped in select.read(layout, true)? {
        connections.extend(taped.connections.into_iter().map(|one| (ends(&one, taped.gateway, layout), one)));
    }
    let write = || {
        let mut file = PacketFile::create_ng(to)?;
        write(&mut file, &connections, select)?;
        let packets = file.packets;
        file.finish().map(|()| packets)
    };
    let packets = write().map_err(CommandError::io("writing the packets"))?;
    pares_text::tell!(
        "{}: {} of {}",
        to.display(),
        count(packets, "packet"),
        count(connections.len() as u64, "connection")
    );
    for (door, dissector) in [(TapDoor::Fix, "fix"), (TapDoor::Ouch, "soupbintcp")] {
        let mut ports: Vec<u16> =
            connections.iter().filter(|(_, one)| one.door == door).map(|(ends, _)| ends[1].port()).collect();
        ports.sort_unstable();
        ports.dedup();
        ports
            .iter()
            .for_each(|port| pares_text::tell!("dissect {dissector} with -d tcp.port=={port},{dissector}"));
    }
    Ok(())
}

fn write(
    file: &mut PacketFile,
    connections: &[([SocketAddr; 2], TapedConnection)],
    select: &Select,
) -> io::Result<()> {
    let span = select.span();
    let mut steps = Vec::new();
    for (index, (_, one)) in connections.iter().enumerate() {
        steps.push((one.opened_ns, index, Step::Open));
        let pieces = one.pieces.iter().enumerate().filter(|(_, piece)| span.has(piece.wall_ns));
        steps.extend(pieces.map(|(at, piece)| (piece.wall_ns, index, Step::Piece(at))));
        if one.end != TapeEnd::Open {
            steps.push((one.seen_ns, index, Step::Close));
        }
    }
    steps.sort_by_key(|(ns, ..)| *ns);
    let mut made: Vec<Option<MadeConnection>> = connections.iter().map(|_| None).collect();
    for (ns, index, step) in steps {
        let (at, (ends, one)) = (Duration::from_nanos(ns), &connections[index]);
        if made[index].is_none() {
            made[index] = Some(MadeConnection::opened(file, at, *ends)?);
        }
        let connection = made[index].as_mut().expect("just made");
        match step {
            Step::Open => {}
            Step::Piece(piece) => {
                let piece = &one.pieces[piece];
                let end = usize::from(!piece.is_in);
                connection.skip_to(end, piece.at);
                connection.sent(file, at, end, &piece.bytes)?;
            }
            Step::Close => connection.closed(file, at)?,
        }
    }
    Ok(())
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
