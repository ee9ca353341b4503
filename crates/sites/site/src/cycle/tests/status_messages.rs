//! What a site that cannot continue says of itself.

use pares_cluster::Incarnation;
use pares_wice::{ClusterId, ClusterSet, Configuration, Era, SiteId};

use crate::place::Part;
use crate::place::standing::{Member, Numbers, Role, Standing, Word};
use crate::testing::Machine;

/// A site of cluster 1 that knows of an era in which those live.
fn knows_of(number: u32, live: u64) -> Word {
    let era = Era { takeovers: 0, number, by: ClusterId(1) };
    let configuration = Configuration { era, certifier: ClusterId(1), live: ClusterSet(live) };
    let (is_fresh, voters) = (false, Numbers::default());
    let role = Role::Member(Member {
        configuration,
        is_fresh,
        term: 1,
        leads: true,
        gives: true,
        knows: true,
        voters,
    });
    Word::Standing(Standing { asks: false, incarnation: Incarnation(1), list: 0, speaks: 5, role })
}

#[test]
fn declared_lost_clusters_site_gives_no_more_advice() {
    let mut cycle = Machine::default().cycle(&[3, 1]);
    (cycle.place.part, cycle.unled_ticks) = (Part::Joins, u64::MAX / 2);
    let mut says = |word: Option<Word>| {
        word.into_iter().for_each(|word| cycle.word(SiteId::new(1, 0), word).unwrap());
        cycle.apart().unwrap()
    };
    let advises = "`pares site lost 0 --yes`";
    assert!(says(None).contains(advises));
    assert!(says(Some(knows_of(1, 3))).contains(advises), "it lives there");
    let told = says(Some(knows_of(2, 2)));
    assert!(!told.contains("pares site lost") && told.contains("continued without it"), "{told}");
    assert!(!says(Some(knows_of(1, 3))).contains(advises), "an older word changes nothing");
    assert!(says(Some(knows_of(3, 3))).contains(advises), "it was admitted, and is needed again");
}
