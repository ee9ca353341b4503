//! `pares site`: sites of a replicated database: made, run, looked at, asked, and told what an operator decides.
//!
//! | module | what |
//! |---|---|
//! | [`init`] | `sites.toml` and certificates, for sites on this machine |
//! | `issue` | certificates of those who use it, and their end |
//! | [`mod@run`] | one site in this process, of any application |
//! | `up` | all as children |
//! | `add` | another site |
//! | `witness` | a third place, without which no cluster is declared lost |
//! | `status` | how they are |
//! | `stat` | their figures, read from outside |
//! | `backup` | a copy of the running database, and its versions since |
//! | [`restore`] | another database that begins with it |
//! | [`decide`] | a cluster is lost, admitted, or certifies from now on |
//! | `remove` | a site leaves |
//! | [`sites`] | sites as processes of this machine, and what they say of themselves |
//!
//! A library, so that the laboratory runs sites by the same commands as an operator.

#![allow(unreachable_pub)] // `pub` here also means "for the other modules"

mod add;
mod backup;
pub mod decide;
mod error;
mod histories;
pub mod init;
mod issue;
mod remove;
pub mod restore;
pub mod run;
pub mod sites;
mod stat;
mod status;
mod up;
mod witness;

pub use error::{OperatorError, OperatorResult};

use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use pares_site::items::Items;
use pares_site::{Access, CallError, Client, SitesConfig};
use pares_wice::SiteId;

use error::usage;

/// The system of sites that run a broker: other applications leave what these keep alone.
pub const BROKER: &str = "broker";

/// A call that has no answer for so long is given up.
const PATIENCE: Duration = Duration::from_secs(30);
/// After so long a wait, the command says what it waits for.
const QUIET: Duration = Duration::from_secs(3);
/// Between two tries to connect to any site at all.
const LOOK_PAUSE: Duration = Duration::from_millis(200);
/// What to know of a request without an answer, and what of a read.
const MAY_BE_DONE: &str =
    "The request may still be executed: check with `pares site read` before you repeat it. ";
const NOTHING_DONE: &str = "";
/// What a request ends with.
const EXIT_STATUS: &str = "Exit status: 0 done; 1 refused, nothing has changed; 3 no site could be reached, \
                           nothing was sent; 5 no answer in 30 s. No answer is not a refusal: the request \
                           may still be executed when the link or the cluster is back.";

/// Arguments of `pares site`.
#[derive(clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
    /// The system's directory: `sites.toml`, certificates, and a directory for each site
    #[arg(long, global = true, default_value = "pares-sites")]
    dir: PathBuf,
    /// The certificate to present to sites: NAME.pem, with NAME.key.pem and ca.pem beside it [default: `client-app` for requests,
    /// `operator-admin` for decisions and status, from the system's directory of certificates]
    #[arg(long, global = true, value_name = "FILE")]
    identity: Option<PathBuf>,
}

