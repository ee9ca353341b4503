//! What an operator decides: `pares site lost`, `admit`, `migrate`.
//!
//! Who has to be told follows from what the sites say of themselves. That may change while they are asked (a delegate dies, a log is still being read), so it is tried for a
//! while; and it is done when the era that was decided has begun, which is looked for too.

use std::cell::Cell;
use std::cmp::Reverse;
use std::time::{Duration, Instant};

use pares_site::protocol::Code;
use pares_site::{Access, CallError, SiteReport, has_begun_everywhere, renewed};
use pares_wice::{ClusterId, ClusterSet, Command, SiteId};

use crate::error::{OperatorError, OperatorResult, usage};
use crate::histories;
use crate::sites;
use crate::witness;

/// Pause between two tries.
const PAUSE: Duration = Duration::from_millis(20);
/// Longest wait for one answer.
const ANSWER_PATIENCE: Duration = Duration::from_secs(2);

/// Arguments of `pares site lost`.
#[derive(clap::Args)]
pub struct Lost {
    /// The clusters that are gone, all at once: what a witness grants, it grants to one cluster that goes on
    #[arg(required = true)]
    clusters: Vec<u8>,
    /// Yes, they are gone, and nobody declares the others lost there
    #[arg(long)]
    yes: bool,
    /// The cluster that is told, and certifies then if the one that did is gone; otherwise the one that certifies, or the first that lives
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
    /// Declares them lost, if `--yes` is said.
    ///
    /// # Errors
    /// Why not.
    pub fn run(&self, access: &Access) -> OperatorResult {
        if !self.yes {
            return Err(self.doubts(access.config.witness.is_some() && !self.without_witness));
        }
        let known: Result<ClusterSet, OperatorError> =
            self.clusters.iter().map(|cluster| known(access, *cluster)).collect();
        let done = declare_lost(access, known?, self.at, self.without_witness, self.patience.duration());
        if done.is_ok() {
            pares_text::say!("declared lost: {}; the others go on", self.named());
        }
        histories::named(access, done)
    }
}

impl Lost {
    fn named(&self) -> String {
        let all: Vec<String> = self.clusters.iter().map(|cluster| format!("cluster {cluster}")).collect();
        all.join(" and ")
    }

    /// What to think of before it is said.
    fn doubts(&self, is_witnessed: bool) -> OperatorError {
        let two = match is_witnessed {
            true => "If that is not gone but cut off, the witness grants this to one side only",
            false => {
                "If that is not gone but cut off, and somebody there declares the others lost, there will be two histories that nothing can merge: ask there first"
            }
        };
        usage(format!(
            "the other clusters would go on without {0}, at once. What {0} alone has is discarded on return; none of it \
             was answered. {two}. If you are sure, say --yes",
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
    // One cluster for the whole run, once the witness was asked for it: nobody else gets what it was granted.
    let at = Cell::new(at);
    let whom = |reports: &[(SiteId, SiteReport)]| who_goes_on(reports, lost, at.get());
    let command = |told: (SiteId, &SiteReport)| {
        if access.config.witness.is_some() {
            at.set(Some(told.0.cluster.0));
        }
        witness::granted(access, told, lost, without_witness)
    };
    // What those say who are declared lost, and may have gone on by themselves, is no answer to this.
    let is_without = |reports: &[(SiteId, SiteReport)], _: &SiteReport| {
        let others = histories::besides(reports, |cluster| lost.contains(ClusterId(cluster)));
        let latest = others.iter().max_by_key(|(_, report)| (report.era, report.certifies));
        latest.is_some_and(|(_, report)| !report.live.iter().any(|live| lost.contains(ClusterId(*live))))
    };
    until(access, command, patience, whom, is_without)
}

/// The delegate that can go on without these clusters: of one that lives by its own word, since one that is back and not admitted would have to refuse what the witness can
/// grant once. The certifier's own cluster is first, also while it waits for promises; nobody else takes over from it.
fn who_goes_on(reports: &[(SiteId, SiteReport)], lost: ClusterSet, at: Option<u8>) -> Option<SiteId> {
    let may = |(site, report): &&(SiteId, SiteReport)| {
        let cluster = site.cluster.0;
        let lives = !lost.contains(site.cluster) && report.live.contains(&cluster);
        lives && report.delegate && at.is_none_or(|at| cluster == at)
    };
    let rank = |(site, report): &&(SiteId, SiteReport)| {
        (report.era, report.certifies, report.certifier == site.cluster.0, Reverse(*site))
    };
    reports.iter().filter(may).max_by_key(rank).map(|(site, _)| *site)
}

/// Has all living clusters begin an era that counts higher than any before; the count.
///
/// # Errors
/// If no site certifies, or a living cluster does not begin that era in time.
pub(crate) fn renew(access: &Access, patience: Duration) -> Result<u32, OperatorError> {
    let began = Instant::now();
    let mut told: Option<(u8, u32)> = None;
    let mut why = "no site says that it certifies: is it running, or does it wait for what all living clusters have to promise since an earlier try? All of them must be \
         there"
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
                    why = "a living cluster has not promised the new era, or not begun it: it does not hear, or was granted something and went on. Nothing is certified until it \
                        has, or is declared lost"
                        .into();
                }
                Err(no) => why = no,
            }
        }
        std::thread::sleep(PAUSE);
    }
    Err(OperatorError::Failed(format!("not within {patience:?}: {why}")))
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
    // Those who go on say whether it is among the living: by its own word it may always be.
    let others = |reports: &[(SiteId, SiteReport)]| histories::besides(reports, |other| other == cluster);
    until(
        access,
        |_| Ok(Ok(command)),
        patience,
        |reports| certifying(&others(reports)),
        |reports, _| {
            let others = others(reports);
            let latest =
                others.iter().map(|(_, report)| report).max_by_key(|report| (report.era, report.certifies));
            latest
                .is_some_and(|latest| latest.live.contains(&cluster) && has_begun_everywhere(reports, latest))
        },
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
    fn who_is_to_go_on_without_others_lives_by_its_own_word() {
        let (old, new) = ((1, 4, 0), (1, 5, 0));
        let lost = ClusterSet::default().with(ClusterId(0));
        let back = (SiteId::new(2, 0), SiteReport { live: vec![0, 1], ..report(2, true, new).1 });
        let reports = [report(0, true, new), report(1, true, new), back];
        let site = |cluster| Some(SiteId::new(cluster, 0));
        assert_eq!(who_goes_on(&reports, lost, None), site(1));
        assert_eq!(who_goes_on(&reports, lost, Some(2)), None, "it is not admitted");
        let all = [report(1, true, old), report(0, true, new), report(1, false, new)];
        assert_eq!(who_goes_on(&all, ClusterSet(2), None), site(0));
        assert_eq!(who_goes_on(&all, lost, None), site(1));
        assert_eq!(who_goes_on(&all, ClusterSet(3), None), None);
        let mut equal = [report(1, true, new), report(0, true, new)];
        assert_eq!(
            who_goes_on(&equal, ClusterSet::default(), None),
            site(0),
            "it certified, and waits for promises"
        );
        equal[0].1.certifier = 1;
        equal[1].1.certifier = 1;
        assert_eq!(who_goes_on(&equal, ClusterSet::default(), None), site(1));
    }
}
