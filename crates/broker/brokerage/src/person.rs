//! `pares broker person NAME`: a person may sign in, and may do what is said here.
//!
//! A page that makes the first supervisor may be found first by a stranger. So the first one is made through the sites, by an operator who may execute
//! there, and nobody can by HTTP. The same way gives another password to who has lost his.
//!
//! A password on the command line would be in the shell's history and in the list of processes. So it is read from standard input: a terminal is asked for it twice, and does not show it.

use std::io::{self, BufRead as _};
use std::path::PathBuf;
use std::time::Duration;

use pares_broker::{Asked, BrokerReply, PersonAsked, PersonRight, Refusal};
use pares_operator::init::CLIENT;
use pares_site::{Access, CallError, Client, SitesConfig};
use pares_web::{WebSettings, person_of};
use pares_wice::codec::Coded as _;
use rustix::termios::{self, LocalModes, OptionalActions, SpecialCodeIndex};

use crate::children::sites_of;
use crate::error::{BrokerageError, BrokerageResult, failed, usage};
use crate::front::reached;
use crate::unnumbered;

/// Sites that say nothing for so long are given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// What a terminal sends for Ctrl-C, where that is a letter.
const CTRL_C: u8 = 3;

/// Arguments of `pares broker person`.
#[derive(clap::Args)]
pub struct Args {
    /// The person's name, 1 to 32 letters and digits; also the name of the account
    name: String,
    /// Directory of `sites.toml`
    #[arg(long, default_value = "broker-data")]
    dir: PathBuf,
    /// Make a supervisor, who sees all logs, users and costs, and sets other people's rights
    #[arg(long)]
    supervisor: bool,
    /// Without the right to trade; with --supervisor only
    #[arg(long, requires = "supervisor")]
    no_trader: bool,
    /// Reset an existing person: new password and rights, no second factor, all sessions ended
    #[arg(long)]
    reset: bool,
}

impl Args {
    fn rights(&self) -> Vec<PersonRight> {
        let has = |right: &PersonRight| match right {
            PersonRight::Trader => !self.no_trader,
            PersonRight::Supervisor => self.supervisor,
        };
        PersonRight::ALL.into_iter().filter(has).collect()
    }

    /// What the sites are asked, in order.
    fn asked(&self, password: &str) -> BrokerageResult<Vec<PersonAsked>> {
        let person = person_of(&WebSettings::default(), &self.name, password);
        let (name, password) = person.map_err(usage)?;
        let rights = self.rights();
        Ok(if self.reset {
            vec![
                PersonAsked::SetPassword { name: name.clone(), password },
                PersonAsked::SetRights { name, rights },
            ]
        } else {
            vec![PersonAsked::Add { name, password, rights, takes_account: true }]
        })
    }
}

/// Reads the password from standard input, and has the sites know the person.
pub(crate) fn run(args: &Args) -> BrokerageResult {
    let config = sites_of(&args.dir)?;
    let doors = told_doors(&config);
    let sites: Vec<_> = config.sites.iter().map(|place| place.id()).collect();
    let access = Access::named(config, &args.dir, &[CLIENT]).map_err(failed)?;
    reached(&access, &args.dir)?;
    let password = if termios::isatty(io::stdin()) { typed(ask)? } else { line()? };
    // No other client has this number, unless two of 2^62 are the same.
    let number = u64::from_le_bytes(*pares_keys::random().first_chunk().expect("32 bytes")) >> 2;
    let mut client = access.client(number, 0, &sites).map_err(failed)?;
    for asked in args.asked(&password)? {
        execute(&mut client, asked, &doors)?;
    }
    pares_text::tell!("{} may sign in", args.name);
    Ok(())
}

/// Where the sites are.
fn told_doors(config: &SitesConfig) -> String {
    let doors: Vec<String> = config.sites.iter().map(|place| place.clients.to_string()).collect();
    doors.join(", ")
}

/// A password that was typed twice.
fn typed(mut ask: impl FnMut(&str) -> BrokerageResult<String>) -> BrokerageResult<String> {
    let password = ask("password: ")?;
    match ask("the same again: ")? == password {
        true => Ok(password),
        false => Err(usage("the passwords differ: nothing was changed")),
    }
}