#[derive(clap::Subcommand)]
enum What {
    /// Create a system: `sites.toml` with free ports of this machine, and certificates
    Init(init::Args),
    /// Issue a certificate to a client, a reader, another operator, or a site
    Issue(issue::Owner),
    /// Revoke a certificate: every site with the new list refuses it
    Revoke(issue::Owner),
    /// Run one site in this process until Ctrl-C
    #[command(
        after_help = "Exit status: 0 stopped; 6 its data are damaged: repair them before the next start, as \
                            standard error says; 1 any other error."
    )]
    Run(run::Args),
    /// Run all sites as child processes until Ctrl-C: restart sites that die, and all sites in turn when sites.toml changes
    Up,
    /// Add a site to a cluster, or as the first of a new cluster: in sites.toml, with a certificate
    Add(add::Args),
    /// Show the state of each site
    #[command(
        after_help = "Exit status: 0 every site answers and participates, and one certifies; 3 no site \
                            answers; 4 some sites are missing or not live (standard error names them); 1 \
                            there is no such system."
    )]
    Status {
        /// A JSON list with one object for each site that answers
        #[arg(long)]
        json: bool,
    },
    /// Show counters and log write times of this machine's sites, without contacting them
    #[command(
        after_help = "Exit status: 0 all sites of this machine are up and healthy; 3 none runs; 4 a site is \
                            down or unhealthy (standard error names it); 1 no site has its directory here. \
                            With --watch: 0 when stopped."
    )]
    Stat(stat::Args),
    /// Execute a request: get NAME, put NAME VALUE, expect NAME VALUE, absent NAME, delete NAME, add NAME AMOUNT, transfer FROM TO AMOUNT,
    /// append NAME WORD, trade CASH HOLDING RATE AMOUNT ID, `noted COUNTER` and one of these, which also counts it, or `together` and several
    /// of these separated by ; in one transaction
    #[command(after_help = EXIT_STATUS)]
    Execute(Asking),
    /// Read the stable version, or the latest: get NAME, sum or sum PREFIX (number of counters and their sum), list PREFIX AFTER COUNT (`list - - 9`: the
    /// first nine names), digest
    #[command(
        after_help = "Exit status: 0 done; 1 refused; 3 no site could be reached; 5 no answer in 30 s."
    )]
    Read {
        /// Include everything answered to any client before: takes as long as `execute`, and waits for all live clusters
        #[arg(long)]
        latest: bool,
        #[command(flatten)]
        asking: Asking,
    },
    /// Run the witness in this process until Ctrl-C, at a third location: no cluster is declared lost without its agreement
    Witness,
    /// Give a witness that lost its register a new one; needs all live clusters
    Renew(witness::Renew),
    /// Declare a cluster lost: the others continue without it. Nothing checks that it is lost
    Lost(decide::Lost),
    /// Readmit a cluster that has returned and caught up
    Admit(decide::Admit),
    /// Move certification to another cluster
    Migrate(decide::Migrate),
    /// Remove the vote of a site that leaves its cluster permanently
    Remove(remove::Remove),
    /// Back up the running database and its later versions
    #[command(
        after_help = "Exit status: 0 done, or the verified backup is intact; 1 any error, described on standard error."
    )]
    Backup(backup::Args),
    /// Create a new database from a backup
    Restore(restore::Args),
}

#[derive(clap::Args)]
struct Asking {
    /// The site to ask first; others are asked if it does not answer
    #[arg(long, value_parser = sites::parse)]
    site: Option<SiteId>,
    /// The words of the request; behind `--` if one of them begins with a `-` and is no number
    #[arg(required = true, allow_negative_numbers = true)]
    request: Vec<String>,
}

/// Does what was asked for.
///
/// # Errors
/// Why not, and what to do.
pub fn run(args: &Args) -> OperatorResult {
    let config = || SitesConfig::load(&args.dir);
    let by = |names: &[&str]| match &args.identity {
        Some(file) => Access::by_file(config()?, file),
        None => Access::named(config()?, &args.dir, names),
    };
    let operator = || by(&[init::OPERATOR]);
    let client = || by(&[init::CLIENT, init::OPERATOR]);
    match &args.what {
        What::Init(init) => init::run(init, &args.dir),
        What::Issue(owner) => owner.issue(&config()?, &args.dir),
        What::Revoke(owner) => owner.revoke(&config()?, &args.dir),
        What::Run(run) => {
            of_items(config()?, &args.dir)?;
            run::one(run, &args.dir, Items)
        }
        What::Up => up::up(of_items(config()?, &args.dir)?, &args.dir),
        What::Add(add) => add.run(config()?, &args.dir),
        What::Status { json } => status::run(&by(&[init::OPERATOR, init::CLIENT])?, *json),
        What::Stat(stat) => stat.run(&config()?, &args.dir),
        What::Execute(asking) => asking.call(&client()?, Client::execute, MAY_BE_DONE),
        What::Read { latest, asking } => {
            let read = if *latest { Client::read_latest } else { Client::read };
            asking.call(&client()?, read, NOTHING_DONE)
        }
        What::Witness => witness::run(&config()?, &args.dir),
        What::Renew(renew) => renew.run(&operator()?),
        What::Lost(lost) => lost.run(&operator()?),
        What::Admit(admit) => admit.run(&operator()?),
        What::Migrate(migrate) => migrate.run(&operator()?),
        What::Remove(remove) => remove.run(&operator()?),
        What::Backup(backup) => backup.run(|| Ok(operator()?)),
        What::Restore(restore) => restore.run(&args.dir),
    }
}

