//! Where the rules go beyond paper 3, on a small scale.

use pares_tpcc::setting::MILLISECONDS;
use pares_tpcc::{DayAndNight, Protocol, ReadsOf, Release, Resubmit, RunResult, Setting, run};

fn wice() -> Setting {
    Setting { seconds: 40, warmup_seconds: 20, ..Setting::new(Protocol::Wice, 1_000, 1) }
}

fn outcome(setting: &Setting) -> RunResult {
    run(setting).unwrap_or_else(|violation| panic!("{violation}"))
}

/// Section 4.3: "one should be able to migrate the centralized sequencer to the currently most loaded cluster".
#[test]
fn the_certifier_follows_the_load_without_losing_anything() {
    let day = DayAndNight { turns_seconds: 10, night: 4, migrate: true };
    let moved = outcome(&Setting { day: Some(day), seconds: 70, ..wice() });
    let after = moved.after.unwrap();
    assert!(after[1].abort_percent < 1.0, "{after:?}");
    assert!(moved.pause_ms.unwrap() < 400.0, "{moved:?}");
    assert!(moved.longest_open_ms < 2_000.0, "{moved:?}");
    let stays = outcome(&Setting { day: Some(DayAndNight { migrate: false, ..day }), seconds: 70, ..wice() });
    assert!(stays.after.unwrap()[1].abort_percent > 3.0);
}

/// Section 4.3: "By taking advantage of such option one could thus completely mask the abort rate at secondary clusters".
#[test]
fn a_site_that_executes_again_hides_aborts() {
    let hidden = outcome(&Setting { resubmit: Resubmit::Site, ..wice() });
    assert!(hidden.sides[1].abort_percent > 3.0);
    assert!(hidden.sides.iter().all(|side| side.told_percent == 0.0));
}

#[test]
fn what_is_only_added_to_does_not_conflict() {
    let [put, added] =
        [false, true].map(|deltas| outcome(&Setting { deltas, ..wice() }).sides[1].payment_abort_percent);
    assert!(put > 8.0 && added < 0.5, "{put} {added}");
}

#[test]
fn rows_released_at_install_do_not_wait_for_cluster() {
    let aborted = |release| outcome(&Setting { release, ..wice() }).sides[0].abort_percent;
    let (early, late) = (aborted(Release::Installed), aborted(Release::Stable));
    assert!(early < 0.5 && late > 4.0, "{early} {late}");
}

/// Section 3 blocks readers "until all updaters from which it has read from become stable".
#[test]
fn readers_of_the_stable_version_never_wait() {
    let reading = |reads| outcome(&Setting { reads, ..wice() }).sides[0].reading.p50_ms;
    let (newest, stable) = (reading(ReadsOf::Newest), reading(ReadsOf::Stable));
    assert!(newest > 300.0 && stable < 10.0, "{newest} {stable}");
}

#[test]
fn a_second_try_near_the_certifier_hardly_ever_fails() {
    let again = |resubmit| outcome(&Setting { resubmit, ..wice() }).sides[1].second_abort_percent;
    let (far, near) = (again(Resubmit::Site), again(Resubmit::Certifier));
    assert!(near < 1.0 && near < far / 2.0, "{far} {near}");
}

#[test]
fn a_batch_is_acknowledged_at_once() {
    let per_commit = |batch| {
        let sides = outcome(&Setting { batch, clients: 3_000, seconds: 10, ..wice() }).sides;
        sides.iter().map(|side| side.link_messages_per_commit).sum::<f64>()
    };
    let (each, batched) = (per_commit(0), per_commit(20 * MILLISECONDS));
    assert!(batched < each / 3.0, "{each} {batched}");
}
