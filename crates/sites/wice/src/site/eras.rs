//! Eras: clusters lost, returning and admitted, and the certifier moved (paper 3 section 3.2).
//!
//! The paper has every other cluster agree on its own that one has failed, and a new certifier collect what it missed (figure 3b). What the old
//! one still has under way is not stopped by that, and may be delivered under versions that the new one gives away (faults 9 to 11); and
//! two clusters that cannot hear each other both continue (fault 20). Here an era begins by an operator's decision, as a version in the stream;
//! and where the old certifier is not there to give that version, every surviving cluster first writes down in its own log
//! that it takes nothing from earlier eras any more.

use std::collections::BTreeMap;
use std::sync::Arc;

use thiserror::Error;

use crate::entry::{Body, Configuration, Entry, LogEntry};
use crate::ids::{ClusterId, ClusterSet, Era, SiteId, Version};
use crate::message::Message;
use crate::site::{Effects, Notice, Site};
use crate::witness::Declaration;

/// An operator's decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Command {
    /// These clusters are gone: stable without them. Told to the delegate of the certifier's cluster; if that is among them, to the
    /// delegate of a cluster that lives, which certifies from then on. **Nothing checks that they are gone.** If they are not, what they
    /// alone have is discarded when they return; none of it was answered. Where there is a witness, it must be [`Command::Granted`].
    DeclareLost(ClusterSet),
    /// The same, as the [witness](crate::witness) has granted it to this cluster.
    Granted(Declaration),
    /// The same though there is a witness: on the operator's word alone, that no other cluster has been granted it, or ever will be.
    Unwitnessed(ClusterSet),
    /// All continue as they are, in an era that counts one takeover more: what a witness has granted before is void. It begins when every living cluster has
    /// promised it; until then nothing is certified. Told to the certifier.
    Renew,
    /// This cluster is back, and has caught up: nothing is stable without it any more. Told to the certifier; the first time it only begins to
    /// look, and refuses, so it is sent until it agrees.
    Admit(ClusterId),
    /// This cluster certifies from now on. Told to the certifier.
    Migrate(ClusterId),
}

impl Command {
    /// The clusters that are declared lost, if any are.
    #[must_use]
    pub const fn lost(self) -> Option<ClusterSet> {
        match self {
            Self::DeclareLost(lost) | Self::Unwitnessed(lost) | Self::Granted(Declaration { lost, .. }) => {
                Some(lost)
            }
            Self::Admit(_) | Self::Migrate(_) | Self::Renew => None,
        }
    }
}

/// Why a decision was not carried out. Nothing has changed.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Refused {
    /// Only a delegate can.
    #[error("this site is not its cluster's delegate: send this to the delegate")]
    NotDelegate,
    /// Only the certifier can.
    #[error(
        "this site does not certify: send this to the certifier, in {0}. If the witness has granted this to \
         the site's own cluster, `pares site migrate` the certifier there, and repeat"
    )]
    NotCertifier(ClusterId),
    /// The cluster is live, or is not, already.
    #[error("this is already the case")]
    Already,
    /// A cluster cannot declare itself lost, and no cluster would be left.
    #[error("a cluster cannot declare itself lost")]
    Own,
    /// The cluster does not live, or does not exist.
    #[error("{0} is not live: admit it first")]
    NotLiving(ClusterId),
    /// Nothing would be stable until it has caught up.
    #[error("{cluster} lags by {versions} versions: wait until it has caught up")]
    Behind {
        /// Which.
        cluster: ClusterId,
        /// How far.
        versions: u64,
    },
    /// There is a witness, and it was not asked.
    #[error("the witness must grant that first: `pares site lost` asks it")]
    NotGranted,
    /// What was granted is not what this cluster would do now.
    #[error("the witness has granted this to another cluster, or for another era: check `pares site status`")]
    GrantedOtherwise,
    /// With a witness each count of takeovers is promised once.
    #[error(
        "this cluster has promised the next era to {0}, and cannot promise it to another: wait until that era has begun, then check `pares site status`"
    )]
    Promised(ClusterId),
    /// There is none.
    #[error("this system has no witness (`witness` in sites.toml)")]
    NoWitness,
    /// Another decision is being carried out.
    #[error("another decision is in progress: wait until its era has begun, then check `pares site status`")]
    UnderWay,
}

