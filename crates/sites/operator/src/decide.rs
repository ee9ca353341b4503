//! What an operator decides: `pares site lost`, `admit`, `migrate`, `remove`.
//!
//! Who has to be told follows from what the sites say of themselves. That may change while they are asked (a delegate dies, a log is still being read), so it is tried for a
//! while; and it is done when the era that was decided has begun, which is looked for too.

use std::time::{Duration, Instant};

use pares_site::protocol::Code;
use pares_site::{Access, CallError, SiteReport};
use pares_wice::{ClusterId, ClusterSet, Command, SiteId};

use crate::error::usage;
use crate::error::{OperatorError, OperatorResult};
use crate::sites;
use crate::witness;

/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(20);
/// Longest wait for one answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(2);

/// Arguments of `pares site lost`.
#[derive(clap::Args)]
pub struct Lost {
    /// The cluster that is gone
    cluster: u8,
    /// Yes, it is gone, and nobody declares the others lost there
    #[arg(long)]
    yes: bool,
    /// The cluster that is to certify, if the one that is gone did; otherwise the first that lives
    #[arg(long)]
    at: Option<u8>,
    /// The witness is lost, and nobody declares the others lost at any other cluster: go on without its word. While it answers, this changes nothing
    #[arg(long)]
    without_witness: bool,
    #[command(flatten)]
    patience: Patience,
}

/// Arguments of `pares site admit`.
#[derive(clap::Args)]
pub struct Admit {
    /// The cluster that is back
    cluster: u8,
    #[command(flatten)]
    patience: Patience,
}

/// Arguments of `pares site migrate`.
#[derive(clap::Args)]
pub struct Migrate {
    /// The cluster that is to certify
    cluster: u8,
    #[command(flatten)]
    patience: Patience,
}

/// Arguments of `pares site remove`.
#[derive(clap::Args)]
pub struct Remove {
    /// The site that leaves, as in 0.2
    #[arg(value_parser = sites::parse)]
    site: SiteId,
    /// Yes, its disk is given up
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    patience: Patience,
}

/// How long an operator is patient.
#[derive(clap::Args)]
pub(crate) struct Patience {
    /// How long to try, seconds
    #[arg(long, default_value_t = 60)]
    patience: u64,
}

impl Patience {
    pub(crate) fn duration(&self) -> Duration {
        Duration::from_secs(self.patience)
    }
}

impl Lost {
    /// Declares it lost, if `--yes` is said.
    ///
    /// # Errors
    /// Why not.
    pub fn run(&self, access: &Access) -> OperatorResult {
        if !self.yes {
            return Err(self.doubts(access.config.witness.is_some() && !self.without_witness));
        }
        let lost = ClusterSet::default().with(known(access, self.cluster)?);
        declare_lost(access, lost, self.at, self.without_witness, self.patience.duration())?;
        pares_text::say!("cluster {} is declared lost; the others go on without it", self.cluster);
        Ok(())
    }
}

impl Lost {
    /// What to think of before it is said.
    fn doubts(&self, is_witnessed: bool) -> OperatorError {
        let two = match is_witnessed {
            true => "If it is not gone but cut off, the witness grants this to one side only",
            false => {
                "If it is not gone but cut off, and somebody there declares the others lost, there will be two histories that nothing can merge: ask there first"
            }
        };
        usage(format!(
            "the other clusters would go on without cluster {0}, at once. What cluster {0} alone has is discarded when it returns; none of it \
             was answered. {two}. If you are sure, say --yes",
            self.cluster
        ))
    }
}

