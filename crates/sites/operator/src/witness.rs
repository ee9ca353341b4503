//! `pares site witness`, and what operators ask of it: whether a cluster may be declared lost, and that a witness that has lost its register begins another.
//!
//! The word travels by the operator's command: it asks the witness, and tells the cluster what was granted. So sites need no way to the third place, and the operator's machine does.

use std::cell::Cell;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use pares_os::process::{Lock, stop_on_signals};
use pares_site::config::WITNESS_DIRECTORY;
use pares_site::protocol::Code;
use pares_site::{
    Access, CallError, ProcessError, SiteReport, SitesConfig, WitnessProcess, WitnessReport, renewed,
};
use pares_text as text;
use pares_wice::{ClusterSet, Command, Declaration, SiteId};

use crate::decide::{PAUSE, Patience, certifying, of, tell};
use crate::error::{OperatorError, OperatorResult, usage};
use crate::sites::{self, ANSWER_PATIENCE};

/// Longest wait for something to do, so that a signal is noticed.
const WAIT_MAX: Duration = Duration::from_millis(20);
/// Longer than a process takes to be started again.
const GONE_AFTER: Duration = Duration::from_secs(10);
/// Between two looks at its port meanwhile.
const LOOK_PAUSE: Duration = Duration::from_millis(50);
/// Behind what speaks against it.
const NOT_GONE: &str = ". It counts as lost after its port refused connections for 10 s without a break: \
                        stop it permanently, and repeat this command. If its machine is off, or another \
                        program uses the address, put an address where nothing listens into this machine's \
                        sites.toml";

/// Why a renewal that was begun does not end.
const UNPROMISED: &str = "a live cluster has not promised or begun the new era: it does not answer, or was \
                          granted a takeover. Nothing is certified until it has. If it is lost: stop the \
                          witness first, which would refuse this, then run `pares site lost C --yes \
                          --without-witness`, start the witness, and `renew`";

/// Arguments of `pares site renew`.
#[derive(clap::Args)]
pub struct Renew {
    #[command(flatten)]
    patience: Patience,
}

/// Runs the witness until a signal stops it.
///
/// # Errors
/// If there is none in `sites.toml`, or whatever ends it otherwise.
pub fn run(config: &SitesConfig, dir: &Path) -> OperatorResult {
    let stop = stop_on_signals().map_err(OperatorError::io("installing a signal handler"))?;
    let listen = config.witness.ok_or_else(none)?;
    // Two that both have the register could each grant something: the lock lies with it, wherever sites.toml is.
    let own = dir.join(WITNESS_DIRECTORY);
    std::fs::create_dir_all(&own).map_err(OperatorError::io("making the witness's directory"))?;
    let lock = Lock::take(&own.join("lock")).map_err(OperatorError::io("locking the witness"))?;
    let _lock = lock.ok_or_else(|| usage("another process runs the witness in this directory"))?;
    let mut process = WitnessProcess::open(config, listen, dir).map_err(|error| ended(&error))?;
    pares_text::tell!("witness: operators at {listen}; {}", told(&process.report()));
    while !stop.load(Ordering::Relaxed) {
        let before = process.report();
        process.turn(WAIT_MAX).map_err(|error| ended(&error))?;
        for refused in process.refusals() {
            pares_text::tell!("witness: {refused}");
        }
        let now = process.report();
        if now != before {
            pares_text::tell!("witness: {}", told(&now));
        }
    }
    pares_text::tell!("witness: stopped");
    Ok(())
}

fn none() -> OperatorError {
    usage("this system has no witness: set `witness` in sites.toml (docs/operations/sites.md)")
}

fn ended(error: &ProcessError) -> OperatorError {
    if let ProcessError::Note(note) = error {
        return OperatorError::Damaged(format!(
            "witness: its file `{note}` is damaged, so its grants are unknown: move its directory away, \
             start it with an empty one, and run `pares site renew`"
        ));
    }
    match error.is_damage() {
        true => OperatorError::Damaged(format!("witness: {error}")),
        false => OperatorError::Failed(format!("witness: {error}")),
    }
}

fn takeovers(count: u32) -> String {
    text::count(count.into(), "takeover")
}

