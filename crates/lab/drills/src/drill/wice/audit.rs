//! What the sites have at the end, compared with what clients received.
//!
//! Each request leaves a note that it adds 1 to, in its own transaction: by it one sees whether it was executed, and how often. A sum could
//! not: one lost and one done twice cancel out.

use std::collections::BTreeMap;

use pares_load::{DistantSites, LabError, LabResult};
use pares_wice::TransactionId;

use super::figures::Figures;
use super::load::Told;

/// Notes read at a time.
const PAGE: usize = 20_000;

/// Waits until all sites are in step, and fills in what is found.
pub(super) fn audit(stage: &DistantSites, told: &[Told], figures: &mut Figures) -> LabResult {
    stage.until("all sites in step", DistantSites::in_step)?;
    let all = stage.all();
    let digests: Vec<String> =
        all.iter().map(|site| stage.read_text(*site, "digest")).collect::<Result<_, LabError>>()?;
    let sums: Vec<String> =
        all.iter().map(|site| stage.read_text(*site, "sum account/")).collect::<Result<_, LabError>>()?;
    figures.sites_differing =
        (0..all.len()).filter(|&at| digests[at] != digests[0] || sums[at] != sums[0]).count() as u64;
    figures.money_off = total(&sums[0])? - super::MONEY;
    let notes = notes(stage)?;
    hold_against(&notes, told, figures);
    Ok(())
}

fn total(sum: &str) -> Result<i128, LabError> {
    let total = sum.split_whitespace().nth(1).and_then(|total| total.parse().ok());
    total.ok_or_else(|| LabError::Failed(format!("a sum says {sum:?}")))
}

/// How often each request was executed.
fn notes(stage: &DistantSites) -> Result<BTreeMap<TransactionId, u64>, LabError> {
    let site = stage.all()[0];
    let (mut found, mut after) = (BTreeMap::new(), "-".to_owned());
    loop {
        let page = stage.read_text(site, &format!("list note/ {after} {PAGE}"))?;
        let before = found.len();
        for line in page.lines() {
            let (name, id, count) =
                note(line).ok_or_else(|| LabError::Failed(format!("a note says {line:?}")))?;
            found.insert(id, count);
            after = name;
        }
        if found.len() < before + PAGE {
            return Ok(found);
        }
    }
}

fn note(line: &str) -> Option<(String, TransactionId, u64)> {
    let (name, count) = line.split_once(' ')?;
    let (client, sequence) = name.strip_prefix("note/")?.split_once('/')?;
    let id = TransactionId { client: client.parse().ok()?, sequence: sequence.parse().ok()? };
    Some((name.to_owned(), id, count.parse().ok()?))
}

fn hold_against(notes: &BTreeMap<TransactionId, u64>, told: &[Told], figures: &mut Figures) {
    figures.executed_twice = notes.values().filter(|&&count| count != 1).count() as u64;
    for told in told {
        figures.completed += told.acknowledged.len() as u64;
        figures.client_retries += told.repeats;
        figures.rejected += told.denied.len() as u64;
        figures.lost += told.unanswered;
        figures.acknowledged_lost +=
            told.acknowledged.iter().filter(|id| !notes.contains_key(id)).count() as u64;
        figures.denied_and_done += told.denied.iter().filter(|(id, _)| notes.contains_key(id)).count() as u64;
    }
}

#[cfg(test)]
mod tests {
    use pares_site::protocol::Code;

    use super::*;

    const fn id(sequence: u64) -> TransactionId {
        TransactionId { client: 7, sequence }
    }

    #[test]
    fn what_is_missing_doubled_or_denied_and_done_is_found() {
        let (name, first, count) = note("note/7/1 1").unwrap();
        assert_eq!((name.as_str(), first, count), ("note/7/1", id(1), 1));
        let notes = BTreeMap::from([(first, count), (id(2), 2), (id(4), 1)]);
        let told = Told {
            acknowledged: vec![id(1), id(2), id(3)],
            denied: vec![(id(4), Code::Aborted), (id(5), Code::Behind)],
            unanswered: 1,
            ..Told::default()
        };
        let mut figures = Figures::default();
        hold_against(&notes, &[told], &mut figures);
        assert_eq!((figures.acknowledged_lost, figures.executed_twice, figures.denied_and_done), (1, 1, 1));
        assert_eq!((figures.completed, figures.rejected, figures.lost), (3, 2, 1));
    }
}