impl Admit {
    /// Admits it, once it has caught up.
    ///
    /// # Errors
    /// Why not.
    pub fn run(&self, access: &Access) -> OperatorResult {
        admit(access, self.cluster, self.patience.duration())?;
        pares_text::say!(
            "cluster {} is among the living: from now on every answer waits for it",
            self.cluster
        );
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

impl Remove {
    /// Has its cluster's log take its vote away, if `--yes` is said.
    ///
    /// # Errors
    /// Why not.
    pub fn run(&self, access: &Access) -> OperatorResult {
        let (site, name) = (self.site, sites::name(self.site));
        if !self.yes {
            return Err(usage(format!(
                "{name} would have no vote in its cluster any more, and its directory would count for nothing from then on. If its disk or machine is \
                 replaced, nothing is to be removed: it is filled by itself. If it leaves for good, say --yes"
            )));
        }
        let mates: Vec<SiteId> =
            sites::all(&access.config).into_iter().filter(|other| other.cluster == site.cluster).collect();
        if mates.is_empty() {
            return Err(usage(format!(
                "sites.toml names no site of {}, which could remove it",
                site.cluster
            )));
        }
        let removed = access.client(sites::OPERATOR, 0, &mates)?.remove(site, self.patience.duration());
        removed.map_err(|error| OperatorError::Failed(format!("{name}: {error}")))?;
        pares_text::say!(
            "{name} has no vote. If sites.toml names it, take it out of every one and restart the other sites one after the other (a running `pares site up` \
             does that by itself): named, it would be let in again with an empty disk. Then stop it; `pares site revoke --site {name}` ends its certificate"
        );
        Ok(())
    }
}

/// Has a cluster declared lost, and waits until the era without it has begun.
///
/// # Errors
/// If nobody does it in time.
pub fn lost(access: &Access, cluster: u8, at: Option<u8>, patience: Duration) -> OperatorResult {
    let lost = ClusterSet::default().with(known(access, cluster)?);
    declare_lost(access, lost, at, false, patience)
}

fn declare_lost(
    access: &Access,
    lost: ClusterSet,
    at: Option<u8>,
    without_witness: bool,
    patience: Duration,
) -> OperatorResult {
    let whom = |reports: &[(SiteId, SiteReport)]| {
        let lives = |site: &SiteId| !lost.contains(site.cluster) && at.is_none_or(|at| site.cluster.0 == at);
        let certifies = find(reports, |site, report| lives(site) && report.certifies);
        certifies.or_else(|| find(reports, |site, report| lives(site) && report.delegate))
    };
    let command = |told: (SiteId, &SiteReport)| witness::granted(access, told, lost, without_witness);
    let is_without =
        |_: &[_], latest: &SiteReport| !latest.live.iter().any(|live| lost.contains(ClusterId(*live)));
    until(access, command, patience, whom, is_without)
}

/// Has all living clusters begin an era that counts higher than any before; the count.
///
/// # Errors
/// If no site certifies, or a living cluster does not begin that era in time.
pub(crate) fn renew(access: &Access, patience: Duration) -> Result<u32, OperatorError> {
    let began = Instant::now();
    let mut told: Option<(u8, u32)> = None;
    let mut why = "no site says that it certifies: is it running?".to_owned();
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
                    why = "a living cluster has not begun the new era, and may have been granted something"
                        .into();
                }
                Err(no) => why = no,
            }
        }
        std::thread::sleep(PAUSE);
    }
    Err(OperatorError::Failed(format!("not within {patience:?}: {why}")))
}

/// The count of the era that this cluster was told to begin, once the delegates of all that live have begun it.
fn renewed(reports: &[(SiteId, SiteReport)], by: u8, before: u32) -> Option<u32> {
    let (_, latest) = reports.iter().max_by_key(|(_, report)| report.era)?;
    let is_it = latest.era.0 > before && latest.era.2 == by && has_begun_everywhere(reports, latest);
    is_it.then_some(latest.era.0)
}

/// Whether the delegates of all clusters that live in the era of `latest` have begun it. One that has just started may have missed later ones.
fn has_begun_everywhere(reports: &[(SiteId, SiteReport)], latest: &SiteReport) -> bool {
    let has_begun = |cluster: &u8| {
        let is_its = |(site, report): &(SiteId, SiteReport)| {
            site.cluster.0 == *cluster && report.delegate && report.era == latest.era
        };
        reports.iter().any(is_its)
    };
    latest.live.iter().all(has_begun)
}

fn of(reports: &[(SiteId, SiteReport)], site: SiteId) -> Option<&SiteReport> {
    reports.iter().find_map(|(other, report)| (*other == site).then_some(report))
}

/// Has a cluster admitted, and waits until the era with it has begun.
///
/// # Errors
/// If it has not caught up in time, or nobody does it.
pub fn admit(access: &Access, cluster: u8, patience: Duration) -> OperatorResult {
    let command = Command::Admit(known(access, cluster)?);
    until(
        access,
        |_| Ok(Ok(command)),
        patience,
        certifying,
        |reports, latest| latest.live.contains(&cluster) && has_begun_everywhere(reports, latest),
    )
}

/// Has a cluster certify, and waits until it does.
///
/// # Errors
/// If nobody does it in time.
pub fn migrate(access: &Access, cluster: u8, patience: Duration) -> OperatorResult {
    let command = Command::Migrate(known(access, cluster)?);
    until(
        access,
        |_| Ok(Ok(command)),
        patience,
        certifying,
        |_, latest| latest.certifier == cluster && latest.certifies,
    )
}