/// An era that this cluster is about to begin, once all that are to live have promised it: the certifier of the last is lost, or renews.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Takeover {
    pub(super) configuration: Configuration,
    /// Survivors that have promised, and how far they had delivered.
    promised: BTreeMap<ClusterId, Version>,
    /// Ask those that are missing, or that have what this cluster lacks.
    ask: bool,
    proposed: bool,
}

impl Takeover {
    pub(super) fn new(configuration: Configuration) -> Self {
        Self { configuration, promised: BTreeMap::new(), ask: true, proposed: false }
    }

    /// Another delegate carries it on.
    pub(super) fn begin_again(&mut self) {
        *self = Self::new(self.configuration);
    }

    pub(super) fn ask_again(&mut self) {
        self.ask = true;
    }

    /// What it leads to for a cluster whose log has come to an era in which `live` do. That may have begun since it was decided: whom it declared lost does
    /// not live again by a takeover, and owes it no promise.
    fn leads_to(&self, own: ClusterId, live: ClusterSet) -> Configuration {
        let still = |cluster: &ClusterId| *cluster == own || live.contains(*cluster);
        Configuration { live: self.configuration.live.iter().filter(still).collect(), ..self.configuration }
    }
}

impl Site {
    /// Carries out an operator's decision, or begins to; the era it leads to is reported as a [`Notice`].
    ///
    /// # Errors
    /// Why not; nothing has changed.
    pub fn command(&mut self, command: Command, out: &mut impl Effects) -> Result<(), Refused> {
        if !self.role.leads {
            return Err(Refused::NotDelegate);
        }
        self.check_witnessed(command)?;
        if let Some(lost) = command.lost()
            && (self.is_renewing() || self.has_lost_certifier(lost))
        {
            return self.take_over(self.without(lost)?, command, out);
        }
        self.check_certifies()?;
        if command == Command::Renew {
            return self.renew(out);
        }
        let next = self.changed(command)?;
        self.propose_configuration(next, out);
        Ok(())
    }

    /// Whether this cluster certifies and waits for promises: it may have to continue without some of those that owe them.
    fn is_renewing(&self) -> bool {
        self.takeover.is_some() && self.configuration().certifier == self.cluster()
    }

    fn has_lost_certifier(&self, lost: ClusterSet) -> bool {
        let certifier = self.configuration().certifier;
        lost.contains(certifier) && certifier != self.cluster()
    }

    fn check_certifies(&self) -> Result<(), Refused> {
        match &self.certifying {
            Some(certifying) if certifying.handed_over => Err(Refused::UnderWay),
            Some(_) => Ok(()),
            None if self.is_renewing() => Err(Refused::UnderWay),
            None => Err(Refused::NotCertifier(self.configuration().certifier)),
        }
    }

    /// The certifier takes over from itself, with nobody lost.
    fn renew(&mut self, out: &mut impl Effects) -> Result<(), Refused> {
        self.take_over(self.configuration().live, Command::Renew, out)?;
        let certifying = self.certifying.as_mut().expect("only a certifier renews");
        certifying.handed_over = true; // what stands behind the promise in the log is void
        Ok(())
    }

    /// What a certifier makes of a configuration.
    fn changed(&mut self, command: Command) -> Result<Configuration, Refused> {
        let mut next = self.configuration();
        let certifier = next.certifier;
        next.era = match command.lost() {
            Some(_) if self.settings.witnessed => self.era_of_takeover(command),
            _ => self.promised.next(self.cluster()),
        };
        match command {
            Command::DeclareLost(lost) | Command::Unwitnessed(lost) => next.live = self.without(lost)?,
            Command::Granted(declared) => next.live = self.without(declared.lost)?,
            Command::Renew => {}
            Command::Admit(cluster) => next.live = self.with(cluster)?,
            Command::Migrate(cluster) if cluster == certifier => return Err(Refused::Already),
            Command::Migrate(cluster) if !next.live.contains(cluster) => {
                return Err(Refused::NotLiving(cluster));
            }
            Command::Migrate(cluster) => next.certifier = cluster,
        }
        Ok(next)
    }

