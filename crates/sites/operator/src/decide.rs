//! What an operator decides: `pares site lost`, `admit`, `migrate`.
//!
//! Who has to be told follows from what the sites say of themselves. That may change while they are asked (a delegate dies, a log is still being read), so it is tried for a
//! while; and it is done when the era that was decided has begun, which is looked for too.

use std::cell::Cell;
use std::time::Duration;

use pares_site::protocol::Code;
use pares_site::{Access, CallError, NoSurvivor, SiteReport, has_begun_everywhere, who_goes_on};
use pares_wice::{ClusterId, ClusterSet, Command, SiteId};

use crate::error::{OperatorError, OperatorResult, usage};
use crate::histories;
use crate::sites::{self, ANSWER_PATIENCE};
use crate::witness::{self, WithoutWord};

mod until;

pub(crate) use until::PAUSE;
use until::until;

/// Why no site receives a decision, as long as none reports that it could take one.
const NOBODY: &str = "no site reports that it certifies or is a delegate: check that one is running";
/// The same for `lost`, while delegates answer that could not continue.
const NONE_GOES_ON: &str = "no delegate of a live cluster that is not lost answers, or none of the cluster that --at names: check that its sites are running";

/// Arguments of `pares site lost`.
#[derive(clap::Args)]
pub struct Lost {
    /// All lost clusters, together, because the witness grants only one takeover
    #[arg(required = true)]
    clusters: Vec<u8>,
    /// Confirm that they are lost, and that nobody there declares the other clusters lost
    #[arg(long)]
    yes: bool,
    /// The cluster that receives the decision, and certifies if the certifying cluster is lost [default: the certifying cluster, or the first live one]
    #[arg(long)]
    at: Option<u8>,
    /// Proceed without the witness: confirm that it is lost too, and that nobody declares clusters lost elsewhere. Takes effect only if the witness's port refuses connections for 10 seconds
    #[arg(long)]
    without_witness: bool,
    #[command(flatten)]
    patience: Patience,
}

/// Arguments of `pares site admit`.
#[derive(clap::Args)]
pub struct Admit {
    /// The returned cluster
    cluster: u8,
    #[command(flatten)]
    patience: Patience,
}

/// Arguments of `pares site migrate`.
#[derive(clap::Args)]
pub struct Migrate {
    /// The cluster that shall certify
    cluster: u8,
    #[command(flatten)]
    patience: Patience,
}

/// How long an operator is patient.
#[derive(clap::Args)]
pub(crate) struct Patience {
    /// Time limit, seconds
    #[arg(long, default_value_t = 60)]
    patience: u64,
}

impl Patience {
    pub(crate) fn duration(&self) -> Duration {
        Duration::from_secs(self.patience)
    }
}

impl Lost {
    /// Declares them lost, if `--yes` is said.
    ///
    /// # Errors
    /// Why not.
    pub fn run(&self, access: &Access) -> OperatorResult {
        let known: Result<ClusterSet, OperatorError> =
            self.clusters.iter().map(|cluster| counted(access, *cluster)).collect();
        let lost = known?;
        who_is_left(&sites::clusters(&access.config), &sites::reports(access), lost)?;
        if !self.yes {
            return Err(self.doubts(access.config.witness.is_some() && !self.without_witness));
        }
        let done = declare_lost(access, lost, self.at, self.without_witness, self.patience.duration());
        if done.is_ok() {
            pares_text::say!("declared lost: {}; the others continue", self.named());
        }
        histories::named(access, done)
    }

    fn named(&self) -> String {
        let all: Vec<String> = self.clusters.iter().map(|cluster| format!("cluster {cluster}")).collect();
        all.join(" and ")
    }

    /// What to think of before it is said.
    fn doubts(&self, is_witnessed: bool) -> OperatorError {
        let two = match is_witnessed {
            true => "If it is only cut off, the witness grants the takeover to one side only",
            false => {
                "If it is only cut off, and an operator there declares the others lost, two histories arise that cannot be merged: ask there first"
            }
        };
        usage(format!(
            "the other clusters would continue without {0} immediately. Transactions that only {0} has are \
             discarded on its return; clients never got answers for them. {two}. If you are sure, repeat \
             with --yes",
            self.named()
        ))
    }
}

impl Admit {
    /// Admits it, once it has caught up.
    ///
    /// # Errors
    /// Why not.
    pub fn run(&self, access: &Access) -> OperatorResult {
        let done = admit(access, self.cluster, self.patience.duration());
        if done.is_err() {
            return histories::named(access, done);
        }
        pares_text::say!("cluster {} is live again: from now on every answer waits for it", self.cluster);
        Ok(())
    }
}

impl Migrate {
    /// Moves the certifier.
    ///
    /// # Errors
    /// Why not.
    pub fn run(&self, access: &Access) -> OperatorResult {
        migrate(access, self.cluster, self.patience.duration())?;
        pares_text::say!("cluster {} certifies", self.cluster);
        Ok(())
    }
}

