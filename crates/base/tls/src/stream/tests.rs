//! Two ends in memory.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use rustls::ServerConnection;

use super::*;
use crate::{Authority, Callers, Identity, Lifetime, TlsFiles};

type Pipe = Rc<RefCell<VecDeque<u8>>>;

/// One end of a connection in memory. It takes at most `room` bytes, until the other end reads.
struct End {
    input: Pipe,
    output: Pipe,
    room: usize,
}

impl Read for End {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let mut input = self.input.borrow_mut();
        input.make_contiguous();
        match input.read(into)? {
            0 => Err(ErrorKind::WouldBlock.into()),
            read => Ok(read),
        }
    }
}

impl Write for End {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut output = self.output.borrow_mut();
        let taken = bytes.len().min(self.room.saturating_sub(output.len()));
        output.extend(&bytes[..taken]);
        if taken == 0 { Err(ErrorKind::WouldBlock.into()) } else { Ok(taken) }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A client and a server whose handshake is over.
fn connected(room: usize) -> (TlsStream<End>, TlsStream<End>) {
    let dir = tempfile::tempdir().unwrap();
    let files = TlsFiles::named(dir.path(), "one");
    let authority = Authority::in_dir(dir.path(), "pares").unwrap();
    authority.issue(&files, &["one.pares".into()], Lifetime::Endless).unwrap();
    let identity = Identity::load(&files).unwrap();
    let (there, back) = (Pipe::default(), Pipe::default());
    let end = |input: &Pipe, output: &Pipe| End { input: input.clone(), output: output.clone(), room };
    let client = identity.trust().unwrap().dial("one.pares").unwrap();
    let server = ServerConnection::new(identity.server(Callers::Certified).unwrap()).unwrap();
    let mut client = TlsStream::new(end(&back, &there), client);
    let mut server = TlsStream::new(end(&there, &back), server);
    while !client.shake_hands().unwrap() | !server.shake_hands().unwrap() {}
    (client, server)
}

fn numbered(count: usize) -> Vec<u8> {
    (0..count).map(|at| (at % 251) as u8).collect()
}

#[test]
fn bytes_arrive_in_order_however_little_room_there_is() {
    let sent = numbered(100_000);
    for (room, piece) in [(1 << 20, 100_000), (700, 100_000), (40_000, 33), (1 << 20, 1)] {
        let (mut client, mut server) = connected(room);
        let (mut written, mut read) = (0, Vec::new());
        let mut into = vec![0; piece.max(7)];
        while read.len() < sent.len() {
            match client.write(&sent[written..sent.len().min(written + 20_000)]) {
                Ok(more) => written += more,
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
            match server.read(&mut into) {
                Ok(more) => read.extend_from_slice(&into[..more]),
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => assert_eq!(error.kind(), ErrorKind::WouldBlock),
            }
        }
        assert_eq!(read, sent, "{room} {piece}");
    }
}

#[test]
fn short_read_marks_end_and_read_work_is_bounded() {
    let (mut client, mut server) = connected(1 << 30);
    let sent = numbered(10_000);
    // A record for each byte.
    sent.iter().for_each(|byte| client.write_all(&[*byte]).unwrap());
    let (mut read, mut interrupted, mut into) = (Vec::new(), 0, [0; 16 << 10]);
    while read.len() < sent.len() {
        let before = server.socket().input.borrow().len();
        match server.read(&mut into) {
            Ok(more) => {
                assert!(server.socket().input.borrow().is_empty(), "short, and there is more");
                read.extend_from_slice(&into[..more]);
            }
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::Interrupted);
                interrupted += 1;
            }
        }
        assert!(before - server.socket().input.borrow().len() <= READ_MAX + SCRATCH_BYTES);
    }
    assert_eq!(read, sent);
    assert!(interrupted > 3, "{interrupted}");
    assert_eq!(server.read(&mut into).unwrap_err().kind(), ErrorKind::WouldBlock);
}

#[test]
fn what_a_socket_does_not_take_waits_and_is_bounded() {
    let (mut client, mut server) = connected(10_000);
    let mut written = 0;
    let full = loop {
        match client.write(&[7; 10_000]) {
            Ok(more) => written += more,
            Err(error) => break error,
        }
        assert!(written < 4 * UNSENT_MAX, "bounded");
    };
    assert_eq!(full.kind(), ErrorKind::WouldBlock);
    assert_eq!(client.flush().unwrap_err().kind(), ErrorKind::WouldBlock);
    let (mut read, mut into) = (0, [0; 4_096]);
    while read < written {
        let _ = client.flush();
        read += server.read(&mut into).unwrap_or(0);
    }
    client.flush().unwrap();
}

#[test]
fn the_end_of_a_connection_is_met_behind_its_bytes() {
    let (mut client, mut server) = connected(1 << 20);
    client.write_all(b"last").unwrap();
    client.tls().send_close_notify();
    client.flush().unwrap();
    let mut into = [0; 64];
    assert_eq!(server.read(&mut into).unwrap(), 4);
    assert_eq!(server.read(&mut into).unwrap(), 0);
}
