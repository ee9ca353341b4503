//! When a site without a past gets a place. The rules alone: what was heard goes in, a decision comes out.
//!
//! Of a cluster whose sites are all without a past, the one of the lowest number decides for all: so there is one list of members, and a
//! site that has missed it receives it from any that has it. The list names lives of disks: one that loses its disk in between is not in it, and joins.
//!
//! To found a database all sites must be there and say that they are new: then none can have a past. A cluster returns only if
//! the delegate of every cluster that lives says that it continued without it, and still does after some time: a delegate that does not
//! know of its successor has given up by then.

use std::collections::BTreeMap;

use pares_cluster::{Incarnation, MemberId, Members};
use pares_wice::{ClusterId, Configuration, Era, SiteId};

use super::standing::{Form, Member, Role, Standing, WORD_TICKS, list_of};
use crate::setup::Setup;

/// Ticks that the others must have continued without a cluster, by what arrives, before it returns: five times as long as a delegate that is alone
/// keeps its office.
const RETURN_TICKS: u32 = 100;
const _: () = assert!(2 * WORD_TICKS < RETURN_TICKS as u64, "delegates speak again before a cluster returns");

/// What becomes of a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Its cluster's log begins.
    Form(Form),
    /// It is filled by its cluster, and joins it.
    Join,
}

/// A site without a past, and what it has heard.
#[derive(Debug)]
pub(crate) struct Forming {
    own: MemberId,
    cluster: ClusterId,
    is_new: bool,
    others: Vec<SiteId>,
    /// Which sites it knows of: others count for the founding only if they know of the same.
    list: u32,
    /// Whether one of them is of the cluster that certifies at first.
    has_certifier: bool,
    heard: BTreeMap<SiteId, Standing>,
    /// For how long it could return, and to which era.
    returns: Option<(Era, u32)>,
}

impl Forming {
    /// Nothing has arrived yet.
    pub(crate) fn new(setup: &Setup, incarnation: Incarnation, is_new: bool) -> Self {
        let (own, sites) = (setup.settings.site, &setup.settings.sites);
        Self {
            own: MemberId { number: own.number, incarnation },
            cluster: own.cluster,
            is_new,
            others: sites.iter().copied().filter(|site| *site != own).collect(),
            list: list_of(sites),
            has_certifier: sites.iter().any(|site| site.cluster == setup.certifier),
            heard: BTreeMap::new(),
            returns: None,
        }
    }

    pub(crate) fn role(&self) -> Role {
        if self.is_new { Role::New } else { Role::Empty }
    }

    /// Another site says what it is.
    pub(crate) fn heard(&mut self, from: SiteId, standing: Standing) {
        self.heard.insert(from, standing);
    }

    /// A tick has passed.
    pub(crate) fn tick(&mut self) {
        self.returns = self.went_on_without().map(|era| match self.returns {
            Some((before, ticks)) if before == era => (era, ticks.saturating_add(1)),
            _ => (era, 0),
        });
    }

    /// What is to be done now.
    pub(crate) fn decision(&self) -> Option<Decision> {
        if self.mates().any(|site| matches!(self.role_of(site), Some(Role::Member(_)))) {
            return Some(Decision::Join);
        }
        let decides = self.mates().all(|site| site.number > self.own.number);
        let members = self.members().filter(|_| decides)?;
        assert!(members.voters.contains(&self.own), "who decides how a log begins is among its members");
        if self.is_new && self.has_certifier && self.others.iter().all(|site| self.begins(*site)) {
            return Some(Decision::Form(Form { members, returns_to: None }));
        }
        let (era, _) = self.returns.filter(|(_, ticks)| *ticks >= RETURN_TICKS)?;
        Some(Decision::Form(Form { members, returns_to: Some(era) }))
    }

    /// Whether a list of members that another site has sent is one that this site is in.
    pub(crate) fn is_in(&self, from: SiteId, form: &Form) -> bool {
        from.cluster == self.cluster && form.members.voters.contains(&self.own)
    }

    fn mates(&self) -> impl Iterator<Item = SiteId> {
        self.others.iter().copied().filter(|site| site.cluster == self.cluster)
    }

    fn role_of(&self, site: SiteId) -> Option<Role> {
        self.heard.get(&site).map(|standing| standing.role)
    }

