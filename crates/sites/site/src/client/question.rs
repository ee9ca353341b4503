//! A question that a client asks until it is answered: what follows from each reply, and from silence.
//!
//! A site that is silent may have done what it was asked. So "no answer" must not become "no" for a change; a read changes nothing, and the
//! last reason that any site gave is worth more than that another was silent.

use std::io;
use std::time::Duration;

use super::CallError;
use crate::protocol::{Ask, Code, Reply};

/// What became of a call's connections.
#[derive(Default)]
struct Doors {
    tried: usize,
    /// A site may have been asked.
    was_open: bool,
    /// Why TLS failed last.
    why: Option<String>,
}

impl Doors {
    fn failed(&mut self, was_connected: bool, error: io::Error) {
        self.tried += 1;
        match error.kind() {
            io::ErrorKind::InvalidData => self.why = Some(error.to_string()),
            _ => self.was_open |= was_connected,
        }
    }

    /// Why no site lets this client in, if none was asked anything, and TLS is why: waiting does not help then.
    fn shut(&mut self, sites: usize) -> Option<String> {
        if self.tried >= sites && !self.was_open { self.why.take() } else { None }
    }
}

/// Whether an answer speaks of the asked site alone. Refusals do not: they are certified.
fn is_local(ask: &Ask, code: Code) -> bool {
    matches!(ask, Ask::Execute(..))
        && matches!(code, Code::Aborted | Code::Behind | Code::Impossible | Code::Busy)
}

pub(super) fn is_read(ask: &Ask) -> bool {
    matches!(ask, Ask::Read(..) | Ask::Latest(..))
}

/// A question that is asked until it is answered.
pub(super) struct Question<'a> {
    ask: &'a Ask,
    /// Whether a site may have done it, and has not said so.
    was_asked: bool,
    /// Why the last site sent it elsewhere.
    why: Option<String>,
    doors: Doors,
}

/// What follows from a reply.
pub(super) enum Heard {
    Done(Vec<u8>),
    /// Another site may know.
    Elsewhere,
    AskAgain,
}

impl<'a> Question<'a> {
    /// `again`: it may have been asked, and done, before.
    pub(super) fn new(ask: &'a Ask, again: bool) -> Self {
        let doors = Doors { was_open: again, ..Doors::default() };
        Self { ask, was_asked: again, why: None, doors }
    }

    pub(super) fn heard(&mut self, reply: Reply) -> Result<Heard, CallError> {
        let Reply { code, body, .. } = reply;
        let text = || String::from_utf8_lossy(&body).into_owned();
        match code {
            Code::Done => return Ok(Heard::Done(body)),
            // This one's connection is as good as ever.
            Code::Unknown => self.was_asked = true,
            Code::Elsewhere => self.why = Some(text()),
            // This site has not done it; whether one that was asked before has, it cannot know.
            code if self.was_asked && is_local(self.ask, code) => return Ok(Heard::AskAgain),
            code => return Err(CallError::No { code, why: text() }),
        }
        Ok(Heard::Elsewhere)
    }

    /// A site has not answered, one of so many.
    pub(super) fn failed(&mut self, was_open: bool, error: io::Error, sites: usize) -> Result<(), CallError> {
        self.was_asked = true;
        self.doors.failed(was_open, error);
        self.doors.shut(sites).map_or(Ok(()), |why| Err(CallError::Shut(why)))
    }

    /// No site has answered for so long. What may have been done by a site that was silent matters, unless it changes nothing.
    pub(super) fn in_vain(self, patience: Duration) -> CallError {
        match self.why.filter(|_| !self.was_asked || is_read(self.ask)) {
            Some(why) => CallError::No { code: Code::Elsewhere, why },
            None => CallError::Silence(patience),
        }
    }
}

#[cfg(test)]
mod tests;
