//! Who is refused by a site, and why.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::IpAddr;

use pares_wice::SiteId;

use crate::report::STRANGER;

/// Strangers of whom a report tells.
const STRANGERS_TOLD_MAX: usize = 16;
/// Refusals that are remembered.
const REFUSED_MAX: usize = 1_024;

/// A site that was refused, or a stranger at that address.
pub(crate) type Refused = Result<SiteId, IpAddr>;

/// Those who were refused since they last got in.
#[derive(Default)]
pub(crate) struct TurnedAway {
    all: BTreeMap<Refused, String>,
    new: Vec<String>,
}

impl TurnedAway {
    /// Each is told once for the same reason, as long as there are not too many of them.
    pub(crate) fn note(&mut self, who: Refused, why: String) {
        if self.all.get(&who) == Some(&why) {
            return;
        }
        if self.all.len() >= REFUSED_MAX {
            self.all.retain(|who, _| who.is_ok());
        }
        self.new.push(match &who {
            Ok(site) => told(site, &why),
            Err(address) => told(address, &why),
        });
        self.all.insert(who, why);
    }

    /// That site got in.
    pub(crate) fn got_in(&mut self, site: SiteId) {
        self.all.remove(&Ok(site));
    }

    /// Who is refused and why: sites first; of strangers no more than somebody would read.
    pub(crate) fn told(&self) -> Vec<String> {
        let sites = self.all.iter().filter_map(|(who, why)| Some(told(who.as_ref().ok()?, why)));
        let strangers = self
            .all
            .iter()
            .filter_map(|(who, why)| Some(told(&format!("{STRANGER}{}", who.as_ref().err()?), why)));
        sites.chain(strangers.take(STRANGERS_TOLD_MAX)).collect()
    }

    /// What happened since it was asked last.
    pub(crate) fn take_new(&mut self) -> impl Iterator<Item = String> {
        self.new.drain(..)
    }
}

fn told(who: &impl Display, why: &str) -> String {
    format!("{who} is refused: {why}")
}
