//! Replication between clusters under seeded faults: the promises hold, and the checkers see when they do not.

use pares_sim::wice::{Broken, Defect, Plan, Summary, run};

/// Seeds of each plan in the gate and in `cargo xtask test --all` (`PARES_SEEDS=all`); `PARES_SIM_SEEDS` asks for more.
fn seeds() -> u64 {
    let asked = std::env::var("PARES_SIM_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    let runs_all = std::env::var("PARES_SEEDS").is_ok_and(|which| which == "all");
    asked.unwrap_or(if runs_all { 25 } else { 8 })
}

/// Runs the seeds of a plan; what all of them did.
fn sum_of(plan: Plan) -> Summary {
    let mut sum = Summary::default();
    for seed in 0..seeds() {
        let run = run(plan, seed).unwrap_or_else(|failure| panic!("{}: {failure:#?}", plan.name));
        sum = sum.and(&run);
    }
    sum
}

fn all_hold(plan: Plan) {
    let sum = sum_of(plan);
    assert!(sum.committed > 20 * seeds(), "{sum:?}");
    let alone = plan.fault_every_us == 0 || plan.sites < 3;
    assert!(alone || (sum.disks > seeds() / 10 && sum.adopted > 0), "{sum:?}");
}

#[test]
fn backup_has_every_version_once_and_restores_exactly() {
    let sum = sum_of(Plan::KEPT);
    assert!(sum.kept > 20 * seeds() && sum.copies > seeds(), "{sum:?}");
}

#[test]
fn nothing_fails_and_everything_commits() {
    all_hold(Plan::CALM);
}

#[test]
fn two_clusters_survive_whatever_fails() {
    all_hold(Plan::TWO);
}

#[test]
fn three_clusters_survive_whatever_fails() {
    all_hold(Plan::THREE);
}

#[test]
fn clusters_of_one_site_survive_whatever_fails() {
    all_hold(Plan::LONE);
}

#[test]
fn sites_and_clusters_come_and_go_whatever_fails() {
    for seed in 0..seeds() {
        let summary = run(Plan::CHANGED, seed).unwrap_or_else(|failure| panic!("{failure:#?}"));
        assert!(summary.changes >= 4, "seed {seed}: {summary:?}");
    }
}

#[test]
fn a_cluster_goes_and_answers_nobody_any_more_whatever_fails() {
    let sum = sum_of(Plan::GONE);
    // No run makes more.
    assert_eq!(sum.changes, 3 * seeds(), "{sum:?}");
    assert!(sum.committed > 20 * seeds(), "{sum:?}");
}

/// Requests that decide by what they read: by two items of which they write one, and by a range to which they add.
#[test]
fn serialisable_sites_show_no_skew_or_phantoms() {
    all_hold(Plan::SERIALISABLE);
}

#[test]
fn a_broker_keeps_its_promises_whatever_fails() {
    let sum = sum_of(Plan::BROKER);
    assert!(sum.committed > 50 * seeds() && sum.faults > 10 * seeds(), "{sum:?}");
    assert!(sum.moments > seeds(), "{sum:?}");
}

#[test]
fn sites_of_two_builds_survive_whatever_fails() {
    all_hold(Plan::MIXED);
}

/// Each side of a cut declares the other lost, and tells its cluster what the witness granted at once or much later; the witness is down, dies before it answers and loses its
/// disk now and then, and each side renews.
fn each_side_declares_the_other_lost(plan: Plan) {
    let sum = sum_of(plan);
    assert!(sum.committed > 20 * seeds() && sum.refused > seeds(), "{sum:?}");
    // What a cut and a lost disk leave of declarations: most are refused, or come to a count that was promised to another.
    assert!(sum.granted > seeds() / 4, "{sum:?}");
    assert!(sum.renewed > seeds() / 5, "{sum:?}");
}

#[test]
fn with_a_witness_both_sides_may_declare_the_other_lost() {
    each_side_declares_the_other_lost(Plan::WITNESSED);
}

#[test]
fn three_clusters_with_witness_leave_one_side_running() {
    each_side_declares_the_other_lost(Plan::JUDGED);
}

#[test]
fn a_seed_does_the_same_again() {
    let twice = [run(Plan::TWO, 7), run(Plan::TWO, 7)];
    assert_eq!(twice[0], twice[1]);
}

/// Seeds that once broke a promise.
#[test]
fn seeds_that_once_failed_hold() {
    // A request forwarded to the certifier is answered there, in its era; the site that passes the answer on may be an era behind, and
    // counts clusters as live that were lost meanwhile: it was judged by that site's era. A cluster came back with empty disks while
    // others had not heard that it was lost: they heard nothing of what it said from then on. A site that lacked what its cluster had
    // let go of began again by itself, and had forgotten what it had submitted: executed again there, that was taken for aborted, and
    // was not.
    for seed in [1_795_352_634, 1_795_357_081, 493] {
        run(Plan::THREE, seed).unwrap_or_else(|failure| panic!("{failure:#?}"));
    }
}

/// The site that is alone with what it has applied ends, and no other; filled again, it has what all have.
#[test]
fn a_store_that_errs_is_found_by_the_sites_themselves() {
    let defect = Some(Defect::StoresWrongValues);
    for seed in 0..seeds().min(25) {
        let plan = Plan { clusters: 3, faulty_us: 10_000_000, defect, ..Plan::CALM };
        let summary = run(plan, seed).unwrap_or_else(|failure| panic!("{failure:#?}"));
        assert_eq!(summary.alone, 1, "seed {seed}: {summary:?}");
    }
}

/// Each defect, under the plan that shows it, breaks one promise, or whichever of two comes first, and that is found.
#[test]
fn every_defect_is_found_by_the_promise_that_it_breaks() {
    let defects = [
        (Defect::VouchesForLaterEra, Plan::THREE, vec![Broken::Unsettled]),
        (Defect::AcknowledgesTooEarly, Plan::THREE, vec![Broken::Lost]),
        (Defect::StreamsTooEarly, Plan::THREE, vec![Broken::Lost, Broken::Forked]),
        (Defect::KeepsItsOwn, Plan::THREE, vec![Broken::Unsettled]),
        (Defect::StoresTooEarly, Plan::THREE, vec![Broken::Lost]),
        (Defect::ClaimsLaterSnapshot, Plan::THREE, vec![Broken::Money]),
        (Defect::DismissesNobody, Plan::CHANGED, vec![Broken::Unsettled]),
        (Defect::ForgetsSessions, Plan::THREE, vec![Broken::WentBack]),
        (Defect::ReadsLatestAtOnce, Plan::THREE, vec![Broken::WentBack]),
        (Defect::SpeaksTooNew, Plan::MIXED, vec![Broken::Misspoken]),
        // As it comes: a site that hears the other, or the checker of stores or answers.
        (Defect::WitnessForgets, Plan::WITNESSED, vec![Broken::Split, Broken::Forked, Broken::Lost]),
        (Defect::GoesOnRefused, Plan::JUDGED, vec![Broken::Split, Broken::Forked, Broken::Lost]),
        (Defect::CountsOnlyNamed, Plan::GONE, vec![Broken::Lost, Broken::Forked]),
        (Defect::CertifiesNoReads, Plan::SERIALISABLE, vec![Broken::Skewed]),
        (Defect::KeepsTriggers, Plan::BROKER, vec![Broken::Money]),
        // As it comes: what two users ask for under one name, a reply that is another's and that nobody waits for, or two commands of one number in the log.
        (
            Defect::ForgetsFronts,
            Plan::BROKER,
            vec![Broken::Disordered, Broken::Twice, Broken::Lost, Broken::Unsettled, Broken::Money],
        ),
        (Defect::ForgetsOrder, Plan::BROKER, vec![Broken::Disordered]),
        (Defect::ForgetsHits, Plan::BROKER, vec![Broken::Unsettled]),
        (Defect::RenamesHits, Plan::BROKER, vec![Broken::Twice]),
        (Defect::GivesOtherVersions, Plan::KEPT, vec![Broken::Unkept]),
        // Two disks disagree, or one site finds that its own has forgotten.
        (Defect::SyncsNothing, Plan::THREE, vec![Broken::Ended, Broken::Forked]),
    ];
    for (defect, plan, broken) in defects {
        let found = (0..150).find_map(|seed| run(Plan { defect: Some(defect), ..plan }, seed).err());
        let is_found = found.as_ref().is_some_and(|failure| broken.contains(&failure.broken));
        assert!(is_found, "{defect:?}: {found:#?}");
    }
}
