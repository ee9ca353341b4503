//! A witness as a process: a [`Register`] in a directory, and a port for operators.
//!
//! It must not begin by itself: an empty directory is a new witness, or one that has lost its disk and forgotten whom it granted something. So it grants something only if its
//! directory was made for a database that is to begin, or if an operator has had all living clusters begin an era that counts higher than whatever it has forgotten.
//!
//! ```text
//!   new    (pares site init) -----> register from 0       the first question
//!   empty  ------ begin n --------> register from n       pares site renew, which has raised the count to n at every living cluster
//!   otherwise: it grants nothing, and says so
//! ```
//! A BEGIN may come late, from a machine that slept: others have renewed meanwhile, to a higher count, and the disk is lost once more with what was granted there. A register
//! from n would grant it again. So a witness is opened under a number that is drawn, says it while it has no register, and takes a BEGIN with that number alone: one whose
//! renewal began after it was opened.
//!
//! | note | content |
//! |---|---|
//! | `new` | the database's identity, from `pares site init`; gone when there is a register |
//! | `register` | identity; the count of takeovers from which on it grants; the last declaration that it granted |

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use pares_link::Links;
use pares_wice::{Declaration, Register};
use serde::{Deserialize, Serialize};

use crate::config::{SitesConfig, WITNESS_DIRECTORY};
use crate::directory::NotesDirectory;
use crate::error::ProcessError;
use crate::inbox::{Arrived, Inbox};
use crate::place::{self, NEW};
use crate::process::drawn;
use crate::protocol::{Ask, Code, Horizon, Reply, database_of};
use crate::requests::Answer;
use crate::rights::{Rights, denied};
use crate::turned_away::RejectedConnections;
use crate::world::Notes;

const REGISTER: &str = "register";

/// How a witness is, for operators.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct WitnessReport {
    /// The count of takeovers from which on it grants; none while it has no register.
    pub floor: Option<u32>,
    /// What it granted last: takeovers of the era that was ended, the cluster that continues, those that were lost.
    pub granted: Option<(u32, u8, Vec<u8>)>,
    /// While it has no register: the number under which it was opened, without which it begins none.
    #[serde(default)]
    pub opening: Option<u64>,
}

/// A witness on its notes.
#[derive(Debug)]
pub struct Witness<N> {
    notes: N,
    identity: String,
    register: Option<Register>,
    opening: u64,
}

impl<N: Notes> Witness<N> {
    /// With what `notes` has of an earlier life. `opening` is drawn at random, each time.
    ///
    /// # Errors
    /// [`ProcessError::Stranger`] if it is of another database, [`ProcessError::Note`] if it is damaged.
    pub fn open(notes: N, identity: &str, opening: u64) -> Result<Self, ProcessError> {
        let mut witness = Self { notes, identity: identity.to_owned(), register: None, opening };
        match place::read::<Kept>(&witness.notes, REGISTER)? {
            Some(Kept { identity: found, .. }) if found != identity => {
                return Err(ProcessError::Stranger { found, expected: identity.to_owned() });
            }
            Some(kept) => {
                // The process may have died between the two notes: `new` would have it begin from 0 if `register` were lost some day.
                witness.notes.remove_note(NEW)?;
                witness.register = Some(kept.register);
            }
            None if place::is_new(&witness.notes, identity)? => witness.keep(Register::beginning(0))?,
            None => {}
        }
        Ok(witness)
    }

    /// It is so from now on.
    fn keep(&mut self, register: Register) -> Result<(), ProcessError> {
        let granted = |register: Register| register.granted().map(|last| last.takeovers);
        let before = self.register.unwrap_or(register);
        assert_eq!(before.floor(), register.floor(), "a register begins once");
        assert!(granted(before) <= granted(register), "the count that was granted last only grows");
        let kept = Kept { identity: self.identity.clone(), register };
        place::write(&self.notes, REGISTER, &kept)?;
        self.notes.remove_note(NEW)?;
        self.register = Some(register);
        Ok(())
    }

    /// Answers a client that has these rights.
    ///
    /// # Errors
    /// If what it grants cannot be written: then it answers nothing, and ends.
    pub fn answer(&mut self, rights: Rights, ask: &Ask) -> Result<Answer, ProcessError> {
        let needed = Rights::needed_for(ask);
        if needed > rights {
            return Ok(denied(needed));
        }
        let ours = database_of(&self.identity);
        match *ask {
            Ask::Report(_) => Ok(done(serde_json::to_vec(&self.report()).expect("a report is JSON"))),
            Ask::Grant(_, database, _) | Ask::Begin(_, database, ..) if database != ours => {
                Ok(no("this is another database's witness"))
            }
            Ask::Grant(_, _, declared) => self.grant(declared),
            Ask::Begin(_, _, takeovers, opening) => self.begin(takeovers, opening),
            _ => Ok(no("this is a witness, not a site")),
        }
    }

