use pares_sim::{FaultMix, Scenario, run, run_traced};
fn main() {
    let a: Vec<u64> = std::env::args().skip(1).map(|a| a.parse().unwrap()).collect();
    let (mut n, mut f) = (0, 0);
    for seed in a[0]..a[1] {
        let faults = FaultMix { poison_permille: 30, poison_shards: 1, ..FaultMix::default() };
        let scenario = Scenario { faults, ..Scenario::quick(seed) };
        n += 1;
        if let Err(e) = run(&scenario) {
            f += 1;
            println!("seed {seed}: {} {}", e.invariant, e.what);
            if a.len() > 2 {
                let _ = run_traced(
                    &Scenario {
                        faults: FaultMix { poison_permille: 30, poison_shards: 1, ..FaultMix::default() },
                        ..Scenario::quick(seed)
                    },
                    &mut |l| println!("{l}"),
                );
            }
        }
    }
    println!("{n} {f}");
}