/// Has a cluster declared lost, and waits until the era without it has begun at all clusters that live.
///
/// # Errors
/// If no site does it in time.
pub fn lost(access: &Access, cluster: u8, at: Option<u8>, patience: Duration) -> OperatorResult {
    let lost = ClusterSet::default().with(known(access, cluster)?);
    declare_lost(access, lost, at, false, patience)
}

/// Whether one of the living clusters is left; of those in `sites.toml`, if no site says who lives.
fn who_is_left(named: &[u8], reports: &[(SiteId, SiteReport)], lost: ClusterSet) -> OperatorResult {
    let members = reports.iter().map(|(_, report)| report).filter(|report| !report.live.is_empty());
    let latest = members.max_by_key(|report| report.era);
    let living = latest.map_or(named, |latest| latest.live.as_slice());
    if living.iter().any(|cluster| !lost.contains(ClusterId(*cluster))) {
        return Ok(());
    }
    let living: Vec<String> = living.iter().map(u8::to_string).collect();
    Err(usage(format!(
        "no cluster would be left: one of the live clusters ({}) must continue. If another cluster is back, admit it first (`pares site admit`); if all data are lost, restore a backup (docs/operations/sites.md, Backup of sites)",
        living.join(" and ")
    )))
}

fn declare_lost(
    access: &Access,
    lost: ClusterSet,
    at: Option<u8>,
    without_witness: bool,
    patience: Duration,
) -> OperatorResult {
    // One cluster for the whole run, once the witness was asked for it: no other gets what it was granted.
    let at = Cell::new(at);
    let without = without_witness.then(WithoutWord::default);
    let whom = |reports: &[(SiteId, SiteReport)]| {
        who_goes_on(reports, lost, at.get()).map_err(|why| unready(why, reports))
    };
    let command = |told: (SiteId, &SiteReport)| {
        if access.config.witness.is_some() {
            at.set(Some(told.0.cluster.0));
        }
        witness::granted(access, told, lost, without.as_ref())
    };
    // Begun at one cluster alone, it is undone if that one is lost: then the others would count on these again. What those say who are declared lost, and may
    // have continued by themselves, is no answer to this.
    let is_without = |reports: &[(SiteId, SiteReport)], _: &SiteReport| {
        let others = histories::besides(reports, |cluster| lost.contains(ClusterId(cluster)));
        latest(&others).is_some_and(|latest| {
            let counts = latest.live.iter().any(|live| lost.contains(ClusterId(*live)));
            !counts && has_begun_everywhere(reports, latest)
        })
    };
    until(access, command, patience, whom, is_without)?;
    if let (Some(word), Some(_)) = (without, access.config.witness) {
        word.tell();
    }
    Ok(())
}

/// Why nobody can be told that clusters are lost, and the way out if the witness has granted it already.
fn unready(why: NoSurvivor, reports: &[(SiteId, SiteReport)]) -> String {
    let NoSurvivor::CertifiedBy(certifier, own) = why else {
        return latest_delegate(reports).map_or_else(|| nobody(reports), |_| NONE_GOES_ON.into());
    };
    format!(
        "{certifier} certifies, so its delegate must receive the decision, but it does not answer, or --at \
         names another cluster. If {certifier} is lost too, declare both lost together. If the witness has \
         granted the takeover to {own}: `pares site migrate {}`, then repeat this command",
        own.0
    )
}

/// Who knows the latest era, and if possible certifies in it.
fn latest(reports: &[(SiteId, SiteReport)]) -> Option<&SiteReport> {
    reports.iter().map(|(_, report)| report).max_by_key(|report| (report.era, report.certifies))
}

pub(crate) fn of(reports: &[(SiteId, SiteReport)], site: SiteId) -> Option<&SiteReport> {
    reports.iter().find_map(|(other, report)| (*other == site).then_some(report))
}

/// Has a cluster admitted, and waits until the era with it has begun.
///
/// # Errors
/// If it has not caught up in time, or no site does it.
pub fn admit(access: &Access, cluster: u8, patience: Duration) -> OperatorResult {
    let command = Command::Admit(known(access, cluster)?);
    // Those who continue say whether it is live: by its own word it may always be.
    let others = |reports: &[(SiteId, SiteReport)]| histories::besides(reports, |other| other == cluster);
    until(
        access,
        |_| Ok(Ok(command)),
        patience,
        |reports| who_certifies(&others(reports)),
        |reports, _| {
            let others = others(reports);
            latest(&others)
                .is_some_and(|latest| latest.live.contains(&cluster) && has_begun_everywhere(reports, latest))
        },
    )
}

/// Has a cluster certify, and waits until it does.
///
/// # Errors
/// If no site does it in time.
pub fn migrate(access: &Access, cluster: u8, patience: Duration) -> OperatorResult {
    let command = Command::Migrate(known(access, cluster)?);
    until(
        access,
        |_| Ok(Ok(command)),
        patience,
        who_certifies,
        |_, latest| latest.certifier == cluster && latest.certifies,
    )
}

