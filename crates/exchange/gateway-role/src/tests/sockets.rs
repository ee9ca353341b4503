//! Sockets in memory: a client's end is the test's.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use pares_port::DoorPort;
use pares_roles::world::{Ready, Sockets};

/// Where clients with an address come to.
pub(super) const OWN_ADDRESS: [u8; 4] = [10, 0, 0, 5];

/// All connections of a gateway, those that wait included.
#[derive(Clone, Default)]
pub(super) struct Net(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    peers: Vec<Peer>,
    /// At the gateway's own port, at that for FIX, and at the operators' socket.
    backlogs: [VecDeque<usize>; 3],
    /// A client came since the listener was last told of.
    come: bool,
    /// Calls of the gateway: connections accepted, read, written, ended.
    calls: usize,
    /// Connections that can be open at once.
    descriptors: Option<usize>,
    broken: bool,
}

/// One connection.
#[derive(Default)]
struct Peer {
    to_gateway: VecDeque<u8>,
    to_client: Vec<u8>,
    slot: Option<usize>,
    /// Where its client is, if that can be said.
    address: Option<IpAddr>,
    /// It takes nothing more; whether it has just begun to again.
    full: bool,
    drained: bool,
    /// Something came since it was last told of.
    fresh: bool,
    open: bool,
    closed: bool,
}

impl Net {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    pub(super) fn connect(&self) -> usize {
        self.connect_at(0)
    }

    /// A client of that address connects.
    pub(super) fn connect_from(&self, address: [u8; 4]) -> usize {
        let peer = self.connect();
        self.state().peers[peer].address = Some(address.into());
        peer
    }

    pub(super) fn connect_fix(&self) -> usize {
        self.connect_at(1)
    }

    pub(super) fn connect_operator(&self) -> usize {
        self.connect_at(2)
    }

    fn connect_at(&self, port: usize) -> usize {
        let mut state = self.state();
        let peer = state.peers.len();
        state.peers.push(Peer::default());
        state.backlogs[port].push_back(peer);
        state.come = true;
        peer
    }

    /// Takes in the next that waits at a port.
    fn accept_at(&self, port: usize) -> io::Result<Stream> {
        let mut state = self.state();
        let Some(&peer) = state.backlogs[port].front() else { return Err(ErrorKind::WouldBlock.into()) };
        let open = state.peers.iter().filter(|peer| peer.open).count();
        if state.descriptors.is_some_and(|descriptors| open >= descriptors) {
            return Err(io::Error::other("too many open files"));
        }
        state.calls += 1;
        state.backlogs[port].pop_front();
        state.peers[peer].open = true;
        Ok(Stream { net: self.clone(), peer })
    }

    pub(super) fn send(&self, peer: usize, bytes: &[u8]) {
        let peer = &mut self.state().peers[peer];
        peer.to_gateway.extend(bytes);
        peer.fresh = true;
    }

    /// The same, of what is written.
    pub(super) fn write(&self, peer: usize, write: impl FnOnce(&mut Vec<u8>)) {
        let mut bytes = Vec::new();
        write(&mut bytes);
        self.send(peer, &bytes);
    }

    /// A client reads what has come.
    pub(super) fn receive(&self, peer: usize) -> Vec<u8> {
        std::mem::take(&mut self.state().peers[peer].to_client)
    }

    /// A client reads nothing for now, and what lies between is full; or it reads again.
    pub(super) fn set_full(&self, peer: usize, full: bool) {
        let peer = &mut self.state().peers[peer];
        (peer.full, peer.drained) = (full, !full);
    }

    /// A client goes.
    pub(super) fn close(&self, peer: usize) {
        let peer = &mut self.state().peers[peer];
        (peer.closed, peer.fresh) = (true, true);
    }

    /// Whether the gateway has accepted the connection and not ended it.
    pub(super) fn is_open(&self, peer: usize) -> bool {
        self.state().peers[peer].open
    }

    /// Calls of the gateway since this was last asked.
    pub(super) fn take_calls(&self) -> usize {
        std::mem::take(&mut self.state().calls)
    }

    /// So many connections can be open at once.
    pub(super) fn limit_descriptors(&self, descriptors: Option<usize>) {
        self.state().descriptors = descriptors;
    }

    /// Every poll fails from now on.
    pub(super) fn break_poll(&self) {
        self.state().broken = true;
    }
}

/// The gateway's end of a connection.
pub(super) struct Stream {
    net: Net,
    peer: usize,
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.net.state().peers[self.peer].open = false;
    }
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut state = self.net.state();
        state.calls += 1;
        let peer = &mut state.peers[self.peer];
        match peer.to_gateway.is_empty() {
            true if peer.closed => Ok(0),
            true => Err(ErrorKind::WouldBlock.into()),
            false => peer.to_gateway.read(bytes),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut state = self.net.state();
        state.calls += 1;
        let peer = &mut state.peers[self.peer];
        if peer.full {
            return Err(ErrorKind::WouldBlock.into());
        }
        peer.to_client.extend(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Sockets for Net {
    type Stream = Stream;

    fn accept(&mut self) -> io::Result<Stream> {
        self.accept_at(0)
    }

    fn accept_by(&mut self, protocol: DoorPort) -> io::Result<Stream> {
        match protocol {
            DoorPort::Fix => self.accept_at(1),
            DoorPort::Ouch => Err(ErrorKind::WouldBlock.into()),
        }
    }

    fn accept_operator(&mut self) -> io::Result<Stream> {
        self.accept_at(2)
    }

    fn ends(&self, stream: &mut Stream) -> Option<[SocketAddr; 2]> {
        let address = self.state().peers[stream.peer].address?;
        Some([(address, 1).into(), (OWN_ADDRESS, 1).into()])
    }

    fn register(&mut self, stream: &mut Stream, slot: usize) -> io::Result<()> {
        self.state().peers[stream.peer].slot = Some(slot);
        Ok(())
    }

    fn deregister(&mut self, stream: &mut Stream) {
        let mut state = self.state();
        state.calls += 1;
        state.peers[stream.peer].slot = None;
    }

    fn poll(&mut self, _: Duration, ready: &mut Vec<Ready>) -> io::Result<()> {
        let mut state = self.state();
        if state.broken {
            return Err(io::Error::other("bad file descriptor"));
        }
        if std::mem::take(&mut state.come) {
            ready.push(Ready::Listener);
        }
        for peer in &mut state.peers {
            let Some(slot) = peer.slot else { continue };
            let (readable, writable) = (std::mem::take(&mut peer.fresh), std::mem::take(&mut peer.drained));
            if readable || writable {
                ready.push(Ready::Stream { slot, readable, writable });
            }
        }
        Ok(())
    }
}