/// Asks a terminal, which does not show the letters. Keys that would end or stop this process would leave it so: they are letters meanwhile, and Ctrl-C ends a line too.
#[allow(clippy::print_stderr)] // a question ends without a line's end
fn ask(question: &str) -> BrokerageResult<String> {
    let of_terminal = |error: rustix::io::Errno| BrokerageError::io("asking for the password")(error.into());
    let shown = termios::tcgetattr(io::stdin()).map_err(of_terminal)?;
    let mut hidden = shown.clone();
    hidden.local_modes.remove(LocalModes::ECHO | LocalModes::ISIG);
    hidden.special_codes[SpecialCodeIndex::VEOL] = CTRL_C;
    eprint!("{question}");
    termios::tcsetattr(io::stdin(), OptionalActions::Flush, &hidden).map_err(of_terminal)?;
    let line = typed_line(io::stdin().lock());
    termios::tcsetattr(io::stdin(), OptionalActions::Now, &shown).map_err(of_terminal)?;
    eprintln!();
    line
}

/// A line that was typed, without its end.
fn typed_line(from: impl io::BufRead) -> BrokerageResult<String> {
    let mut line = Vec::new();
    for byte in from.bytes() {
        match byte.map_err(BrokerageError::io("reading the password"))? {
            CTRL_C => return Err(BrokerageError::Stopped),
            b'\n' => break,
            other => line.push(other),
        }
    }
    String::from_utf8(line).map_err(|_| usage("a password must be UTF-8"))
}

/// A line of standard input, without its end.
fn line() -> BrokerageResult<String> {
    let mut line = String::new();
    io::stdin().lock().read_line(&mut line).map_err(BrokerageError::io("reading the password"))?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

fn execute(client: &mut Client, asked: PersonAsked, doors: &str) -> BrokerageResult {
    let request = unnumbered(Asked::Person { asked });
    let reply = client.execute(&request.to_bytes(), PATIENCE).map_err(|error| match error {
        CallError::Silence(_) => {
            failed(format!("{error} from the sites at {doors}: check that `pares broker up` is running"))
        }
        error => failed(error),
    })?;
    match BrokerReply::from_bytes(&reply).map_err(failed)? {
        BrokerReply::Refused { refusal: Refusal::PersonTaken } => {
            Err(failed(format!("{}: use --reset to set a new password and rights", Refusal::PersonTaken)))
        }
        BrokerReply::Refused { refusal } => Err(failed(refusal)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use pares_broker::{BrokerRead, Person, PersonRead, Refusal, UserName};
    use pares_site::config::Promise;

    use super::*;
    use crate::own_site::OwnSite;

    fn known(client: &mut Client) -> Person {
        let read = PersonRead::Person { name: UserName::new("boss").unwrap() };
        let bytes = client.read_latest(&BrokerRead::Person { read }.to_bytes(), PATIENCE).unwrap();
        Option::<Person>::from_bytes(&bytes).unwrap().unwrap()
    }

    #[test]
    fn a_typed_password_is_the_one_that_was_typed_twice() {
        let typed = |lines: [&str; 2]| {
            let mut lines = lines.into_iter();
            typed(|_| Ok(lines.next().unwrap().into()))
        };
        assert_eq!(typed(["correct horse", "correct horse"]).unwrap(), "correct horse");
        assert!(matches!(typed(["correct horse", "correct hearse"]), Err(BrokerageError::Usage(_))));
    }

    #[test]
    fn ctrl_c_ends_prompt_and_restores_terminal() {
        assert_eq!(typed_line(&b"correct horse\nmore"[..]).unwrap(), "correct horse");
        assert!(matches!(typed_line(&b"correct\x03 horse\n"[..]), Err(BrokerageError::Stopped)));
        assert!(matches!(typed_line(&b"\xff\n"[..]), Err(BrokerageError::Usage(_))));
    }

    #[test]
    fn first_supervisor_is_created_once_via_site() {
        let dir = tempfile::tempdir().unwrap();
        let site = OwnSite::open(dir.path(), Promise::Os, None).unwrap();
        let mut client = Client::new(9, 0, vec![site.address()]);
        let args = |reset| Args {
            name: "boss".into(),
            dir: PathBuf::new(),
            supervisor: true,
            no_trader: reset,
            reset,
        };
        let mut run = |reset, password: &str| -> BrokerageResult {
            args(reset).asked(password)?.into_iter().try_for_each(|asked| execute(&mut client, asked, ""))
        };
        assert!(matches!(run(false, "too short"), Err(BrokerageError::Usage(_))));
        run(false, "correct horse").unwrap();
        let taken = run(false, "correct horse").unwrap_err().to_string();
        assert!(taken.starts_with(&Refusal::PersonTaken.to_string()) && taken.contains("--reset"), "{taken}");
        run(true, "another horse").unwrap();
        let person = known(&mut client);
        assert_eq!(person.rights, [PersonRight::Supervisor]);
        assert!(person.password.0.starts_with("$argon2id$v=19$m=19456,t=2,p=1$"), "{person:?}");
    }
}
