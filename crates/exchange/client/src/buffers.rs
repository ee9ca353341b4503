//! The two byte buffers of a connection. Both are bounded, and move bytes only when they must.

use std::io::{self, ErrorKind, Read, Write};

use pares_wire::frame::{self, FRAME_MAX};

use crate::{ClientError, Update};

/// Bytes read from the gateway at most at a time.
const INBOX_BYTES: usize = 64 * 1024;
/// Bytes that may wait to be sent.
pub(crate) const OUTBOX_MAX: usize = 1024 * 1024;

/// What came in and is not decoded yet.
///
/// ```text
/// 0 .. start   decoded
/// start .. end whole frames, then perhaps the front of one
/// end ..       free
/// ```
pub(crate) struct Inbox {
    bytes: Box<[u8]>,
    start: usize,
    end: usize,
}

impl Inbox {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; INBOX_BYTES].into(), start: 0, end: 0 }
    }

    /// Reads once. `false` if there was nothing to read.
    pub(crate) fn fill(&mut self, from: &mut impl Read) -> Result<bool, ClientError> {
        if self.start > 0 && self.bytes.len() - self.end < FRAME_MAX {
            self.bytes.copy_within(self.start..self.end, 0);
            (self.start, self.end) = (0, self.end - self.start);
        }
        match from.read(&mut self.bytes[self.end..]) {
            Ok(0) => Err(ClientError::Closed),
            Ok(count) => {
                self.end += count;
                Ok(true)
            }
            Err(error) if is_not_now(&error) => Ok(false),
            Err(error) => Err(ended(error)),
        }
    }

    /// The next message, once all of it is there.
    pub(crate) fn next(&mut self) -> Result<Option<Update>, ClientError> {
        let Some((kind, body, rest)) = frame::split(&self.bytes[self.start..self.end])? else {
            return Ok(None);
        };
        let update = frame::decode_gateway(kind, body)?.into();
        self.start = self.end - rest.len();
        if self.start == self.end {
            (self.start, self.end) = (0, 0);
        }
        Ok(Some(update))
    }
}

/// What is to be sent.
#[derive(Default)]
pub(crate) struct Outbox {
    bytes: Vec<u8>,
    sent: usize,
}

impl Outbox {
    /// Appends what `write` writes, unless too much is waiting already.
    pub(crate) fn push(&mut self, write: impl FnOnce(&mut Vec<u8>)) -> Result<(), ClientError> {
        if self.bytes.len() + FRAME_MAX > OUTBOX_MAX {
            return Err(ClientError::Backlogged);
        }
        write(&mut self.bytes);
        Ok(())
    }

    /// Sends what the connection takes. Whether that was everything.
    pub(crate) fn flush(&mut self, to: &mut impl Write) -> Result<bool, ClientError> {
        while self.sent < self.bytes.len() {
            match to.write(&self.bytes[self.sent..]) {
                Ok(0) => return Err(ClientError::Closed),
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(ended(error)),
            }
        }
        // A stream may have taken bytes that its socket has not.
        match to.flush() {
            Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(ended(error)),
            _ => {}
        }
        self.bytes.drain(..self.sent);
        self.sent = 0;
        Ok(self.bytes.is_empty())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }
}

fn is_not_now(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted | ErrorKind::TimedOut)
}

/// What an error of the connection means.
fn ended(error: io::Error) -> ClientError {
    match error.kind() {
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted | ErrorKind::BrokenPipe => {
            ClientError::Closed
        }
        ErrorKind::InvalidData => ClientError::Handshake(error),
        _ => error.into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pares_wire::frame::Pong;

    fn pongs(count: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        (0..count).for_each(|token| frame::write(&mut bytes, &Pong { token: token.into() }));
        bytes
    }

    /// Gives at most `step` bytes a read, then says "not now".
    struct Dribble<'a>(&'a [u8], usize);

    impl Read for Dribble<'_> {
        fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
            if self.0.is_empty() {
                return Err(ErrorKind::WouldBlock.into());
            }
            let step = self.1.min(into.len()).min(self.0.len());
            into[..step].copy_from_slice(&self.0[..step]);
            self.0 = &self.0[step..];
            Ok(step)
        }
    }

    #[test]
    fn frames_come_out_whole_however_they_were_cut() {
        let bytes = pongs(20_000);
        for step in [1, 7, 12, 4_096, usize::MAX] {
            let (mut inbox, mut from, mut next) = (Inbox::new(), Dribble(&bytes, step), 0);
            while inbox.fill(&mut from).unwrap() {
                while let Some(update) = inbox.next().unwrap() {
                    assert_eq!(update, Update::Pong { token: next });
                    next += 1;
                }
            }
            assert_eq!(next, 20_000);
        }
    }

    #[test]
    fn a_closed_connection_is_an_error_not_silence() {
        let closed = Inbox::new().fill(&mut io::empty());
        assert!(matches!(closed, Err(ClientError::Closed)));
    }

    #[test]
    fn a_full_outbox_refuses_and_keeps_what_it_has() {
        let mut outbox = Outbox::default();
        let mut frames = 0;
        while outbox.push(|out| frame::write(out, &Pong { token: 1.into() })).is_ok() {
            frames += 1;
        }
        let mut sent = Vec::new();
        assert!(outbox.flush(&mut sent).unwrap());
        assert_eq!(sent.len(), frames * 12);
    }
}
