//! The extended protocol: prepared statements, portals, and a Sync that ends what was begun for them.
//!
//! Each message is answered before the next one is passed on. A client that sends many at once gets the same answers in the same order.

use std::io;
use std::sync::Arc;

use pares_store::postgres::{SqlStatement as Statement, split};

use crate::link::Link;
use crate::session::{Session, State};
use crate::statement::{Kind, Known, kind};
use crate::wire::Message;

impl Session {
    pub(crate) fn extended(&mut self, link: &mut Link, message: &Message) -> io::Result<()> {
        let done = match message.tag {
            b'S' => return self.sync(link),
            b'H' => return self.flush(),
            b'P' => self.parse(link, message)?,
            b'B' => self.bind(link, message)?,
            b'E' => self.execute(link, message)?,
            b'C' => self.close(link, message)?,
            _ => self.forward(link, message, true)?,
        };
        self.beside(link)?;
        if !done {
            self.prepared.skips = true;
        }
        Ok(())
    }

    fn sync(&mut self, link: &mut Link) -> io::Result<()> {
        self.prepared.skips = false;
        self.end_implicit(link)?;
        link.sync()?;
        if self.state == State::Idle {
            self.prepared.portals.clear();
        }
        self.beside(link)?;
        self.ready()
    }

    fn parse(&mut self, link: &mut Link, message: &Message) -> io::Result<bool> {
        let [name, text] = message.strings()?;
        let statements = split(text);
        let known = Known {
            // Of several the server says that there may be one.
            kind: statements.first().map_or(Kind::Session, kind),
            text: text.to_owned(),
            first: statements.first().and_then(|statement| statement.tokens.first().cloned()),
        };
        let done = self.forward(link, message, known.kind.ends())?;
        if done {
            // What the server has refused is not what it has by that name.
            self.prepared.statements.insert(name.to_owned(), Arc::new(known));
        }
        Ok(done)
    }

    fn bind(&mut self, link: &mut Link, message: &Message) -> io::Result<bool> {
        let [portal, name] = message.strings()?;
        let mut known = self.prepared.statements.get(name).cloned().unwrap_or_else(Known::elsewhere);
        // By PREPARE, in a function too, the name may mean another statement than the client has sent.
        let may_be_another = !name.is_empty() && known.kind.is_outside() && self.state == State::Idle;
        if may_be_another && !link.has_prepared(name, &known.text)? {
            known = Known::elsewhere();
        }
        let statement = Statement { text: &known.text, tokens: known.first.iter().cloned().collect() };
        if !self.open_for(link, &known.kind, &statement)? {
            return Ok(false);
        }
        let done = self.forward(link, message, known.kind.ends())?;
        if done {
            self.prepared.portals.insert(portal.to_owned(), known);
        }
        Ok(done)
    }

    fn execute(&mut self, link: &mut Link, message: &Message) -> io::Result<bool> {
        let [portal] = message.strings()?;
        let Some(known) = self.prepared.portals.get(portal).cloned() else {
            return self.forward(link, message, true);
        };
        let text = known.text.trim().trim_end_matches(';');
        match self.own_step(link, &known.kind, text)? {
            Some(done) => Ok(done),
            None => {
                let done = self.forward(link, message, true)?;
                if done {
                    self.after(link, &known.kind, text, true)?;
                }
                Ok(done)
            }
        }
    }

    fn close(&mut self, link: &mut Link, message: &Message) -> io::Result<bool> {
        let done = self.forward(link, message, true)?;
        // What the server has refused to forget is still there.
        if done && let Some((kind, name)) = message.body.split_first() {
            let name = String::from_utf8_lossy(name.split(|byte| *byte == 0).next().unwrap_or_default());
            match kind {
                b'S' => drop(self.prepared.statements.remove(&*name)),
                _ => drop(self.prepared.portals.remove(&*name)),
            }
        }
        Ok(done)
    }

    /// Passes a message on, and its answer back; whether it was done. In a transaction that is over only what then passes, as what ends it does.
    fn forward(&mut self, link: &mut Link, message: &Message, passes: bool) -> io::Result<bool> {
        if let State::Over { .. } = self.state
            && !passes
        {
            return self.own_step(link, &Kind::Session, "").map(|_| false);
        }
        link.pass(message, true)?;
        let mut copies = false;
        loop {
            if copies {
                copies = self.rows(link, true)?;
            }
            let answer = link.receive()?;
            match answer.tag {
                b'E' => {
                    self.end_if_copying(&answer)?;
                    let answer = self.meant(answer);
                    self.write(&answer)?;
                    return self.after(link, &Kind::Session, "", false);
                }
                b'G' => copies = self.copies(&answer)?,
                b'C' => {
                    self.complete(answer)?;
                    return Ok(true);
                }
                last => {
                    self.write(&answer)?;
                    if ends(message.tag, last) {
                        return Ok(true);
                    }
                }
            }
        }
    }
}

/// Whether an answer is the last to a message.
fn ends(message: u8, answer: u8) -> bool {
    match message {
        b'P' => answer == b'1',
        b'B' => answer == b'2',
        b'C' => answer == b'3',
        b'D' => matches!(answer, b'T' | b'n'),
        _ => matches!(answer, b'I' | b's'),
    }
}
