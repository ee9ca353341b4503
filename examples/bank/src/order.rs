//! What one can type.

use pares_wice::SiteId;

/// All of it, for `--help` and `?`.
pub const ORDERS: &str = "\
k 0.1   kill -9 site 1 of cluster 0          l 1   declare cluster 1 lost: the others go on without it
c       kill the site that certifies         a 1   admit cluster 1 again, when it has caught up
K 1     kill all of cluster 1                m 1   move the certifier to cluster 1
u       start all that is down (u 0.1: one)  x     cut the link between the clusters; again: heal it
q       close the bank, and hold every slip against the books";

/// An order from the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Kill a site.
    Kill(SiteId),
    /// Kill the site that certifies.
    KillCertifier,
    /// Kill all sites of a cluster.
    KillCluster(u8),
    /// Start a site, or all that are down.
    Start(Option<SiteId>),
    /// Declare a cluster lost.
    Lost(u8),
    /// Let a cluster participate again.
    Admit(u8),
    /// Certify in that cluster from now on.
    Move(u8),
    /// Cut the link, or heal it.
    Link,
    /// Say what can be typed.
    Help,
    /// End.
    Quit,
}

/// Reads an order; or says what is wrong with it.
pub fn parse(text: &str, sites: &[SiteId]) -> Result<Order, String> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let cluster = |text: &str| match text.parse() {
        Ok(cluster) if sites.iter().any(|site| site.cluster.0 == cluster) => Ok(cluster),
        _ => Err(format!("there is no cluster {text}")),
    };
    let site = |text: &str| {
        let known = sites.iter().find(|site| format!("{}.{}", site.cluster.0, site.number) == text);
        known.copied().ok_or_else(|| format!("there is no site {text}"))
    };
    match words.as_slice() {
        ["k", name] => site(name).map(Order::Kill),
        ["c"] => Ok(Order::KillCertifier),
        ["K", name] => cluster(name).map(Order::KillCluster),
        ["u"] => Ok(Order::Start(None)),
        ["u", name] => site(name).map(|site| Order::Start(Some(site))),
        ["l", name] => cluster(name).map(Order::Lost),
        ["a", name] => cluster(name).map(Order::Admit),
        ["m", name] => cluster(name).map(Order::Move),
        ["x"] => Ok(Order::Link),
        ["q"] => Ok(Order::Quit),
        ["?" | "h" | "help"] => Ok(Order::Help),
        _ => Err(format!("{text:?}: type ? to see what there is")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_name_sites_and_clusters_that_exist() {
        let sites = [SiteId::new(0, 0), SiteId::new(0, 1), SiteId::new(1, 0)];
        assert_eq!(parse("k 0.1", &sites), Ok(Order::Kill(sites[1])));
        assert_eq!(parse(" K  1 ", &sites), Ok(Order::KillCluster(1)));
        assert_eq!(parse("u", &sites), Ok(Order::Start(None)));
        for wrong in ["k 0.2", "K 2", "k", "l x", "kill everything", "u 7"] {
            assert!(parse(wrong, &sites).is_err(), "{wrong}");
        }
    }
}
