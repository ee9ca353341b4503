//! The figures for people.

use pares_text::{Table, bytes, grouped};

use super::instruments::InstrumentFigures;
use super::{Figures, ScenarioFigures};

/// Prints everything that was measured.
pub(super) fn print(figures: &Figures) {
    if let Some(instruments) = &figures.instruments {
        return print_instruments(instruments);
    }
    print_engines(figures);
    pares_text::say!();
    for worst in &figures.worst {
        pares_text::say!("{}: {:.1} M/s at worst ({})", worst.engine, worst.worst_mmsg_per_s, worst.scenario);
    }
    pares_text::say!();
    figures.scenarios.iter().for_each(print_stopped);
    figures.scenarios.iter().for_each(print_shape);
    pares_text::say!(
        "\nM/s: million messages per second, one thread, every report written, messages one by one.\n\
         p50 to p99.9: a run of its own, one reading of the clock ({} ns) in every message.",
        figures.clock_ns
    );
    for (name, note) in &figures.notes {
        pares_text::say!("{name}: {note}.");
    }
}

fn print_engines(figures: &Figures) {
    let titles =
        ["scenario", "engine", ">runs", ">M/s", ">best", ">ns", ">p50 ns", ">p99 ns", ">p99.9 ns", "trades"];
    let mut table = Table::new(titles);
    for scenario in &figures.scenarios {
        for (place, engine) in scenario.engines.iter().enumerate() {
            table.row(vec![
                if place == 0 { scenario.scenario.to_owned() } else { String::new() },
                engine.engine.clone(),
                engine.runs.to_string(),
                format!("{:.2}", engine.mmsg_per_s),
                format!("{:.2}", engine.mmsg_per_s_best),
                format!("{:.1}", engine.ns_per_message),
                grouped(engine.p50_ns),
                grouped(engine.p99_ns),
                grouped(engine.p999_ns),
                match engine.trades_agree {
                    true => "agree".to_owned(),
                    false => format!("{} for {} shares", grouped(engine.trades), grouped(engine.shares)),
                },
            ]);
        }
    }
    pares_text::print(&table.render());
}

fn print_stopped(scenario: &ScenarioFigures) {
    for engine in &scenario.engines {
        let Some(at) = engine.stopped_at else { continue };
        pares_text::say!(
            "{} in {}: stopped after {} messages and {:.0} s, at {:.3} M messages/s so far",
            engine.engine,
            scenario.scenario,
            grouped(at),
            at as f64 * engine.ns_per_message / 1e9,
            engine.mmsg_per_s,
        );
    }
}

fn print_shape(scenario: &ScenarioFigures) {
    let first = scenario.engines.first();
    pares_text::say!(
        "{}: {} messages, {} trades, {} orders resting at the end; compared over {} messages: {} trades, {} shares",
        scenario.scenario,
        grouped(scenario.messages as u64),
        grouped(scenario.trades),
        grouped(scenario.resting),
        grouped(scenario.compared as u64),
        grouped(first.map_or(0, |engine| engine.trades)),
        grouped(first.map_or(0, |engine| engine.shares)),
    );
}

fn print_instruments(figures: &InstrumentFigures) {
    let mut table = Table::new([">instruments", ">active", ">M/s", ">best", ">ratio"]);
    for spread in &figures.spreads {
        table.row(vec![
            grouped(u64::from(spread.instruments)),
            grouped(spread.active as u64),
            format!("{:.2}", spread.mmsg_per_s),
            format!("{:.2}", spread.mmsg_per_s_best),
            format!("{:.2}", spread.ratio),
        ]);
    }
    pares_text::print(&table.render());
    pares_text::say!(
        "\nthe second half of the normal flow; the k-th instrument gets 1/k of what the first one gets"
    );
    if let Some(idle) = figures.idle_book_bytes {
        pares_text::say!("a book in which nothing ever happened: {} of resident memory", bytes(idle));
    }
}