    /// Whether the witness has a say, and has said it.
    fn check_witnessed(&self, command: Command) -> Result<(), Refused> {
        match (self.settings.witnessed, command) {
            (true, Command::DeclareLost(_)) => Err(Refused::NotGranted),
            (false, Command::Granted(_) | Command::Unwitnessed(_) | Command::Renew) => {
                Err(Refused::NoWitness)
            }
            (true, Command::Granted(declared))
                if declared.takeovers != self.era().takeovers || declared.by != self.cluster() =>
            {
                Err(Refused::GrantedOtherwise)
            }
            _ => Ok(()),
        }
    }

    /// Above every era that this site has heard of; but what was granted, and a renewal, lead from the own count of takeovers to the next one, whatever others say of themselves.
    fn era_of_takeover(&self, command: Command) -> Era {
        let heard = self.statuses().map(|status| status.promised);
        let mut highest = heard.fold(self.promised, |highest, era| Era {
            takeovers: highest.takeovers.max(era.takeovers),
            number: highest.number.max(era.number),
            ..highest
        });
        if matches!(command, Command::Granted(_) | Command::Renew) {
            highest.takeovers = self.era().takeovers;
        }
        highest.taken_over(self.cluster())
    }

    /// Whether a promise of this era counts. Where it was proposed under a witness, a cluster promises each count of takeovers to one cluster alone, and none that it has come to
    /// already: so two histories that both need its word do not both come to that count; and what was granted at a count that has passed is void.
    pub(super) fn may_promise(&self, era: Era, witnessed: bool) -> bool {
        let (own, promised) = (self.era(), self.promised);
        let is_free =
            era.takeovers > own.takeovers && (era.takeovers > promised.takeovers || era.by == promised.by);
        era >= promised && era > own && (is_free || !witnessed)
    }

    fn without(&self, lost: ClusterSet) -> Result<ClusterSet, Refused> {
        let live = self.configuration().live;
        if lost.contains(self.cluster()) {
            return Err(Refused::Own);
        }
        let left = lost.iter().fold(live, ClusterSet::without);
        if left == live { Err(Refused::Already) } else { Ok(left) }
    }

    /// What was heard of a cluster that does not live may be from before it lost its disks. So the first time it is to be admitted, that is
    /// forgotten, and only what has come since counts.
    fn with(&mut self, cluster: ClusterId) -> Result<ClusterSet, Refused> {
        let live = self.configuration().live;
        if live.contains(cluster) {
            return Err(Refused::Already);
        }
        if !self.settings.clusters().contains(cluster) {
            return Err(Refused::NotLiving(cluster));
        }
        if !self.on_probation.contains(cluster) {
            self.on_probation = self.on_probation.with(cluster);
            self.peers.remove(&cluster);
        }
        let versions = self.delivered.0.saturating_sub(self.agreed(cluster).0);
        // Until its own log says that it is not live, it would take itself for live, and continue without the others
        // if it received word that they are lost: without all that they answered meanwhile.
        let knows =
            self.peers.get(&cluster).is_some_and(|status| status.era() == self.era() && status.is_whole);
        // Once it lives it must get the rest as a stream: what it takes over from others is nothing that it could bring back.
        let oldest = self.recent.front().map_or(self.delivered.next(), |entry| entry.version);
        let is_kept = self.agreed(cluster).next() >= oldest;
        if !knows || !is_kept || versions > self.settings.unstable_versions_max / 2 {
            return Err(Refused::Behind { cluster, versions });
        }
        Ok(live.with(cluster))
    }

