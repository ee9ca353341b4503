//! The settings of the simulated system.

use std::net::SocketAddr;

use pares_config::{
    DurabilitySetting, FeedConfig, InstrumentConfig, LaneConfig, PhaseSetting, SystemConfig, TimetableSetting,
};
use pares_random::mix;

use super::{revocations, shard_id};
use crate::scenario::{MS, Scenario};

/// Names that a gateway keeps: few, so that it forgets.
const NAMES_MAX: usize = 160;
/// So few that runs are written all the time.
const INDEX_ROWS: u32 = 64;
pub(super) const SESSION_IN_FLIGHT_MAX: u16 = 32;

/// So few, but for all that may be in flight.
pub(super) fn names_max(scenario: &Scenario) -> usize {
    NAMES_MAX.max(2 * scenario.in_flight_max)
}

/// The settings of the system that a scenario describes.
pub(super) fn config(scenario: &Scenario) -> SystemConfig {
    let few = |count: usize| u16::try_from(count).expect("few nodes");
    SystemConfig {
        durability: match scenario.durability {
            crate::Durability::Os => DurabilitySetting::Os,
            crate::Durability::Disk => DurabilitySetting::Disk,
        },
        venues: few(scenario.venues),
        recorders: few(scenario.recorders),
        quorum: few(scenario.quorum),
        window: u32::try_from(scenario.window).expect("a small window"),
        checkpoint_every: scenario.checkpoint_every,
        in_flight_max: scenario.in_flight_max,
        wait_target_ms: match scenario.bug {
            Some(crate::Bug::AdmitByNumber) => 0,
            _ => scenario.wait_target_ns / MS,
        },
        session_in_flight_max: SESSION_IN_FLIGHT_MAX,
        quorum_patience_ms: scenario.patience_ns / MS,
        sessions_max: 64,
        names_max: names_max(scenario),
        index_rows: INDEX_ROWS,
        clock_ms: 1,
        gateways: vec![SocketAddr::from(([127, 0, 0, 1], 0)); scenario.gateways],
        fix: vec![
            SocketAddr::from(([127, 0, 0, 1], 0));
            if scenario.fix > 0 { scenario.gateways } else { 0 }
        ],
        ouch: vec![
            SocketAddr::from(([127, 0, 0, 1], 0));
            if scenario.ouch > 0 { scenario.gateways } else { 0 }
        ],
        tap: super::taps::are_there(scenario),
        instruments: instruments(scenario),
        lanes: lanes(scenario),
        feed: scenario.feed.map(feed),
        ..revocations::settings(scenario)
    }
}

/// Shards and venues by turns, and some venues in one lane more.
fn lanes(scenario: &Scenario) -> Vec<LaneConfig> {
    let few = |count: usize| u16::try_from(count).expect("few shards and venues");
    let lane = |lane: usize| {
        let is_here = |venue: &usize| {
            let dice = mix(mix(scenario.seed) ^ (lane * scenario.venues + venue) as u64);
            venue % scenario.lanes == lane || dice % 1_000 < scenario.in_both_permille
        };
        LaneConfig {
            shards: (lane..scenario.shards).step_by(scenario.lanes).map(few).collect(),
            venues: (0..scenario.venues).filter(is_here).map(few).collect(),
        }
    };
    (0..scenario.lanes).map(lane).collect()
}

/// Market data on two lines; addresses are of no matter here.
fn feed(feed: crate::Feed) -> FeedConfig {
    let replayer = |at| SocketAddr::from(([127, 0, 0, 1], 7_300 + at));
    let replayers = (0..u16::try_from(feed.replayers).expect("few replayers")).map(replayer).collect();
    FeedConfig { replayers, ..FeedConfig::default() }
}

/// A whole trading day in the first half of a run.
fn timetable() -> Vec<TimetableSetting> {
    let rows = [
        (1, PhaseSetting::OpeningCall),
        (4, PhaseSetting::Continuous),
        (18, PhaseSetting::ClosingCall),
        (20, PhaseSetting::PostClose),
        (22, PhaseSetting::Closed),
        (24, PhaseSetting::Continuous),
    ];
    rows.map(|(ms, phase)| TimetableSetting { at: format!("00:00:00.{ms:03}"), phase }).into()
}

/// Each shard's instruments; ids count from 1 over all shards. Of two, one trades all the time without bands; the other
/// has a day, bands, and steps so short that work is left over.
fn instruments(scenario: &Scenario) -> Vec<InstrumentConfig> {
    let instrument = |id: usize| {
        let shard = (id - 1) / scenario.instruments_per_shard;
        let plain = InstrumentConfig {
            shard: Some(shard_id(shard).0),
            quantity_max: 1_000,
            price_min: 100_000,
            price_max: 1_000_000,
            orders_max: 32,
            ..InstrumentConfig::new(u32::try_from(id).expect("few instruments"), &format!("SIM{id}"))
        };
        let eventful = InstrumentConfig {
            step_max: 2,
            static_band: 10,
            dynamic_band: 8,
            call_ms: 2,
            extension_ms: 1,
            random_end_ms: 1,
            timetable: timetable(),
            ..plain.clone()
        };
        if id.is_multiple_of(2) { eventful } else { plain }
    };
    (1..=scenario.shards * scenario.instruments_per_shard).map(instrument).collect()
}
