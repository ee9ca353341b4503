//! A connection's socket, and what has come in on it.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use super::FrontEnd;

/// Bytes read at once. Less than a message of them is left behind each time, so there is always room.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// A connection that nobody waits for.
#[derive(Debug)]
pub(crate) struct Line {
    pub(crate) socket: TcpStream,
    /// Of a fixed length, beyond that of any message.
    input: Vec<u8>,
    /// How much of it came in and is not done with.
    filled: usize,
}

fn lost(error: &std::io::Error) -> FrontEnd {
    FrontEnd::Lost(error.to_string())
}

impl Line {
    /// Connects.
    ///
    /// # Errors
    /// If nobody listens there.
    pub(crate) fn connect(address: SocketAddr) -> std::io::Result<Self> {
        let socket = TcpStream::connect(address)?;
        socket.set_nodelay(true)?;
        socket.set_nonblocking(true)?;
        Ok(Self { socket, input: vec![0; READ_BYTES], filled: 0 })
    }

    /// Sends of that as much as the connection takes.
    pub(crate) fn flush(&mut self, output: &mut Vec<u8>) -> Result<(), FrontEnd> {
        let mut sent = 0;
        while sent < output.len() {
            match self.socket.write(&output[sent..]) {
                Ok(count) => sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(lost(&error)),
            }
        }
        output.drain(..sent);
        Ok(())
    }

    /// Reads what is there and hands it out: `take` takes the first message, if it is whole, and says how long it was. How many there were.
    pub(crate) fn poll(
        &mut self,
        mut take: impl FnMut(&[u8]) -> Result<Option<usize>, FrontEnd>,
    ) -> Result<usize, FrontEnd> {
        let read = match self.socket.read(&mut self.input[self.filled..]) {
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => None,
            read => Some(read.map_err(|error| lost(&error))?),
        };
        self.filled += read.unwrap_or_default();
        let (mut at, mut count) = (0, 0);
        while let Some(length) = take(&self.input[at..self.filled])? {
            at += length;
            count += 1;
        }
        self.input.copy_within(at..self.filled, 0);
        self.filled -= at;
        match read {
            Some(0) => Err(FrontEnd::Lost("the gateway closed the connection".into())),
            _ => Ok(count),
        }
    }
}
