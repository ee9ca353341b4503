//! The script: everything that can happen, one after the other, with a line on why what one sees is what one sees.

use std::time::Duration;

use crate::clusters::CLUSTERS;
use crate::desk::{Desk, Leave, name};
use crate::order::Order;

/// How many times the script stops to let one watch.
const PAUSES: u32 = 12;
/// Answers after which a cluster's tellers count as active again.
const AT_WORK: u64 = 5;

/// Runs the script; about `time` long, if nothing takes longer.
pub fn run(desk: &mut Desk, time: Duration) -> Result<(), Leave> {
    let pause = time / PAUSES;
    desk.say(
        "quiet: an answer takes a round trip of the link, since both clusters must have the transaction",
    );
    desk.watch(pause)?;
    one_site(desk, pause)?;
    certifier(desk, pause)?;
    migration(desk, pause)?;
    link(desk, pause)?;
    cluster(desk, pause)
}

fn one_site(desk: &mut Desk, pause: Duration) -> Result<(), Leave> {
    let (sites, delegate) = (desk.clusters.sites_of(1), desk.board.lock().delegate(1));
    if sites.len() < 3 {
        desk.say("with fewer than three sites a cluster does not outlive one of them: none is killed alone");
        return Ok(());
    }
    if let Some(ordinary) = sites.iter().find(|site| Some(**site) != delegate) {
        desk.say("an ordinary site: its tellers repeat what they have no answer for at the next site");
        struck(desk, Order::Kill(*ordinary), pause)?;
        back(desk, pause)?;
    }
    let delegate = desk.board.lock().delegate(1);
    if let Some(delegate) = delegate {
        desk.say("cluster 1's delegate: its log elects another, which takes the stream where it stood; all wait for that");
        struck(desk, Order::Kill(delegate), pause)?;
        back(desk, pause)?;
    }
    Ok(())
}

fn certifier(desk: &mut Desk, pause: Duration) -> Result<(), Leave> {
    let Some(site) = desk.certifier() else { return Ok(()) };
    if desk.clusters.sites_of(site.cluster.0).len() < 3 {
        return Ok(());
    }
    desk.say(
        "the certifier: another site of its cluster is elected, and knows from the log what was certified",
    );
    struck(desk, Order::KillCertifier, pause)?;
    if let Some(next) = desk.certifier() {
        desk.say(&format!("site {} certifies now", name(next)));
    }
    back(desk, pause)
}

fn migration(desk: &mut Desk, pause: Duration) -> Result<(), Leave> {
    desk.say(
        "the certifier moves to cluster 1, as one would with the sun; nobody waits longer than the link is",
    );
    struck(desk, Order::Move(1), pause)
}

fn link(desk: &mut Desk, pause: Duration) -> Result<(), Leave> {
    desk.say(
        "the link is cut: nobody is answered, since only one cluster would know; everybody can still read",
    );
    desk.carry_out(Order::Link)?;
    desk.watch(pause)?;
    struck(desk, Order::Link, pause)
}

fn cluster(desk: &mut Desk, pause: Duration) -> Result<(), Leave> {
    desk.say(
        "all of cluster 1, which certifies: nobody can know whether it is dead or only cut off, so all wait",
    );
    desk.carry_out(Order::KillCluster(1))?;
    desk.watch(pause)?;
    desk.say(
        "the operator knows, and declares it lost: cluster 0 goes on with all that was ever acknowledged",
    );
    struck(desk, Order::Lost(1), pause)?;
    desk.say("cluster 1 comes back: it discards what nobody else has, catches up, and is admitted");
    desk.carry_out(Order::Start(None))?;
    desk.carry_out(Order::Admit(1))?;
    at_work(desk)?;
    desk.watch(pause)?;
    desk.say("and the certifier is where it was in the beginning");
    desk.watch(pause)
}

/// Strikes, and says when the tellers of both clusters are active again.
fn struck(desk: &mut Desk, order: Order, pause: Duration) -> Result<(), Leave> {
    for tally in desk.board.lock().tallies.values_mut() {
        tally.take_quiet();
    }
    desk.carry_out(order)?;
    at_work(desk)?;
    desk.watch(pause / 2)?;
    let quiet: Vec<String> = {
        let mut board = desk.board.lock();
        let told = board.tallies.iter_mut();
        told.map(|(cluster, tally)| {
            format!("cluster {cluster} {:.0} ms", tally.take_quiet().as_secs_f64() * 1e3)
        })
        .collect()
    };
    desk.say(&format!("longest time without an answer to its tellers: {}", quiet.join(", ")));
    desk.watch(pause / 2)
}

/// Starts what is down.
fn back(desk: &mut Desk, pause: Duration) -> Result<(), Leave> {
    desk.carry_out(Order::Start(None))?;
    desk.until("all sites answer", |board, clusters| board.sights.len() == clusters.sites().len())?;
    desk.watch(pause / 4)
}

/// Waits until the tellers of both clusters have answers.
pub fn at_work(desk: &mut Desk) -> Result<Duration, Leave> {
    let done =
        |cluster: u8, board: &crate::board::Board| board.tallies.get(&cluster).map_or(0, |tally| tally.done);
    let before: Vec<u64> = {
        let board = desk.board.lock();
        (0..CLUSTERS).map(|cluster| done(cluster, &board)).collect()
    };
    desk.until("both clusters' tellers have answers", move |board, _| {
        (0..CLUSTERS).all(|cluster| done(cluster, board) >= before[usize::from(cluster)] + AT_WORK)
    })
}
