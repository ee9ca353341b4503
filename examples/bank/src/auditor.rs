//! Auditors: one for each site. Ten times a second each asks its site how it is, and for the total of all balances and the lowest.
//!
//! They read the stable version: without asking other sites, without waiting, and without any client waiting for them. So a site that is cut
//! off or has been declared lost has a total too, of its past; and it must be the same as all others'.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use pares_link::Door;
use pares_site::{CallError, Client};
use pares_wice::SiteId;
use serde_json::Value;

use crate::board::{Shared, Sight};

const EVERY: Duration = Duration::from_millis(100);
const PATIENCE: Duration = Duration::from_millis(500);

/// Begins to look at a site, until `end`. `capital` is what the bank was founded with.
pub fn start(
    site: SiteId,
    door: Door,
    capital: i64,
    board: &Shared,
    end: &Arc<AtomicBool>,
) -> JoinHandle<()> {
    let (board, end) = (board.clone(), Arc::clone(end));
    std::thread::spawn(move || {
        let mut client = Client::new(1_000, 0, vec![door]);
        while !end.load(Ordering::Relaxed) {
            let sight = client.report(PATIENCE).ok().and_then(|report| sight(&report));
            let looked = client.read(b"total", PATIENCE);
            note(site, sight, looked, capital, &board);
            std::thread::sleep(EVERY);
        }
    })
}

fn note(
    site: SiteId,
    sight: Option<Sight>,
    looked: Result<Vec<u8>, CallError>,
    capital: i64,
    board: &Shared,
) {
    let mut board = board.lock();
    match sight {
        Some(sight) => board.sights.insert(site, sight),
        None => board.sights.remove(&site),
    };
    // A site that has just been started says nothing yet, and one that is down says nothing at all.
    let Ok(reply) = looked else { return };
    let reply = String::from_utf8_lossy(&reply).into_owned();
    let (accounts, rest) = reply.split_once(' ').unwrap_or_default();
    // A site may know no more than the bank's first moments for a while: fewer accounts,
    // and the money all the same; or none, when it was not founded yet.
    if accounts == "0" {
        return;
    }
    board.looks += 1;
    let right = format!("{capital} 0");
    if rest != right {
        let site = format!("{}.{}", site.cluster.0, site.number);
        board.wrong.push(format!("site {site}: total and lowest balance are {rest} instead of {right}"));
    }
}

/// A site's report, which is JSON.
fn sight(report: &[u8]) -> Option<Sight> {
    let report: Value = serde_json::from_slice(report).ok()?;
    let number = |value: &Value| value.as_u64();
    let flag = |name: &str| report[name].as_bool();
    let era = &report["era"];
    let live = report["live"].as_array()?.iter().filter_map(|cluster| u8::try_from(cluster.as_u64()?).ok());
    Some(Sight {
        era: (number(&era[0])?, number(&era[1])?, number(&era[2])?),
        certifier: u8::try_from(number(&report["certifier"])?).ok()?,
        live: live.collect(),
        delegate: flag("delegate")?,
        certifies: flag("certifies")?,
        recalling: flag("recalling")?,
        stable: number(&report["stable"])?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SITE: SiteId = SiteId::new(1, 2);

    #[test]
    fn a_wrong_total_is_written_down() {
        let board = Shared::default();
        for reply in ["0 0 0", "3 1000 0", "2 1000 0", "3 999 0", "3 1000 -5"] {
            note(SITE, None, Ok(reply.into()), 1000, &board);
        }
        assert_eq!(board.lock().looks, 4);
        let wrong = &board.lock().wrong;
        assert_eq!(wrong.len(), 2);
        assert_eq!(wrong[0], "site 1.2: total and lowest balance are 999 0 instead of 1000 0");
    }

    #[test]
    fn a_site_that_does_not_answer_is_not_in_sight() {
        let board = Shared::default();
        let report = br#"{"era":[1,2,0],"certifier":1,"live":[0,1],"delegate":true,"certifies":false,
            "recalling":false,"stable":7}"#;
        note(SITE, sight(report), Err(CallError::Silence(PATIENCE)), 1000, &board);
        assert_eq!(board.lock().delegate(1), Some(SITE));
        note(SITE, None, Err(CallError::Silence(PATIENCE)), 1000, &board);
        let board = board.lock();
        assert_eq!((board.delegate(1), board.looks), (None, 0));
    }
}