    /// The members of a log of this cluster's, if all of them are without a past.
    fn members(&self) -> Option<Members> {
        let mates = self.mates().map(|site| {
            let standing = self.heard.get(&site)?;
            // With two lists there could be two logs.
            let is_blank = matches!(standing.role, Role::New | Role::Empty) && standing.list == self.list;
            is_blank.then_some(MemberId { number: site.number, incarnation: standing.incarnation })
        });
        let voters: Option<_> = mates.chain([Some(self.own)]).collect();
        let members = Members { voters: voters?, ..Members::default() };
        assert_eq!(members.voters.len(), 1 + self.mates().count(), "each site of a cluster is one member");
        Some(members)
    }

    /// Whether another site knows of the same sites, and is new, or of a cluster that has begun a moment ago and counts on this one.
    fn begins(&self, site: SiteId) -> bool {
        if self.heard.get(&site).is_none_or(|standing| standing.list != self.list) {
            return false;
        }
        match self.role_of(site) {
            Some(Role::New) => true,
            Some(Role::Member(Member { configuration, is_fresh, .. })) => {
                let counts_on_us = configuration.live.contains(self.cluster);
                site.cluster != self.cluster
                    && is_fresh
                    && configuration.era == Era::default()
                    && counts_on_us
            }
            _ => false,
        }
    }

    /// The era in which all that live have continued without this cluster, as their delegates say.
    fn went_on_without(&self) -> Option<Era> {
        let newest = self.newest()?;
        let is_said = |cluster| {
            self.heard.iter().any(|(site, standing)| {
                let Role::Member(member) = standing.role else { return false };
                site.cluster == cluster && member.leads && member.configuration == newest
            })
        };
        (!newest.live.contains(self.cluster) && newest.live.iter().all(is_said)).then_some(newest.era)
    }

    fn newest(&self) -> Option<Configuration> {
        let configurations = self.heard.values().filter_map(|standing| match standing.role {
            Role::Member(member) => Some(member.configuration),
            _ => None,
        });
        configurations.max_by_key(|configuration| configuration.era)
    }

    /// What it waits for, for people.
    pub(crate) fn waits_for(&self) -> String {
        let named = |is: &dyn Fn(&SiteId) -> bool| {
            let sites = self.others.iter().filter(|site| is(site));
            let names: Vec<String> =
                sites.map(|site| format!("{}.{}", site.cluster.0, site.number)).collect();
            names.join(", ")
        };
        let silent = named(&|site| !self.heard.contains_key(site));
        let other_list = named(&|site| self.heard.get(site).is_some_and(|said| said.list != self.list));
        let what = if self.is_new { "is new" } else { "is new: its disk is empty" };
        let counted = self.newest().is_some_and(|newest| newest.live.contains(self.cluster));
        let cluster = self.cluster.0;
        let rest = if self.members().is_some() && counted && !self.is_new {
            format!(
                "all sites of cluster {cluster} have lost their disks, but the other clusters still wait for it: declare it lost (`pares site lost {cluster} --yes`)"
            )
        } else if !silent.is_empty() {
            format!("waiting for a message from {silent}")
        } else if !other_list.is_empty() {
            format!("the sites.toml of {other_list} lists other sites than this site's: make them all equal")
        } else if self.is_new && !self.has_certifier {
            "sites.toml names an empty cluster as `certifier`".to_owned()
        } else {
            "waiting for its cluster to admit it".to_owned()
        };
        format!("{what}; {rest}")
    }
}

#[cfg(test)]
mod tests {
    use pares_cluster::ReplicaConfig;
    use pares_wice::{ClusterSet, Settings, Version};

    use super::*;
    use crate::place::standing::Numbers;
    use crate::setup::Bounds;

    const SITES: [SiteId; 4] = [SiteId::new(0, 0), SiteId::new(0, 1), SiteId::new(1, 0), SiteId::new(1, 1)];

    fn forming(own: usize, is_new: bool) -> Forming {
        let setup = Setup {
            identity: "test".into(),
            settings: Settings::new(SITES[own], SITES.to_vec()),
            log: ReplicaConfig::new(0, 2),
            certifier: ClusterId(0),
            begins: Version(0),
            bounds: Bounds::default(),
        };
        Forming::new(&setup, Incarnation(own as u64), is_new)
    }

    fn says(forming: &mut Forming, site: usize, role: Role) {
        said(forming, site, list_of(&SITES), role);
    }

