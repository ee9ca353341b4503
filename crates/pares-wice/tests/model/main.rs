//! x
#![allow(unreachable_pub)]

mod model;
mod quiet;
mod steps;
mod world;

use pares_wice::{ClusterId, ClusterSet, Command, SiteId};
use stateright::{Checker, HasDiscoveries, Model};
use world::{Broken, Faults, NONE, Script, World};

const A0: SiteId = SiteId::new(0, 0);
const A1: SiteId = SiteId::new(0, 1);
const B0: SiteId = SiteId::new(1, 0);
const C0: SiteId = SiteId::new(2, 0);

fn explore(name: &str, world: World) {
    let t = std::time::Instant::now();
    let c = world.clone().checker().target_state_count(1_500_000).threads(2).spawn_bfs().join();
    println!("{name}: {} states, depth {} {:?}", c.unique_state_count(), c.max_depth(), t.elapsed());
    for (p, path) in c.discoveries() {
        println!("  {p}: {}", path.clone().into_actions().len());
        if p.contains('(') {
            let (mut bound, mut best) = (path.into_actions().len() + 1, None);
            loop {
                let c = world.clone().checker().target_max_depth(bound).finish_when(HasDiscoveries::AnyOf([p].into())).spawn_bfs().join();
                let Some(path) = c.discovery(p) else { break };
                bound = path.clone().into_actions().len() + 1;
                best = Some(path);
            }
            if let Some(best) = best {
                println!("  shortest {p}");
                let mut post: world::Post = Default::default();
                for (state, action) in best.clone().into_vec() {
                    match &action {
                        Some(steps::Action::Receive { from, to, place, .. }) => {
                            println!("    {from}->{to}: {:?}", state.post[&(*from, *to, *place)]);
                        }
                        Some(action) => println!("    {action:?}"),
                        None => {}
                    }
                    post = state.post.clone();
                }
                let _ = post;
                let last = best.into_states().pop().unwrap();
                println!("    ends: stable {:?} wrong {:?} clients {:?}", last.stable, last.wrong, last.clients);
                for c in &last.clusters { println!("      history {:?} committed {} log {:?}", c.history, c.committed, c.log); }
                for s in last.sites() { println!("      {:?} delivered {:?} stable {:?} base {:?}", s.id(), s.delivered(), s.stable(), s.base()); }
            }
        }
    }
}

fn lost(c: u8) -> Command { Command::DeclareLost(ClusterSet::default().with(ClusterId(c))) }
#[test]
fn first() {
    let only = std::env::var("ONLY").unwrap_or_default();
    let explore = |n: &str, w: World| if n.contains(&only) { explore(n, w) };
    let f = |sites: &[u8], scripts: &[Script], faults: Faults| World { sites: sites.to_vec(), scripts: scripts.to_vec(), faults, broken: Broken::Nothing, sampled: 64 };
    let ab = [Script::new(A0, 0), Script::new(B0, 0)];
    let (a, b) = (ClusterId(0), ClusterId(1));
    let n = NONE;
    explore("loss of A", f(&[1, 1], &ab, Faults { loss: Some(a), commands: vec![(b, lost(0))], ..n.clone() }));
    explore("loss of B", f(&[1, 1], &ab, Faults { loss: Some(b), commands: vec![(a, lost(1))], ..n.clone() }));
    explore("suspicion A", f(&[1, 1], &ab, Faults { commands: vec![(b, lost(0)), (b, Command::Admit(a))], ..n.clone() }));
    explore("suspicion B", f(&[1, 1], &ab, Faults { commands: vec![(a, lost(1)), (a, Command::Admit(b))], ..n.clone() }));
    explore("migrate", f(&[1, 1], &ab, Faults { commands: vec![(a, Command::Migrate(b))], ..n.clone() }));
    explore("migrate back", f(&[1, 1], &ab, Faults { commands: vec![(a, Command::Migrate(b)), (b, Command::Migrate(a))], ..n.clone() }));
    explore("migrate, suspicion", f(&[1, 1], &ab, Faults { commands: vec![(a, Command::Migrate(b)), (b, lost(0))], ..n.clone() }));
    explore("migrate, suspicion2", f(&[1, 1], &ab, Faults { commands: vec![(a, Command::Migrate(b)), (a, lost(1))], ..n.clone() }));
    explore("loss of A election", f(&[1, 1], &ab, Faults { elections: 1, loss: Some(a), commands: vec![(b, lost(0))], ..n.clone() }));
    explore("repeat", f(&[1, 1], &ab, Faults { repeats: 1, ticks: 1, ..n.clone() }));
    explore("crash", f(&[1, 1], &ab, Faults { crashes: 1, ..n.clone() }));
    explore("delegate", f(&[1, 2], &ab, Faults { elections: 1, ..n.clone() }));
    explore("certifier crash", f(&[2, 1], &[Script::new(A1, 0), Script::new(B0, 0)], Faults { crashes: 1, ..n.clone() }));
    explore("three", f(&[1, 1, 1], &[Script::new(B0, 0), Script::new(C0, 0)], Faults { loss: Some(a), commands: vec![(b, lost(0))], ..n.clone() }));
}