impl Asking {
    fn call(
        &self,
        access: &Access,
        call: impl FnOnce(&mut Client, &[u8], Duration) -> Result<Vec<u8>, CallError>,
        if_silent: &str,
    ) -> OperatorResult {
        if access.config.system == BROKER {
            return Err(usage(
                "these sites run a broker and take requests only from its fronts (lines of text, HTTP, `pares broker`). `pares site status` shows their state",
            ));
        }
        let order = sites::from(&access.config, self.site)?;
        // A number that no other client has used: the clock has not stood there before, or not in this process.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let number = ((now.as_nanos() as u64) ^ u64::from(std::process::id()).rotate_left(48)) >> 1;
        let mut client = access.client(number, 0, &order)?;
        reached(access)?;
        let answered = tell_if_quiet(PATIENCE);
        let reply = call(&mut client, self.request.join(" ").as_bytes(), PATIENCE);
        drop(answered);
        let reply = reply.map_err(|error| match error {
            CallError::Silence(_) => OperatorError::NoAnswer(format!(
                "{error}. {if_silent}`pares site status` shows which sites are missing"
            )),
            CallError::Shut(why) if is_foreign(&why) => usage(format!(
                "these certificates belong to another system, or to another ca.pem than the sites use now ({why}): use one of {} (--identity, --dir)",
                access.config.system
            )),
            CallError::No { .. } | CallError::Shut(_) => usage(error),
        })?;
        pares_text::print(&String::from_utf8_lossy(&reply));
        Ok(())
    }
}

/// The same, if its sites may run `pares site`'s own application.
fn of_items(config: SitesConfig, dir: &Path) -> Result<SitesConfig, OperatorError> {
    match config.system == BROKER {
        true => Err(usage(format!(
            "the sites in {dir} belong to a broker, whose accounts another application would corrupt: run them with `pares broker up --dir {dir}`",
            dir = dir.display()
        ))),
        false => Ok(config),
    }
}

/// The command that starts these sites.
pub(crate) fn starts(config: &SitesConfig) -> &'static str {
    if config.system == BROKER { "pares broker up" } else { "pares site up" }
}

/// Waits a moment until a site accepts connections.
///
/// # Errors
/// If none does: nothing was sent.
fn reached(access: &Access) -> OperatorResult {
    let began = Instant::now();
    while let Some(why) = sites::unreachable(access) {
        if began.elapsed() >= QUIET {
            return Err(OperatorError::NotRunning(format!(
                "no site accepts connections ({why}): nothing was sent, and nothing has changed. `{}` starts the sites",
                starts(&access.config)
            )));
        }
        std::thread::sleep(LOOK_PAUSE);
    }
    Ok(())
}

/// Whether TLS failed since one side does not know who issued the other's certificate.
fn is_foreign(why: &str) -> bool {
    ["UnknownIssuer", "UnknownCA", "BadSignature", "DecryptError"].iter().any(|word| why.contains(word))
}

/// Says on standard error that no site answers, unless what it returns is dropped first.
fn tell_if_quiet(patience: Duration) -> mpsc::Sender<()> {
    let (answered, wait) = mpsc::channel();
    std::thread::spawn(move || {
        if wait.recv_timeout(QUIET) == Err(mpsc::RecvTimeoutError::Timeout) {
            pares_text::aside!(
                "pares: no answer yet; waiting up to {patience:?} (`pares site status` shows which sites are missing)"
            );
        }
    });
    answered
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(clap::Parser)]
    struct Program {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn an_option_behind_a_request_is_none_of_its_words() {
        let read = |line: &str| {
            let args = Program::try_parse_from(["site"].into_iter().chain(line.split(' '))).ok()?.args;
            let dir = args.dir.to_str()?.to_owned();
            match args.what {
                What::Execute(asking) | What::Read { asking, .. } => Some((asking.request.join(" "), dir)),
                _ => None,
            }
        };
        let is = |words: &str, dir: &str| Some((words.to_owned(), dir.to_owned()));
        assert_eq!(read("execute put a 1 --dir S"), is("put a 1", "S"));
        assert_eq!(read("--dir S execute add a -5"), is("add a -5", "S"));
        assert_eq!(read("read list - - 9 --dir S"), is("list - - 9", "S"));
        assert_eq!(read("execute --dir S -- put a --dir"), is("put a --dir", "S"));
        assert_eq!(read("execute put a --dri S"), None);
    }

    #[test]
    fn certificates_of_another_system_are_told_from_other_trouble() {
        for why in ["invalid peer certificate: UnknownIssuer", "received fatal alert: UnknownCA"] {
            assert!(is_foreign(why), "{why}");
        }
        assert!(!is_foreign("received fatal alert: CertificateRequired"));
    }
}
