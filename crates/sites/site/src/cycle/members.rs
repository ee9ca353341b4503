//! Sites that leave their cluster, and lists of sites that differ meanwhile.
//!
//! Who counts is what the cluster's log says, so taking a name out of `sites.toml` alone takes no vote away: the cluster would still wait for a site
//! that no operator starts any more. An operator has it removed, at the delegate, as an entry of the log: while it is there, or after no
//! `sites.toml` names it, since a named site is let in with an empty disk. The wrong one removed could cost the cluster its majority; so most of
//! those that are left must be there, with their items.

use std::collections::{BTreeMap, BTreeSet};

use pares_cluster::ClusterLog;
use pares_wice::{Configuration, SiteId};

use super::Cycle;
use super::admission::no;
use crate::application::Application;
use crate::place::standing::{Numbers, WORD_TICKS, list_of};
use crate::protocol::Code;
use crate::requests::Answer;
use crate::world::{Connections, World};

/// Ticks after which what a site said of its items is old.
const SAID_TICKS: u64 = 200;
const _: () = assert!(2 * WORD_TICKS <= SAID_TICKS, "what a site said is not old before it speaks again");

/// What other sites have said of themselves.
#[derive(Debug, Default)]
pub(super) struct Heard {
    /// Whose `sites.toml` names others than the one here.
    other_lists: BTreeSet<SiteId>,
    /// The versions that they speak.
    pub(super) spoken: BTreeMap<SiteId, u16>,
    /// Who has its items, and when that was said.
    pub(super) with_items: BTreeMap<SiteId, u64>,
    /// Whose votes count in this cluster, as its other sites have it.
    pub(super) counted: BTreeMap<u8, Numbers>,
    /// The configuration of the newest era that one of them knows.
    pub(super) newest: Option<Configuration>,
}

impl Heard {
    /// Another site knows that one.
    pub(super) fn configured(&mut self, known: Configuration) {
        if self.newest.is_none_or(|newest| known.era > newest.era) {
            self.newest = Some(known);
        }
    }
}

impl<W: World, A: Application> Cycle<W, A> {
    /// Takes a site's vote away. To be asked again until it is done: a step of the log is one change.
    pub(super) fn remove(&mut self, leaving: SiteId) -> Answer {
        let (own, role) = (self.site.id(), self.log.role());
        // A `sites.toml` that does not name the delegate any more leads to its mates.
        let may_claim = role.delegate == Some(leaving.number) && self.has_items(own);
        if leaving.cluster != own.cluster || !role.leads && !may_claim {
            return no(
                Code::Elsewhere,
                &format!("only the delegate of {} can remove its sites", leaving.cluster),
            );
        }
        if !self.log.members().all().any(|member| member.number == leaving.number) {
            return self.has_left(leaving.number);
        }
        if let Some(why) = self.is_named(leaving) {
            return no(Code::Impossible, &why);
        }
        if !self.can_spare(leaving) {
            let why = "a majority of the remaining sites must be up and complete: start them first";
            return no(Code::Impossible, why);
        }
        match (leaving == own, role.leads) {
            (true, _) => drop(self.log.resign()), // its successor removes it
            (false, true) => self.log.dismiss(leaving.number),
            (false, false) => self.log.claim(),
        }
        no(Code::Unknown, "its removal is in progress")
    }

    /// Why a site may not be removed while `sites.toml` has it as it has, if so. An empty disk in the place of one that is named is let in again; so only one may be
    /// removed that is there, with its items, or that nobody names any more.
    fn is_named(&self, leaving: SiteId) -> Option<String> {
        if self.sites.contains(&leaving) {
            let why = || {
                format!(
                    "sites.toml names {leaving}, which is down: start it and try again, or take it out of \
                     every sites.toml, restart the other sites one after the other, and try again"
                )
            };
            return (!self.has_items(leaving)).then(why);
        }
        let mates = self.others(true);
        let differs = mates.iter().find(|site| self.heard.other_lists.contains(site));
        let unheard = mates.iter().find(|site| !self.heard.counted.contains_key(&site.number));
        let differs = differs.map(|site| {
            format!("the sites.toml of {site} lists other sites than this site's: make them equal, restart it, and try again")
        });
        differs
            .or(unheard
                .map(|site| format!("{site} has not reported its sites.toml: start it, and try again")))
    }

    /// A site that has not read the removal counts on the vote of who has left. Were the delegate's disk lost before most have read it, the rest would wait for two of
    /// four.
    fn has_left(&self, number: u8) -> Answer {
        let own = self.site.id().number;
        let voters = self.voters();
        let counts_without = |other: &u8| {
            *other == own || self.heard.counted.get(other).is_some_and(|counted| !counted.contains(number))
        };
        match voters.iter().filter(counts_without).count() > voters.iter().count() / 2 {
            true => Answer { code: Code::Done, body: Vec::new() },
            false => no(Code::Unknown, "a majority has not applied its removal yet"),
        }
    }

    /// Whether most of the voters that would be left are there, with their items.
    fn can_spare(&self, leaving: SiteId) -> bool {
        let left: Vec<u8> = self.voters().iter().filter(|number| *number != leaving.number).collect();
        let there = left.iter().filter(|number| self.has_items(SiteId::new(leaving.cluster.0, **number)));
        there.count() > left.len() / 2
    }

    fn has_items(&self, site: SiteId) -> bool {
        match site == self.site.id() {
            true => !self.site.is_recalling(),
            false => self.heard.with_items.get(&site).is_some_and(|said| {
                assert!(*said <= self.ticks, "ticks are only counted up");
                self.ticks - said < SAID_TICKS
            }),
        }
    }

    /// Whether most sites of the cluster have their items.
    pub(super) fn count_with_items(&mut self) {
        let (cluster, voters) = (self.site.id().cluster.0, self.voters());
        let count = voters.iter().filter(|number| self.has_items(SiteId::new(cluster, *number))).count();
        let most_have = count > voters.iter().count() / 2;
        self.site.set_whole(most_have);
    }

    /// Another site has said which sites its `sites.toml` names.
    pub(super) fn heard_list(&mut self, from: SiteId, list: u32) {
        match list == list_of(&self.sites) {
            true => self.heard.other_lists.remove(&from),
            false => self.heard.other_lists.insert(from),
        };
    }

    /// The version that all sites understand which `sites.toml` names, as they have said; who has said nothing speaks the lowest. What a later version brings to logs
    /// that others read may be used from then on.
    pub(super) fn all_speak(&self) -> u16 {
        let said = self.others(false).into_iter();
        let said = said.map(|site| self.heard.spoken.get(&site).copied().unwrap_or(pares_link::UNDERSTANDS));
        said.fold(self.links.speaks(), u16::min)
    }

    /// Sites whose `sites.toml` names others than the one here, for people.
    pub(super) fn other_lists(&self) -> Vec<String> {
        self.heard.other_lists.iter().map(|site| format!("{}.{}", site.cluster.0, site.number)).collect()
    }

    /// Whose votes count in the cluster, as far as this site has read its log.
    pub(super) fn voters(&self) -> Numbers {
        self.log.members().voters.iter().map(|id| id.number).collect()
    }
}