    /// How it is.
    #[must_use]
    pub fn report(&self) -> WitnessReport {
        let register = self.register.as_ref();
        let told = |declared: Declaration| {
            let lost = declared.lost.iter().map(|cluster| cluster.0).collect();
            (declared.takeovers, declared.by.0, lost)
        };
        WitnessReport {
            floor: register.map(Register::floor),
            granted: register.and_then(Register::granted).map(told),
            opening: register.is_none().then_some(self.opening),
        }
    }

    fn grant(&mut self, declared: Declaration) -> Result<Answer, ProcessError> {
        let Some(register) = self.register else {
            return Ok(no(
                "this witness has no register, so it does not know earlier grants: run `pares site renew`",
            ));
        };
        let mut next = register;
        if let Err(why) = next.grant(declared) {
            return Ok(no(&why.to_string()));
        }
        assert_eq!(next.floor(), register.floor(), "what is granted moves no register's beginning");
        assert_eq!(next.granted(), Some(declared), "a register keeps what it granted last");
        if next != register {
            self.keep(next)?;
        }
        assert_eq!(self.register, Some(next), "what is granted is written before it is answered");
        Ok(done(Vec::new()))
    }

    fn begin(&mut self, takeovers: u32, opening: u64) -> Result<Answer, ProcessError> {
        match self.register {
            None if opening != self.opening => {
                return Ok(no("this witness restarted during the renewal: run `pares site renew` again"));
            }
            None => self.keep(Register::beginning(takeovers))?,
            Some(register) if register == Register::beginning(takeovers) => {}
            Some(_) => return Ok(no("this witness has a register")),
        }
        Ok(done(Vec::new()))
    }
}

fn done(body: Vec<u8>) -> Answer {
    Answer { code: Code::Done, body }
}

fn no(why: &str) -> Answer {
    Answer { code: Code::Impossible, body: why.into() }
}

/// A register, as it is written.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Kept {
    identity: String,
    register: Register,
}
pares_wice::fields! { Kept { identity, register } }

/// A witness on this machine.
pub struct WitnessProcess {
    witness: Witness<NotesDirectory>,
    links: Links,
    inbox: Inbox,
    turned_away: RejectedConnections,
}

impl WitnessProcess {
    /// Opens the register in `dir`, where `sites.toml` is, and listens at `listen`, the address that `sites.toml` says.
    ///
    /// # Errors
    /// [`ProcessError`].
    pub fn open(config: &SitesConfig, listen: SocketAddr, dir: &Path) -> Result<Self, ProcessError> {
        let notes = NotesDirectory::at(dir.join(WITNESS_DIRECTORY))?;
        let witness = Witness::open(notes, &config.identity, drawn())?;
        let links = Links::open(config.witness_links(listen, dir)?)?;
        Ok(Self { witness, links, inbox: Inbox::default(), turned_away: RejectedConnections::default() })
    }

    /// Answers what has come, after waiting for something at most for `patience`.
    ///
    /// # Errors
    /// [`ProcessError`]: end the process, and start it again.
    pub fn turn(&mut self, patience: Duration) -> Result<(), ProcessError> {
        self.links.poll(Some(patience), &mut self.inbox)?;
        for (who, why) in std::mem::take(&mut self.inbox.refused) {
            // No report shows these later.
            self.turned_away.note(who, why, Duration::ZERO);
        }
        for arrived in std::mem::take(&mut self.inbox.arrived) {
            let Arrived::Asked(client, rights, bytes) = arrived else { continue };
            let Ok(ask) = Ask::from_bytes(&bytes) else {
                self.links.close_client(client);
                continue;
            };
            let Answer { code, body } = self.witness.answer(rights, &ask)?;
            let reply = Reply { to: ask.number(), code, horizon: Horizon::default(), body };
            // Who is gone asks again.
            let _ = self.links.send_client(client, &reply.to_bytes());
        }
        self.links.flush();
        Ok(())
    }

    /// How it is.
    #[must_use]
    pub fn report(&self) -> WitnessReport {
        self.witness.report()
    }

    /// Who was refused and why, each once, since it was asked last.
    pub fn refusals(&mut self) -> impl Iterator<Item = String> {
        self.turned_away.take_new()
    }
}

#[cfg(test)]
mod tests {
    use pares_wice::{ClusterId, ClusterSet};

    use super::*;

    const IDENTITY: &str = "0123456789abcdef0123456789abcdef";

    fn opened(dir: &Path) -> Witness<NotesDirectory> {
        Witness::open(NotesDirectory::at(dir.to_owned()).unwrap(), IDENTITY, drawn()).unwrap()
    }

    fn made_new(dir: &Path) -> Witness<NotesDirectory> {
        NotesDirectory::at(dir.to_owned()).unwrap().write_note(NEW, IDENTITY.as_bytes()).unwrap();
        opened(dir)
    }

