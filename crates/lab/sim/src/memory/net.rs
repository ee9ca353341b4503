//! Connections in memory, which deliver bytes late, in pieces, and break.

use std::collections::{BTreeMap, VecDeque};

use pares_config::NodeId;
use pares_port::DoorPort;

/// A connection between a client and the node that serves it.
#[derive(Debug)]
pub(crate) struct Connection {
    /// Which node serves it, in which of its lives.
    pub(crate) server: NodeId,
    pub(crate) life: u32,
    /// The port, if it is one of another protocol.
    pub(super) port: Option<DoorPort>,
    /// Arrived at the server and not read.
    pub(super) to_server: VecDeque<u8>,
    /// Sent by the server; the network takes it.
    pub(super) to_client: VecDeque<u8>,
    /// The client has closed it, or it broke.
    pub(crate) is_gone: bool,
    /// The server has closed it.
    pub(crate) is_closed: bool,
    /// The other end, if that is a node's too: each end is a connection of its own, and the network carries from one to the other.
    pub(crate) twin: Option<usize>,
    /// What reads gave and writes took, if taps are held against it.
    pub(crate) passed: [Vec<u8>; 2],
    pub(super) slot: Option<usize>,
    pub(super) became_readable: bool,
    pub(super) became_writable: bool,
}

impl Connection {
    fn new(server: NodeId, life: u32) -> Self {
        let (to_server, to_client) = (VecDeque::new(), VecDeque::new());
        let [is_gone, is_closed, became_readable, became_writable] = [false; 4];
        Self {
            server,
            life,
            port: None,
            to_server,
            to_client,
            is_gone,
            is_closed,
            twin: None,
            passed: [Vec::new(), Vec::new()],
            slot: None,
            became_readable,
            became_writable,
        }
    }
}

/// All connections of one network there ever were, and those that wait for each server.
#[derive(Debug, Default)]
pub(crate) struct Net {
    pub(super) connections: Vec<Connection>,
    pub(super) waiting: BTreeMap<(NodeId, Option<DoorPort>), VecDeque<usize>>,
    pub(super) became_waiting: BTreeMap<NodeId, bool>,
    /// Whether what passes is kept.
    pub(crate) is_taped: bool,
    /// [`Bug::ReadSeldom`]: how often a gateway was to read from the first connection.
    pub(super) first_reads: u32,
    /// Connections that a server may have open, if there is a bound.
    pub(crate) descriptors_max: Option<usize>,
}

impl Net {
    /// A client connects to a server, perhaps at its port of another protocol.
    pub(crate) fn connect(&mut self, server: NodeId, life: u32, port: Option<DoorPort>) -> usize {
        self.connections.push(Connection { port, ..Connection::new(server, life) });
        let number = self.connections.len() - 1;
        self.waiting.entry((server, port)).or_default().push_back(number);
        self.became_waiting.insert(server, true);
        number
    }

    /// A node connects to another one. Its own end.
    pub(super) fn dial(&mut self, (from, from_life): (NodeId, u32), (to, to_life): (NodeId, u32)) -> usize {
        let there = self.connect(to, to_life, None);
        let mut here = Connection::new(from, from_life);
        here.twin = Some(there);
        self.connections.push(here);
        let number = self.connections.len() - 1;
        self.connections[there].twin = Some(number);
        number
    }

    /// Connections there ever were.
    pub(crate) fn count(&self) -> usize {
        self.connections.len()
    }

    pub(crate) fn connection(&self, number: usize) -> &Connection {
        &self.connections[number]
    }

    /// Bytes arrive at the server.
    pub(crate) fn deliver(&mut self, number: usize, bytes: &[u8]) {
        let connection = &mut self.connections[number];
        connection.to_server.extend(bytes);
        connection.became_readable = true;
    }

    /// The server learns that the client is gone.
    pub(crate) fn hang_up(&mut self, number: usize) {
        let connection = &mut self.connections[number];
        (connection.is_gone, connection.became_readable) = (true, true);
    }

    /// The server's process is dead: so are its connections.
    pub(crate) fn drop_all_of(&mut self, server: NodeId) -> Vec<usize> {
        self.waiting.retain(|(of, _), _| *of != server);
        let open = self.connections.iter_mut().enumerate();
        let open = open.filter(|(_, connection)| connection.server == server && !connection.is_closed);
        open.map(|(number, connection)| {
            connection.is_closed = true;
            number
        })
        .collect()
    }

    /// What servers have sent on some connections since this was last asked: bytes by connection.
    pub(crate) fn take_sent(&mut self, is_taken: impl Fn(usize) -> bool) -> Vec<(usize, Vec<u8>)> {
        let numbers = (0..self.connections.len()).filter(|&number| is_taken(number));
        numbers
            .map(|number| (number, self.take_sent_on(number)))
            .filter(|(_, sent)| !sent.is_empty())
            .collect()
    }

    /// The same of one connection.
    pub(crate) fn take_sent_on(&mut self, number: usize) -> Vec<u8> {
        let one = &mut self.connections[number];
        one.became_writable |= !one.to_client.is_empty();
        one.to_client.drain(..).collect()
    }

    pub(super) fn open_of(&self, server: NodeId) -> usize {
        let open = |one: &&Connection| one.server == server && one.slot.is_some() && !one.is_closed;
        self.connections.iter().filter(open).count()
    }
}
