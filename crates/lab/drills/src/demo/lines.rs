//! The demonstration in lines, for logs and pipes.

use std::time::Duration;

use pares_text::{duration, grouped};

use super::director::Happening;
use super::picture::{Condition, Picture, VenueLine};

/// A second's line.
pub fn second(picture: &Picture) -> String {
    let last = picture.minute.last();
    if let Some(day) = &picture.day {
        return format!(
            "{}  {:>6}/s  gap {:>8}  lost {}  duplicated {}  {day}",
            clock(picture.elapsed),
            grouped(last.completed),
            duration(last.gap_ns),
            picture.lost_max,
            picture.duplicated,
        );
    }
    format!(
        "{}  {}/s  p50 {}  p99 {}  p99.9 {}  gap {}  {}  trades {}  lost {}  duplicated {}",
        clock(picture.elapsed),
        grouped(last.completed),
        duration(last.p50_ns),
        duration(last.p99_ns),
        duration(last.p999_ns),
        duration(last.gap_ns),
        venues(&picture.venues),
        grouped(picture.trades),
        picture.lost_max,
        picture.duplicated,
    )
}

/// A happening's line.
pub fn happening(elapsed: Duration, happening: &Happening) -> String {
    format!("{}  {happening}", clock(elapsed))
}

/// Minutes, seconds and tenths.
pub fn clock(elapsed: Duration) -> String {
    let seconds = elapsed.as_secs();
    format!("{:02}:{:02}.{}", seconds / 60, seconds % 60, elapsed.subsec_millis() / 100)
}

fn venues(venues: &[VenueLine]) -> String {
    let words = venues.iter().map(|venue| {
        let state = match (venue.condition, venue.leads) {
            (Condition::Down, _) => "down".into(),
            (Condition::Resynchronising, _) => "resynchronising".into(),
            (Condition::Up, true) => format!("leads at {}", grouped(venue.position)),
            (Condition::Up, false) => format!("{} behind", grouped(venue.behind)),
        };
        format!("{} {state}", venue.name())
    });
    words.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_shows_tenths() {
        assert_eq!(clock(Duration::from_millis(61_950)), "01:01.9");
    }
}
