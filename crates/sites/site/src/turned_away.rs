//! Who is refused by a site, and why.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::net::IpAddr;
use std::time::Duration;

use pares_wice::SiteId;

use crate::report::STRANGER;

/// Strangers of whom a report tells.
const STRANGERS_TOLD_MAX: usize = 16;
/// Refusals that are remembered.
const REFUSED_MAX: usize = 1_024;

/// A refusal counts for so long. Who is still refused has tried again by then; one who took a site's name and is gone does not, and the site itself, which was connected all
/// the while, does not get in once more.
const KEPT: Duration = Duration::from_secs(60);

/// A site that was refused, or a stranger at that address.
pub(crate) type Refused = Result<SiteId, IpAddr>;

/// Those who were refused since they last got in.
#[derive(Default)]
pub(crate) struct RejectedConnections {
    /// Why, and when last.
    all: BTreeMap<Refused, (String, Duration)>,
    new: Vec<String>,
}

impl RejectedConnections {
    /// Each is reported once for the same reason, as long as there are not too many of them.
    pub(crate) fn note(&mut self, who: Refused, why: String, now: Duration) {
        if let Some((_, at)) = self.all.get_mut(&who).filter(|(before, _)| *before == why) {
            *at = now;
            return;
        }
        if self.all.len() >= REFUSED_MAX {
            self.all.retain(|who, _| who.is_ok());
        }
        self.new.push(match &who {
            Ok(site) => told(site, &why),
            Err(address) => told(address, &why),
        });
        self.all.insert(who, (why, now));
    }

    /// That site got in.
    pub(crate) fn got_in(&mut self, site: SiteId) {
        self.all.remove(&Ok(site));
    }

    /// Who is refused lately and why: sites first; of strangers no more than an operator would read.
    pub(crate) fn told(&self, now: Duration) -> Vec<String> {
        let lately = self.all.iter().filter(|(_, (_, at))| now < *at + KEPT);
        let sites = lately.clone().filter_map(|(who, (why, _))| Some(told(who.as_ref().ok()?, why)));
        let strangers = lately
            .filter_map(|(who, (why, _))| Some(told(&format!("{STRANGER}{}", who.as_ref().err()?), why)));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusal_repeats_until_old_or_reconnected() {
        let second = Duration::from_secs;
        let mut all = RejectedConnections::default();
        let (site, stranger) = (SiteId::new(1, 0), IpAddr::from([127, 0, 0, 1]));
        all.note(Ok(site), "another database".into(), second(0));
        all.note(Err(stranger), "no certificate".into(), second(30));
        all.note(Ok(site), "another database".into(), second(50));
        assert_eq!(all.take_new().count(), 2);
        assert_eq!(all.told(second(89)).len(), 2);
        let left = all.told(second(90));
        assert!(matches!(left.as_slice(), [told] if told.contains("another database")), "{left:?}");
        assert!(all.told(second(110)).is_empty(), "it has tried no more");
        all.note(Ok(site), "another list".into(), second(120));
        all.got_in(site);
        assert!(all.told(second(120)).is_empty());
        assert_eq!(all.take_new().count(), 1);
    }
}