/// How it is, for people.
pub(crate) fn told(report: &WitnessReport) -> String {
    match (&report.granted, report.floor) {
        (_, None) => "it has no register and grants nothing: run `pares site renew`".into(),
        (None, Some(0)) => "it has granted no takeover yet".into(),
        (None, Some(floor)) => {
            format!("it has granted no takeover since its register began after {}", takeovers(floor))
        }
        (Some((_, by, lost)), _) => {
            let clusters = if lost.len() == 1 { "cluster" } else { "clusters" };
            let lost: Vec<String> = lost.iter().map(ToString::to_string).collect();
            format!("cluster {by} has its grant to continue without {clusters} {}", lost.join(" and "))
        }
    }
}

/// How it is, or why it does not say; none where there is no witness.
pub(crate) fn asked(access: &Access) -> Option<Result<WitnessReport, String>> {
    let mut witness = access.witness()?;
    let connected = listens(access);
    let said = connected.and_then(|()| witness.report(ANSWER_PATIENCE).map_err(|error| error.to_string()));
    Some(said.and_then(|said| serde_json::from_slice(&said).map_err(|error| error.to_string())))
}

/// Whether it listens, or why not: a client would try again until its patience ends, and then know no reason.
fn listens(access: &Access) -> Result<(), String> {
    reached(access).map_err(|(address, error)| format!("{address}: {error}"))
}

fn reached(access: &Access) -> Result<(), (SocketAddr, io::Error)> {
    let Some(address) = access.config.witness else { return Ok(()) };
    TcpStream::connect_timeout(&address, ANSWER_PATIENCE).map(drop).map_err(|error| (address, error))
}

fn is_refused(access: &Access) -> bool {
    reached(access).is_err_and(|(_, error)| error.kind() == io::ErrorKind::ConnectionRefused)
}

/// An operator's word that the witness is gone. It counts when its port is refused all the time for [`GONE_AFTER`], and not at all in a run in which it was not: one that is slow,
/// or is started again, may have granted the same to another. Silence says nothing: a process that hangs takes no more connections when its queue is full.
#[derive(Default)]
pub(crate) struct WithoutWord {
    is_doubted: Cell<bool>,
    /// It has counted.
    pub(crate) counted: Cell<bool>,
}

impl WithoutWord {
    /// Looks all the time whether the port is refused.
    fn counts(&self, mut is_refused: impl FnMut() -> bool) -> bool {
        let began = Instant::now();
        while !self.is_doubted.get() && began.elapsed() < GONE_AFTER {
            self.is_doubted.set(!is_refused());
            std::thread::sleep(LOOK_PAUSE);
        }
        self.counted.set(!self.is_doubted.get());
        self.counted.get()
    }

    /// What is to be known behind it.
    pub(crate) fn tell(&self) {
        pares_text::say!(
            "{}",
            match self.counted.get() {
                true =>
                    "the witness does not know of this decision, and must not run again with its old \
                     register. Keep it down and move its directory away; when all clusters are back, start \
                     it with an empty one and run `pares site renew`",
                false => "the witness has granted it: --without-witness was not needed",
            }
        );
    }
}

/// The command by which a site continues without those clusters: on its own word where there is no witness, on that of the witness, or on the operator's.
///
/// # Errors
/// If the witness has granted it to another; `Ok(Err)` if it does not answer.
pub(crate) fn granted(
    access: &Access,
    (site, report): (SiteId, &SiteReport),
    lost: ClusterSet,
    without: Option<&WithoutWord>,
) -> Result<Result<Command, String>, OperatorError> {
    let Some(mut witness) = access.witness() else { return Ok(Ok(Command::DeclareLost(lost))) };
    let declared = Declaration { takeovers: report.era.0, by: site.cluster, lost };
    match (listens(access), without) {
        (Ok(()), _) => {}
        (Err(_), Some(word)) if word.counts(|| is_refused(access)) => {
            return Ok(Ok(Command::Unwitnessed(lost)));
        }
        (Err(why), Some(_)) => return Ok(Err(format!("{why}{NOT_GONE}"))),
        (Err(why), None) => return Ok(Err(unheard(&why))),
    }
    match witness.grant(access.database(), declared, ANSWER_PATIENCE) {
        Ok(_) => Ok(Ok(Command::Granted(declared))),
        Err(error @ CallError::No { code: Code::Denied, .. }) => Err(usage(format!("the witness: {error}"))),
        Err(CallError::No { code: Code::Impossible, why }) => {
            Err(OperatorError::Failed(format!("the witness answers, so its decision counts: {why}")))
        }
        Err(error) => Ok(Err(match without {
            // One that is slow may grant it to another yet.
            Some(word) => {
                word.is_doubted.set(true);
                format!(
                    "something listens at its address but does not answer as a witness ({error}){NOT_GONE}"
                )
            }
            None => unheard(&error),
        })),
    }
}