    /// Begins to take over, from itself if it is renewed, with those that are to live.
    fn take_over(
        &mut self,
        live: ClusterSet,
        command: Command,
        out: &mut impl Effects,
    ) -> Result<(), Refused> {
        if !self.configuration().live.contains(self.cluster()) {
            return Err(Refused::NotLiving(self.cluster()));
        }
        let (era, certifier) = (self.era_of_takeover(command), self.cluster());
        if !self.may_promise(era, self.settings.witnessed) {
            let to = self.promised.by;
            return Err(if to == certifier { Refused::UnderWay } else { Refused::Promised(to) });
        }
        self.propose_fence(Configuration { era, certifier, live }, out);
        Ok(())
    }

    fn propose_fence(&self, configuration: Configuration, out: &mut impl Effects) {
        out.propose(match self.settings.witnessed {
            true => LogEntry::WitnessedFence(configuration),
            false => LogEntry::Fence(configuration),
        });
    }

    /// Asks the survivors, takes what they have, and begins the era when all have promised and nothing of the earlier ones is missing.
    pub(super) fn go_on_with_takeover(&mut self, out: &mut impl Effects) {
        let (delivered, received, own) = (self.delivered, self.received, self.cluster());
        let live = self.configuration().live;
        let Some(takeover) =
            self.takeover.as_mut().filter(|takeover| takeover.configuration.era == self.promised)
        else {
            return;
        };
        if !self.role.leads || takeover.proposed {
            return;
        }
        let configuration = takeover.leads_to(own, live);
        let survivors = configuration.live.without(own);
        let is_missing = |cluster| takeover.promised.get(&cluster).is_none_or(|theirs| *theirs > received);
        let missing: Vec<ClusterId> = survivors.iter().filter(|&cluster| is_missing(cluster)).collect();
        if missing.is_empty() && received == delivered {
            takeover.proposed = true;
            let body = Body::Configure(configuration);
            let entry = Entry { version: delivered.next(), era: self.era(), body };
            (self.received, self.received_era) = (entry.version, configuration.era);
            out.propose(LogEntry::Stream { era: configuration.era, entry: Arc::new(entry) });
        } else if std::mem::take(&mut takeover.ask) {
            for status in missing.iter().filter_map(|cluster| self.peers.get(cluster)) {
                out.send(status.site, Message::Promise { configuration, delivered: received });
            }
        }
    }

    /// A cluster is about to begin an era, and asks for the promise: it goes to the log first.
    pub(super) fn asked_to_promise(
        &mut self,
        from: SiteId,
        configuration: Configuration,
        delivered: Version,
        out: &mut impl Effects,
    ) {
        if !self.role.leads || configuration.era < self.promised || self.era() >= configuration.era {
            return;
        }
        if configuration.era > self.promised {
            if self.may_promise(configuration.era, self.settings.witnessed) {
                self.propose_fence(configuration, out);
            }
            return; // it asks again
        }
        let entries = self.in_one_message(self.recent.iter().filter(|entry| entry.version > delivered));
        let reply = Message::Promised { era: configuration.era, delivered: self.delivered, entries };
        out.send(from, reply);
    }

    pub(super) fn promised_by(
        &mut self,
        from: SiteId,
        era: Era,
        delivered: Version,
        entries: &[Arc<Entry>],
        out: &mut impl Effects,
    ) {
        let leads = self.role.leads;
        let Some(takeover) =
            self.takeover.as_mut().filter(|takeover| leads && takeover.configuration.era == era)
        else {
            return;
        };
        if takeover.proposed || self.promised != era {
            return;
        }
        takeover.promised.insert(from.cluster, delivered);
        takeover.ask = true;
        self.streamed(era, entries, out);
    }

    /// The others continued without this cluster: what it alone has is discarded, unless any of it was answered.
    pub(super) fn rewound(&mut self, from: SiteId, era: Era, keep: Version, out: &mut impl Effects) {
        if !self.role.leads || era <= self.promised {
            return;
        }
        if self.agrees_beyond(from.cluster, keep) {
            return; // asked for by what this cluster said before it gave them up
        }
        if keep < self.stable {
            out.notice(Notice::Split(from.cluster));
            return;
        }
        out.propose(LogEntry::Discard { era, keep });
    }
}