fn known(access: &Access, cluster: u8) -> Result<ClusterId, OperatorError> {
    match access.config.sites.iter().any(|place| place.cluster == cluster) {
        true => Ok(ClusterId(cluster)),
        false => Err(usage(format!("there is no cluster {cluster} in sites.toml"))),
    }
}

/// The same; also one that `sites.toml` does not name any more, and that sites count as live.
fn counted(access: &Access, cluster: u8) -> Result<ClusterId, OperatorError> {
    let is_live = |(_, report): &(SiteId, SiteReport)| report.live.contains(&cluster);
    known(access, cluster).or_else(|error| match sites::reports(access).iter().any(is_live) {
        true => Ok(ClusterId(cluster)),
        false => Err(error),
    })
}

/// Who certifies and knows the latest era: one that was cut off may still say that it certifies, of an era that is over.
pub(crate) fn certifying(reports: &[(SiteId, SiteReport)]) -> Option<SiteId> {
    let found = reports.iter().filter(|(_, report)| report.certifies);
    found.max_by_key(|(_, report)| report.era).map(|(site, _)| *site)
}

fn who_certifies(reports: &[(SiteId, SiteReport)]) -> Result<SiteId, String> {
    let certifier_is_missing = |latest: &SiteReport| {
        format!(
            "cluster {0} is to certify and does not: its sites are down, or it waits for promises of all live \
             clusters. Start the sites that are missing; if a cluster is lost, declare that first: `pares site \
             lost {0} --yes` if it is this one",
            latest.certifier
        )
    };
    certifying(reports)
        .ok_or_else(|| latest_delegate(reports).map_or_else(|| nobody(reports), certifier_is_missing))
}

/// The delegate that knows the latest era.
fn latest_delegate(reports: &[(SiteId, SiteReport)]) -> Option<&SiteReport> {
    reports.iter().map(|(_, report)| report).filter(|report| report.delegate).max_by_key(|report| report.era)
}

/// Why no delegate answers: what one that takes no part waits for, or that none is there.
fn nobody(reports: &[(SiteId, SiteReport)]) -> String {
    let waits =
        |(site, report): &(SiteId, SiteReport)| Some((sites::name(*site), report.apart.as_ref()?.clone()));
    let waiting = reports.iter().find_map(waits);
    waiting.map_or_else(|| NOBODY.into(), |(site, why)| format!("{site} does not participate: {why}"))
}

/// Tells a site; `Ok(Err)` if it may yet do it.
pub(crate) fn tell(
    access: &Access,
    site: SiteId,
    command: Command,
) -> Result<Result<(), String>, OperatorError> {
    match sites::operator(access, site)?.operate(command, ANSWER_PATIENCE) {
        Ok(_) => Ok(Ok(())),
        Err(error @ CallError::No { code: Code::Denied, .. }) => Err(usage(format!("{site}: {error}"))),
        Err(error) => Ok(Err(format!("{site}: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_waited_for_is_named() {
        let site = |cluster, report| (SiteId::new(cluster, 0), report);
        let live = SiteReport { delegate: true, live: vec![0, 1], ..SiteReport::default() };
        let why = who_certifies(&[site(1, live.clone())]).unwrap_err();
        assert!(
            why.contains("cluster 0 is to certify") && why.contains("`pares site lost 0 --yes`"),
            "{why}"
        );
        let new = SiteReport { apart: Some("it is new".into()), ..SiteReport::default() };
        let new = [site(0, new)];
        assert_eq!(unready(NoSurvivor::Silent, &new), "0.0 does not participate: it is new");
        assert_eq!(who_certifies(&new).unwrap_err(), unready(NoSurvivor::Silent, &new));
        assert_eq!(unready(NoSurvivor::Silent, &[]), NOBODY);
        assert_eq!(unready(NoSurvivor::Silent, &[site(1, live)]), NONE_GOES_ON, "it is declared lost");
    }

    #[test]
    fn that_no_cluster_would_be_left_is_said_at_once() {
        let report = |cluster, era, live: &[u8]| {
            let report = SiteReport { era, live: live.to_vec(), ..SiteReport::default() };
            (SiteId::new(cluster, 0), report)
        };
        let [zero, one] = [0, 1].map(|cluster| ClusterSet::default().with(ClusterId(cluster)));
        let both = zero.with(ClusterId(1));
        let alone = [report(1, (0, 0, 0), &[0, 1]), report(0, (1, 1, 0), &[0]), report(0, (9, 9, 9), &[])];
        let refused = who_is_left(&[0, 1], &alone, zero).unwrap_err().to_string();
        assert!(refused.contains("no cluster would be left: one of the live clusters (0)"), "{refused}");
        assert!(who_is_left(&[0, 1], &alone, one).is_ok(), "that was so already");
        assert!(who_is_left(&[0, 1], &alone[..1], zero).is_ok());
        assert!(who_is_left(&[0, 1], &[], both).is_err(), "also if no site answers");
        assert!(who_is_left(&[0, 1], &[], one).is_ok());
    }
}
