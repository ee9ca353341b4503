//! What a session's client is answered: by the server, whose messages pass through, and by the session.

use std::io;

use crate::front::LOST;
use crate::link::{CANCELLED, Link};
use crate::session::{Session, State};
use crate::wire::{Message, text};

/// Why the session ends a COPY.
const NO_ROWS: &str = "the site has received no rows";
/// Of answers that are held back.
const HELD_MAX_BYTES: usize = 1 << 20;

impl Session {
    /// Writes to the client, behind what is held back. What it may wait for before it says more, an error or a notice, goes out at once.
    pub(crate) fn write(&mut self, message: &Message) -> io::Result<()> {
        if message.tag == b'E' {
            self.held.clear();
            self.has_ended |= message.is_last();
        }
        if self.state == State::Implicit && !self.held.is_empty() {
            return self.hold(message.clone());
        }
        self.release()?;
        self.client.send(message)?;
        if matches!(message.tag, b'E' | b'N') { self.client.flush() } else { Ok(()) }
    }

    /// Holds an answer back. Of more than [`HELD_MAX_BYTES`] all go out.
    fn hold(&mut self, message: Message) -> io::Result<()> {
        self.held_bytes = if self.held.is_empty() { 0 } else { self.held_bytes } + message.body.len();
        self.held.push(message);
        if self.held_bytes > HELD_MAX_BYTES { self.release() } else { Ok(()) }
    }

    pub(super) fn release(&mut self) -> io::Result<()> {
        self.held.drain(..).try_for_each(|held| self.client.send(&held))
    }

    /// What ends a statement: a driver may take it for the outcome, if the transaction is this statement's.
    pub(crate) fn complete(&mut self, message: Message) -> io::Result<()> {
        if self.state == State::Implicit { self.hold(message) } else { self.write(&message) }
    }

    /// The client gets all that it was answered.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.release()?;
        self.client.flush()
    }

    /// What the server said beside. Of a parameter that COMMIT has changed and set back only the last value counts.
    pub(crate) fn beside(&mut self, link: &mut Link) -> io::Result<()> {
        let aside = std::mem::take(&mut link.aside);
        for (at, message) in aside.iter().enumerate() {
            let mut later = aside[at + 1..].iter().filter_map(Message::parameter);
            if message.parameter().is_none_or(|(name, _)| later.all(|(other, _)| other != name)) {
                self.write(message)?;
            }
        }
        Ok(())
    }

    /// What the server says that it was not asked: that it has ended the session, for one.
    pub(super) fn overhear(&mut self, link: &mut Link) -> io::Result<()> {
        while link.has_said()? {
            let message = link.receive()?;
            self.write(&message)?;
        }
        self.client.flush()
    }

    /// Takes the server's answer to a simple query; whether it was done.
    pub(super) fn relay(&mut self, link: &mut Link) -> io::Result<bool> {
        let (mut done, mut copies) = (true, false);
        loop {
            if copies {
                copies = self.rows(link, false)?;
            }
            let message = link.receive()?;
            match message.tag {
                b'Z' => return Ok(done),
                b'E' => {
                    (done, copies) = (false, false);
                    self.end_if_copying(&message)?;
                    let message = self.meant(message);
                    self.write(&message)?;
                }
                b'G' => copies = self.copies(&message)?,
                b'C' => self.complete(message)?,
                _ => self.write(&message)?,
            }
        }
    }

    /// The server takes [rows](Session::rows) from now on.
    pub(crate) fn copies(&mut self, message: &Message) -> io::Result<bool> {
        self.write(message)?;
        self.flush()?;
        Ok(true)
    }

    /// Passes the client's rows on until the server says something, or the client ends them; whether they may continue.
    pub(crate) fn rows(&mut self, link: &mut Link, extended: bool) -> io::Result<bool> {
        while !link.has_more() {
            if !self.client.has_more() {
                link.flush()?;
            }
            let Some(rows) = self.client.receive()? else { return Ok(true) };
            match rows.tag {
                b'd' => link.pass_on(&rows)?,
                b'c' | b'f' => return link.pass(&rows, extended).map(|()| false),
                // As the server takes them while it copies.
                b'H' | b'S' => {}
                // The server may have refused a row and be about to take this for what it says: so it is asked whether it still copies.
                _ => {
                    self.early = Some(rows);
                    return link.pass(&Message::new(b'f', text(NO_ROWS)), extended).map(|()| false);
                }
            }
        }
        Ok(true)
    }

    /// Ends the session if an error says that the server still copied when its client sent something else than rows.
    pub(crate) fn end_if_copying(&mut self, copy: &Message) -> io::Result<()> {
        let Some(early) = self.early.take_if(|_| copy.field(b'M').contains(NO_ROWS)) else { return Ok(()) };
        let why = format!("unexpected message type 0x{:02X} during COPY from stdin", early.tag);
        self.write(&Message::error("08P01", &why))?;
        self.write(&Message::fatal(
            "08P01",
            "terminating connection because protocol synchronization was lost",
        ))?;
        Err(io::ErrorKind::InvalidData.into())
    }

    /// What a failed statement means here: one that was cancelled because the writer needed the way has lost.
    pub(crate) fn meant(&self, message: Message) -> Message {
        let is_cancelled = message.tag == b'E' && message.field(b'C') == CANCELLED;
        if is_cancelled && self.shared.is_in_the_way() { Message::error("40001", LOST) } else { message }
    }
}
