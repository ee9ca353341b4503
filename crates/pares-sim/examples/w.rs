fn main() {
    let a: Vec<String> = std::env::args().collect();
    let plan = *pares_sim::wice::Plan::ALL.iter().find(|p| p.name == a[1]).unwrap();
    let f: u64 = a[2].parse().unwrap();
    if a.len() == 3 {
        let (t, r) = pares_sim::wice::run_traced(plan, f);
        for l in t {
            println!("{l}");
        }
        if let Err(e) = r {
            println!("{} {}", e.at_us, e.what)
        };
        return;
    }
    let t: u64 = a[3].parse().unwrap();
    let mut n = 0;
    for s in f..t {
        if let Err(e) = pares_sim::wice::run(plan, s) {
            n += 1;
            if n < 6 {
                println!("{} {}: {:.500}", s, e.at_us, e.what);
            }
        }
    }
    println!("{} {n} failed", plan.name);
}