    fn said(forming: &mut Forming, site: usize, list: u32, role: Role) {
        let incarnation = Incarnation(site as u64);
        forming.heard(SITES[site], Standing { asks: false, incarnation, list, speaks: 4, role });
    }

    fn member(live: u64, number: u32, stable: u64) -> Role {
        let era = Era { takeovers: 0, number, by: ClusterId(1) };
        let configuration = Configuration { era, certifier: ClusterId(1), live: ClusterSet(live) };
        let (is_fresh, term, voters) = (stable == 0, 1, Numbers::default());
        Role::Member(Member { configuration, is_fresh, term, leads: true, gives: true, knows: true, voters })
    }

    fn formed(returns_to: Option<Era>) -> Option<Decision> {
        let id = |number: u8| MemberId { number, incarnation: Incarnation(number.into()) };
        let members = Members { voters: [id(0), id(1)].into(), ..Members::default() };
        Some(Decision::Form(Form { members, returns_to }))
    }

    #[test]
    fn a_database_is_founded_when_everybody_is_there_and_new() {
        let mut first = forming(0, true);
        for site in [1, 2, 3] {
            assert_eq!(first.decision(), None, "{}", first.waits_for());
            says(&mut first, site, Role::New);
        }
        assert_eq!(first.decision(), formed(None));
        said(&mut first, 3, list_of(&SITES[..3]), Role::New);
        assert_eq!(first.decision(), None);
        assert!(
            first.waits_for().contains("the sites.toml of 1.1 lists other sites"),
            "{}",
            first.waits_for()
        );
        says(&mut first, 3, Role::New);
        let mut second = forming(1, true);
        [0, 2, 3].into_iter().for_each(|site| says(&mut second, site, Role::New));
        assert_eq!(second.decision(), None, "one decides for all");
        // The other cluster has begun a moment before.
        says(
            &mut first,
            2,
            Role::Member(Member {
                configuration: Configuration::first(ClusterSet(3), ClusterId(0)),
                ..unwrap(member(3, 0, 0))
            }),
        );
        assert_eq!(first.decision(), formed(None));
    }

    fn unwrap(role: Role) -> Member {
        let Role::Member(member) = role else { unreachable!() };
        member
    }

    #[test]
    fn pristine_directory_copies_found_nothing_beside_past() {
        let mut first = forming(0, true);
        says(&mut first, 1, Role::New);
        says(&mut first, 2, member(3, 0, 7));
        says(&mut first, 3, member(3, 0, 7));
        assert_eq!(first.decision(), None);
        assert!(!first.waits_for().is_empty());
        says(&mut first, 1, Role::Empty);
        [2, 3].into_iter().for_each(|site| says(&mut first, site, Role::New));
        assert_eq!(first.decision(), None, "a disk was lost before the beginning: somebody must say so");
    }

    #[test]
    fn a_lost_disk_joins_those_who_have_theirs() {
        let mut lost = forming(0, false);
        says(&mut lost, 2, member(3, 0, 7));
        assert_eq!(lost.decision(), None);
        says(&mut lost, 1, member(3, 0, 7));
        assert_eq!(lost.decision(), Some(Decision::Join));
    }

    #[test]
    fn cluster_returns_after_others_continued_without_it() {
        let mut first = forming(0, false);
        says(&mut first, 1, Role::Empty);
        says(&mut first, 2, member(3, 0, 7));
        (0..=RETURN_TICKS).for_each(|_| first.tick());
        assert_eq!(first.decision(), None, "it counts among the living");
        assert!(first.waits_for().contains("pares site lost 0"), "{}", first.waits_for());
        says(&mut first, 2, member(2, 1, 7));
        first.tick();
        assert_eq!(first.decision(), None, "a delegate may not know of its successor");
        (0..=RETURN_TICKS).for_each(|_| first.tick());
        assert_eq!(first.decision(), formed(Some(Era { takeovers: 0, number: 1, by: ClusterId(1) })));
        said(&mut first, 1, list_of(&SITES[1..]), Role::Empty);
        assert_eq!(first.decision(), None, "two lists could begin two logs");
        says(&mut first, 1, Role::Empty);
        says(&mut first, 3, member(3, 2, 9));
        first.tick();
        assert_eq!(first.decision(), None, "it was admitted again since");
    }
}
