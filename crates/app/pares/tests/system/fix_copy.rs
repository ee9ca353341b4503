//! Drop copy of another member by FIX, and its trades, in bytes made by hand.

use pares_node::SystemConfig;
use pares_types::Side;

use crate::common::exchange::{Exchange, small};
use crate::common::limit;
use crate::fix_market::Engine;
use crate::sign_on::done;

#[test]
fn drop_copy_receives_member_reports_and_sends_nothing() {
    let config = small(1);
    let exchange = Exchange::start(&SystemConfig { fix: config.gateways.clone(), ..config });
    for words in ["member add 7", "member add 9", "member copy 9 7 --session 1"] {
        done(&exchange, words);
    }
    let mut trader = exchange.client(0, 7);
    for (name, side) in [(1, Side::Buy), (2, Side::Sell)] {
        trader.submit_and_wait(&limit(name, 1, side, 10, 50_000)).unwrap();
    }
    let mut engine = Engine::start(&exchange, "M9-1");
    trader.submit_and_wait(&limit(3, 1, Side::Buy, 5, 40_000)).unwrap();
    let told = engine.hear("8");
    assert!(told.contains("|11=3|") && told.contains("|453=1|448=7|447=D|452=1|"), "{told}");
    engine.say("D", "11=4|55=ALFA|54=1|60=20261127-18:00:00|38=1|40=2|44=4|");
    let refused = engine.hear("8");
    assert!(refused.contains("|39=8|") && refused.contains("no_right"), "{refused}");
    engine.say("AD", "568=t|569=0|");
    assert!(engine.hear("AQ").contains("|568=t|569=0|749=0|750=0|"));
    let trades = [engine.hear("AE"), engine.hear("AE")];
    // Of a trade the incoming order is reported first.
    for (trade, name) in trades.iter().zip(["2", "1"]) {
        assert!(trade.contains("|55=ALFA|32=10|31=5|") && trade.contains("|448=7|"), "{trade}");
        assert!(trade.contains(&format!("|11={name}|")), "{trade}");
    }
    assert!(!trades[0].contains("|912=") && trades[1].contains("|912=Y|"), "{trades:?}");
}