fn unheard(why: &dyn std::fmt::Display) -> String {
    format!(
        "the witness does not answer ({why}), so another cluster may already have been granted to continue \
         without this one. If the witness is lost, and you know that nobody declares clusters lost \
         elsewhere, repeat with --without-witness"
    )
}

impl Renew {
    /// Gives the witness a register that knows of nothing before an era which all living clusters have begun.
    ///
    /// # Errors
    /// If the witness has one, or a living cluster does not begin that era.
    pub fn run(&self, access: &Access) -> OperatorResult {
        let said = asked(access).ok_or_else(none)?;
        let report =
            said.map_err(|why| usage(format!("the witness does not answer ({why}): start it first")))?;
        // It must be known before the renewal begins: with it the witness tells this renewal from those of before it was opened.
        let Some(opening) = report.opening else {
            return Err(usage(format!("nothing to renew: the witness has a register: {}", told(&report))));
        };
        let takeovers = renew(access, self.patience.duration())?;
        let mut witness = access.witness().ok_or_else(none)?;
        let begun = witness.begin_register(access.database(), takeovers, opening, ANSWER_PATIENCE);
        begun.map_err(|error| OperatorError::Failed(format!("the witness: {error}")))?;
        pares_text::say!(
            "the witness can grant takeovers again; its earlier grants are void at all live clusters"
        );
        Ok(())
    }
}

/// Has all living clusters begin an era that counts higher than any before; the count.
///
/// # Errors
/// If no site certifies, or a living cluster does not begin that era in time.
fn renew(access: &Access, patience: Duration) -> Result<u32, OperatorError> {
    let began = Instant::now();
    let mut told: Option<(u8, u32)> = None;
    let mut why = "no site reports that it certifies: it is down, or waits for promises of all live \
         clusters since an earlier try. Start all of them"
        .to_owned();
    while began.elapsed() < patience {
        let reports = sites::reports(access);
        if let Some((by, before)) = told {
            if let Some(count) = renewed(&reports, by, before) {
                return Ok(count);
            }
        } else if let Some(site) = certifying(&reports) {
            match tell(access, site, Command::Renew)? {
                Ok(()) => {
                    told = of(&reports, site).map(|report| (site.cluster.0, report.era.0));
                    why = UNPROMISED.into();
                }
                Err(no) => why = no,
            }
        }
        std::thread::sleep(PAUSE);
    }
    Err(OperatorError::Failed(format!("not within {patience:?}: {why}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_witness_is_gone_when_its_port_was_refused_all_the_time() {
        let word = WithoutWord::default();
        let mut looks = 0;
        assert!(!word.counts(|| {
            looks += 1;
            looks < 5
        }));
        assert!(!word.counts(|| true), "it has been there in this run");
        assert!(looks == 5 && !word.counted.get());
        assert!(WithoutWord::default().counts(|| true));
    }

    #[test]
    fn what_a_witness_has_granted_is_told() {
        let none = WitnessReport::default();
        assert!(told(&none).contains("pares site renew"));
        let begun = WitnessReport { floor: Some(2), ..none };
        assert_eq!(told(&begun), "it has granted no takeover since its register began after 2 takeovers");
        let once = WitnessReport { floor: Some(1), ..WitnessReport::default() };
        assert_eq!(told(&once), "it has granted no takeover since its register began after 1 takeover");
        let never = WitnessReport { floor: Some(0), ..WitnessReport::default() };
        assert_eq!(told(&never), "it has granted no takeover yet");
        let granted = WitnessReport { granted: Some((2, 1, vec![0, 2])), ..begun };
        assert_eq!(told(&granted), "cluster 1 has its grant to continue without clusters 0 and 2");
    }
}