fn known(access: &Access, cluster: u8) -> Result<ClusterId, OperatorError> {
    match access.config.sites.iter().any(|place| place.cluster == cluster) {
        true => Ok(ClusterId(cluster)),
        false => Err(usage(format!("there is no cluster {cluster} in sites.toml"))),
    }
}

fn certifying(reports: &[(SiteId, SiteReport)]) -> Option<SiteId> {
    find(reports, |_, report| report.certifies)
}

/// Of those, who knows the latest era: one that was cut off may not know yet that it is not any more what it says.
fn find(reports: &[(SiteId, SiteReport)], is: impl Fn(&SiteId, &SiteReport) -> bool) -> Option<SiteId> {
    let found = reports.iter().filter(|(site, report)| is(site, report));
    found.max_by_key(|(_, report)| report.era).map(|(site, _)| *site)
}

/// Tells all that have to be told, until the latest era is as wanted.
fn until(
    access: &Access,
    command: impl Fn((SiteId, &SiteReport)) -> Result<Result<Command, String>, OperatorError>,
    patience: Duration,
    whom: impl Fn(&[(SiteId, SiteReport)]) -> Option<SiteId>,
    is_so: impl Fn(&[(SiteId, SiteReport)], &SiteReport) -> bool,
) -> OperatorResult {
    let began = Instant::now();
    let mut why = "no site says that it certifies, or is a delegate: is one of them running?".to_owned();
    let mut told: Option<Instant> = None;
    while began.elapsed() < patience {
        let reports = sites::reports(access);
        let latest =
            reports.iter().map(|(_, report)| report).max_by_key(|report| (report.era, report.certifies));
        if latest.is_some_and(|latest| is_so(&reports, latest)) {
            return Ok(());
        }
        // Once agreed to, it is under way, unless the one that agreed has died.
        if told.is_none_or(|told| told.elapsed() > ANSWER_PATIENCE)
            && let Some(site) = whom(&reports)
        {
            let report = of(&reports, site).expect("it has reported");
            match command((site, report))? {
                Ok(command) => match tell(access, site, command)? {
                    Ok(()) => told = Some(Instant::now()),
                    Err(no) => why = no,
                },
                Err(no) => why = no,
            }
        }
        std::thread::sleep(PAUSE);
    }
    Err(OperatorError::Failed(format!("not within {patience:?}: {why}")))
}

/// Tells a site; `Ok(Err)` if it may yet do it.
fn tell(access: &Access, site: SiteId, command: Command) -> Result<Result<(), String>, OperatorError> {
    match sites::operator(access, site)?.operate(command, ANSWER_PATIENCE) {
        Ok(_) => Ok(Ok(())),
        Err(error @ CallError::No { code: Code::Denied, .. }) => Err(usage(format!("{site}: {error}"))),
        Err(error) => Ok(Err(format!("{site}: {error}"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(cluster: u8, delegate: bool, era: (u32, u32, u8)) -> (SiteId, SiteReport) {
        let report = SiteReport { era, delegate, live: vec![0, 1], ..SiteReport::default() };
        (SiteId::new(cluster, 0), report)
    }

    #[test]
    fn an_era_is_renewed_when_every_living_cluster_has_begun_what_the_certifier_was_told() {
        let (old, new) = ((1, 4, 0), (2, 5, 0));
        assert_eq!(renewed(&[report(0, true, new), report(1, true, new)], 0, 1), Some(2));
        for (reports, by, what) in [
            (vec![report(0, true, new), report(1, true, old)], 0, "one has not begun it"),
            (vec![report(0, true, new), report(1, false, new)], 0, "no delegate says so"),
            (vec![report(0, true, new)], 0, "one says nothing"),
            (vec![report(0, true, old), report(1, true, old)], 0, "nobody has begun one"),
            (vec![report(0, true, new), report(1, true, new)], 1, "another cluster has begun another"),
        ] {
            assert_eq!(renewed(&reports, by, 1), None, "{what}");
            let latest = &reports.iter().max_by_key(|(_, report)| report.era).unwrap().1;
            let is_nowhere_else = what.starts_with("nobody") || what.starts_with("another");
            assert_eq!(has_begun_everywhere(&reports, latest), is_nowhere_else, "{what}");
        }
    }
}