    fn asked(witness: &mut Witness<NotesDirectory>, takeovers: u32, by: u8, lost: u8) -> Answer {
        let lost = ClusterSet::default().with(ClusterId(lost));
        let declared = Declaration { takeovers, by: ClusterId(by), lost };
        witness.answer(Rights::Operate, &Ask::Grant(1, database_of(IDENTITY), declared)).unwrap()
    }

    fn begun(witness: &mut Witness<NotesDirectory>, takeovers: u32, opening: u64) -> Code {
        let begin = Ask::Begin(1, database_of(IDENTITY), takeovers, opening);
        witness.answer(Rights::Operate, &begin).unwrap().code
    }

    #[test]
    fn what_was_granted_is_so_after_a_new_start() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(asked(&mut made_new(dir.path()), 0, 0, 1).code, Code::Done);
        let mut again = opened(dir.path());
        let refused = asked(&mut again, 0, 1, 0);
        assert_eq!(refused.code, Code::Impossible);
        assert!(String::from_utf8(refused.body).unwrap().contains("has granted cluster 0"));
        assert_eq!(asked(&mut again, 0, 0, 1).code, Code::Done, "the same again");
    }

    #[test]
    fn empty_witness_grants_nothing_until_initialised() {
        let dir = tempfile::tempdir().unwrap();
        let mut witness = opened(dir.path());
        assert_eq!(asked(&mut witness, 0, 0, 1).code, Code::Impossible);
        let opening = witness.report().opening.unwrap();
        assert_eq!(begun(&mut witness, 3, opening), Code::Done);
        assert_eq!(witness.report().opening, None, "it has a register");
        assert_eq!(begun(&mut witness, 3, opening), Code::Done, "the same again");
        assert_eq!(begun(&mut witness, 4, opening), Code::Impossible, "it has one");
        assert_eq!(asked(&mut witness, 2, 0, 1).code, Code::Impossible, "of before");
        assert_eq!(asked(&mut opened(dir.path()), 3, 0, 1).code, Code::Done);
    }

    /// One operator renews to 5 and sleeps; others renew to 6, B is granted that it continues from there, and the disk is lost again.
    #[test]
    fn a_begin_of_a_renewal_of_before_it_was_opened_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let mut witness = opened(dir.path());
        let late = witness.report().opening.unwrap();
        assert_eq!(begun(&mut witness, 6, late), Code::Done);
        assert_eq!(asked(&mut witness, 6, 1, 0).code, Code::Done);
        NotesDirectory::at(dir.path().to_owned()).unwrap().remove_note(REGISTER).unwrap();
        let mut again = opened(dir.path());
        assert_eq!(begun(&mut again, 5, late), Code::Impossible);
        assert_eq!(asked(&mut again, 6, 0, 1).code, Code::Impossible, "A goes on from 6 too");
        let opening = again.report().opening.unwrap();
        assert_eq!(begun(&mut again, 7, opening), Code::Done);
    }

    #[test]
    fn lost_register_does_not_restart_from_zero() {
        let dir = tempfile::tempdir().unwrap();
        drop(made_new(dir.path()));
        let notes = NotesDirectory::at(dir.path().to_owned()).unwrap();
        notes.write_note(NEW, IDENTITY.as_bytes()).unwrap(); // as a death between the two notes leaves it
        drop(opened(dir.path()));
        notes.remove_note(REGISTER).unwrap();
        assert_eq!(asked(&mut opened(dir.path()), 0, 0, 1).code, Code::Impossible);
    }

    #[test]
    fn changed_or_foreign_register_counts_as_none() {
        let dir = tempfile::tempdir().unwrap();
        drop(made_new(dir.path()));
        let notes = || NotesDirectory::at(dir.path().to_owned()).unwrap();
        let other = Witness::open(notes(), &IDENTITY.replace('0', "1"), 0).unwrap_err();
        assert!(matches!(other, ProcessError::Stranger { .. }));
        let mut note = notes().read_note(REGISTER).unwrap().unwrap();
        *note.last_mut().unwrap() ^= 1;
        notes().write_note(REGISTER, &note).unwrap();
        assert!(Witness::open(notes(), IDENTITY, 0).unwrap_err().is_damage());
    }

    #[test]
    fn only_an_operator_of_this_database_is_granted_anything() {
        let dir = tempfile::tempdir().unwrap();
        let mut witness = made_new(dir.path());
        let declared = Declaration { takeovers: 0, by: ClusterId(0), lost: ClusterSet(2) };
        let database = database_of(IDENTITY);
        for (rights, database, code) in [
            (Rights::Execute, database, Code::Denied),
            (Rights::Operate, database ^ 1, Code::Impossible),
            (Rights::Operate, database, Code::Done),
        ] {
            assert_eq!(witness.answer(rights, &Ask::Grant(1, database, declared)).unwrap().code, code);
        }
    }
}
