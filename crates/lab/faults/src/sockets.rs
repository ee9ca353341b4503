//! A gateway's sockets, at which it may die between being asked and having answered.

use std::io::{self, Read, Write};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use pares_port::DoorPort;
use pares_roles::world::{Ready, RejectedConnections, Sockets};
use pares_wire::frame::{self, Message, SignedOn};

use crate::Faults;
use crate::crash::Point;

/// Sockets of a gateway that fails where the environment says.
#[derive(Debug)]
pub struct FaultySockets<S> {
    pub(crate) inner: S,
    pub(crate) faults: Arc<Faults>,
}

impl<S: Sockets> Sockets for FaultySockets<S> {
    type Stream = FaultyStream<S::Stream>;

    fn accept(&mut self) -> io::Result<Self::Stream> {
        let inner = self.inner.accept()?;
        Ok(FaultyStream { inner, faults: Arc::clone(&self.faults), signed_on: false })
    }

    fn accept_by(&mut self, protocol: DoorPort) -> io::Result<Self::Stream> {
        let inner = self.inner.accept_by(protocol)?;
        Ok(FaultyStream { inner, faults: Arc::clone(&self.faults), signed_on: false })
    }

    fn accept_operator(&mut self) -> io::Result<Self::Stream> {
        let inner = self.inner.accept_operator()?;
        Ok(FaultyStream { inner, faults: Arc::clone(&self.faults), signed_on: false })
    }

    fn ends(&self, stream: &mut Self::Stream) -> Option<[SocketAddr; 2]> {
        self.inner.ends(&mut stream.inner)
    }

    fn register(&mut self, stream: &mut Self::Stream, slot: usize) -> io::Result<()> {
        self.inner.register(&mut stream.inner, slot)
    }

    fn deregister(&mut self, stream: &mut Self::Stream) {
        self.inner.deregister(&mut stream.inner);
    }

    passed_on! {
        fn poll(&mut self, timeout: Duration, ready: &mut Vec<Ready>) -> io::Result<()>;
        fn turned_away(&self) -> RejectedConnections;
    }
}

/// One connection.
#[derive(Debug)]
pub struct FaultyStream<S> {
    inner: S,
    faults: Arc<Faults>,
    /// Whether the client has received that it is signed on.
    signed_on: bool,
}

impl<S: Read> Read for FaultyStream<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(buffer)?;
        if read > 0 {
            self.faults.crash.at(Point::GatewayReceived);
        }
        Ok(read)
    }
}

impl<S: Write> Write for FaultyStream<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let crash = &self.faults.crash;
        if self.signed_on {
            crash.at(Point::GatewayAnswered);
        } else if matches!(frame::split(bytes), Ok(Some((SignedOn::KIND, ..)))) {
            self.signed_on = true;
            crash.at(Point::GatewaySigningOn);
        }
        let written = self.inner.write(bytes)?;
        crash.at(Point::GatewaySent);
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
