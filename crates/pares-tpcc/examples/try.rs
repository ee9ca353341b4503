use pares_tpcc::*;
fn main() {
    for protocol in [Protocol::DbsmCluster, Protocol::Dbsm, Protocol::Wice] {
        for clients in [60, 1000, 4000, 6000] {
            let t = std::time::Instant::now();
            let s = Setting { seconds: 60, warmup_seconds: 30, ..Setting::new(protocol, clients, 1) };
            match run(&s) {
                Ok(o) => { for side in o.sides { println!("{:12} {clients:5} tpm {:7.0} abort {:5.2} {:?} upd {:6.1} p99 {:6.0} whole {:6.1} cpu {:4.1} rd {:.1}", protocol.name(), side.per_minute, side.abort_percent, side.abort_percent_by_cause.map(|x| (x*100.).round()/100.), side.update.mean_ms, side.update.p99_ms, side.whole.mean_ms, side.processor_percent, side.reading.mean_ms); } println!("   events {} {:?}", o.events, t.elapsed()); }
                Err(e) => println!("{e}"),
            }
        }
    }
}
