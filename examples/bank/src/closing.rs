//! Closing time: everything is repaired, the tellers come home, and their slips are held against all books.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use pares_site::Client;

use crate::CAPITAL;
use crate::bank::VAULT;
use crate::books::{self, Findings};
use crate::clusters::{CLUSTERS, Who};
use crate::desk::{Desk, Leave, name};
use crate::order::Order;
use crate::screen::grouped;
use crate::teller::{Fate, Slip};

/// Everything runs again, so that all books can be looked at.
pub fn repair(desk: &mut Desk) -> Result<(), Leave> {
    desk.say(
        "closing: everything is started and each missing site admitted, so that all books can be compared",
    );
    if desk.clusters.is_cut() {
        desk.carry_out(Order::Link)?;
    }
    desk.carry_out(Order::Start(None))?;
    desk.until("all sites answer", |board, clusters| board.sights.len() == clusters.sites().len())?;
    for cluster in 0..CLUSTERS {
        if !desk.board.lock().lives(cluster) {
            desk.carry_out(Order::Admit(cluster))?;
        }
    }
    Ok(())
}

/// Waits for the tellers. Whether each had an answer to all it had asked.
pub fn gather(
    desk: &mut Desk,
    tellers: Vec<JoinHandle<Vec<Slip>>>,
    give_up: &AtomicBool,
    slips: &mut Vec<Slip>,
) -> Result<bool, Leave> {
    let answered =
        desk.until("all tellers have their answers", |_, _| tellers.iter().all(JoinHandle::is_finished));
    give_up.store(true, Ordering::Relaxed);
    let why = match answered {
        Err(Leave::Quit) => return Err(Leave::Quit),
        Err(Leave::Failed(why)) => Some(why),
        Ok(_) => None,
    };
    if let Some(why) = &why {
        desk.say(why);
    }
    for teller in tellers {
        let Ok(of_teller) = teller.join() else { return Err(Leave::Failed("a teller died".into())) };
        slips.extend(of_teller);
    }
    Ok(why.is_none())
}

/// Every slip against the books of every site; says what was found. Whether all was right.
pub fn audit(desk: &mut Desk, accounts: &[String], slips: &[Slip]) -> Result<bool, Leave> {
    desk.until("all sites know the same version as stable", |board, clusters| {
        let mut stable: Vec<u64> = board.sights.values().map(|sight| sight.stable).collect();
        stable.dedup();
        board.sights.len() == clusters.sites().len() && stable.len() == 1
    })?;
    let accounts: Vec<String> = accounts.iter().cloned().chain([VAULT.to_owned()]).collect();
    let (mut all, mut alike) = (Vec::new(), true);
    for site in desk.clusters.sites() {
        let mut client = Client::new(3_000, 0, vec![desk.clusters.door(Who::Auditor, site)]);
        let books = books::read(&mut client, &accounts)?;
        let findings = books::check(&books, slips);
        if !findings.is_clean() {
            desk.say(&format!("site {}: {findings:?}", name(site)));
        }
        alike &= all.first().is_none_or(|(first, _)| *first == books);
        all.push((books, findings));
    }
    let findings: Vec<Findings> = all.into_iter().map(|(_, findings)| findings).collect();
    Ok(summary(desk, slips, &findings, alike))
}

fn summary(desk: &mut Desk, slips: &[Slip], findings: &[Findings], alike: bool) -> bool {
    let count = |fate| slips.iter().filter(|slip| slip.fate == fate).count() as u64;
    let sum = |of: fn(&Findings) -> u64| findings.iter().map(of).sum::<u64>();
    let (looks, wrong) = {
        let board = desk.board.lock();
        (board.looks, board.wrong.clone())
    };
    let right = wrong.is_empty() && alike && desk.ended == 0 && findings.iter().all(Findings::is_clean);
    let text = format!(
        "\nthe bank is closed\n  \
         slips   {} acknowledged, {} refused or turned away, {} without an answer\n  \
         total   {} at {} of {} looks\n  \
         books   {} sites, {}: {} acknowledged slips missing, {} not there exactly once, {} there though refused,\n          \
         {} accounts out of balance, {} entries of nobody\n  \
         sites   {} ended without having been killed\n  \
         {}",
        grouped(count(Fate::Done)),
        grouped(count(Fate::Not)),
        count(Fate::Unknown),
        grouped(CAPITAL.unsigned_abs()),
        grouped(looks - wrong.len() as u64),
        grouped(looks),
        findings.len(),
        if alike { "all alike" } else { "NOT alike" },
        sum(|found| found.missing),
        sum(|found| found.not_once),
        sum(|found| found.denied),
        sum(|found| found.unbalanced),
        sum(|found| found.unknown),
        desk.ended,
        if right {
            "KEPT: every acknowledged transfer is there, once, at every site"
        } else {
            "BROKEN: see above"
        }
    );
    for line in wrong.iter().take(5) {
        desk.say(line);
    }
    desk.say_plainly(&text);
    right
}
