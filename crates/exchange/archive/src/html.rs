//! A day's report as a page.

use std::fmt::Write as _;

use crate::Agreement;

const STYLE: &str = "body{font-family:sans-serif;margin:2em}table{border-collapse:collapse;margin:1em 0}\
    td,th{border:1px solid #999;padding:.2em .6em;text-align:right}.bad{color:#b00}";

impl Agreement {
    /// The report as one HTML page that needs nothing else.
    #[must_use]
    pub fn html(&self) -> String {
        let report = &self.report;
        let title = format!("Business day {}", report.day);
        let mut page = format!(
            "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style></head>\n\
             <body><h1>{title}</h1>\n"
        );
        let recorders: Vec<String> = self.recorders.iter().map(u16::to_string).collect();
        let _ = match (self.differences.is_empty(), &recorders[..]) {
            (true, [one]) => writeln!(page, "<p>From recorder {one} only.</p>"),
            (true, all) => writeln!(page, "<p>Recorders {} agree.</p>", all.join(", ")),
            (false, all) => {
                writeln!(page, "<p>Recorders {} do <b class=\"bad\">not</b> agree.</p>", all.join(", "))
            }
        };
        for missing in &self.missing {
            let _ = writeln!(page, "<p>Recorder {missing} has no report of this day here.</p>");
        }
        for difference in &self.differences {
            let _ = writeln!(page, "<p class=\"bad\">{}</p>", escaped(difference));
        }
        let shards = report.shards.iter().map(|one| {
            let figures = [
                u64::from(one.shard),
                one.first,
                one.last,
                one.requests,
                one.orders,
                one.trades,
                one.quantity,
            ];
            figures.iter().map(u64::to_string).chain([one.state_hash.clone()]).collect()
        });
        table(
            &mut page,
            &[
                "shard",
                "first position",
                "last position",
                "requests",
                "orders",
                "trades",
                "shares",
                "state hash",
            ],
            shards,
        );
        let instruments = report.instruments.iter().map(|one| {
            let prices = [&one.open, &one.high, &one.low, &one.last, &one.closing];
            let prices = prices.map(|price| price.clone().unwrap_or_default());
            let figures = [one.quantity.to_string(), one.trades.to_string()];
            [one.instrument.to_string()].into_iter().chain(prices).chain(figures).collect()
        });
        table(
            &mut page,
            &["instrument", "open", "high", "low", "last", "closing", "shares", "trades"],
            instruments,
        );
        let members = report.members.iter().map(|one| {
            [u64::from(one.member), one.orders, one.trades, one.quantity].iter().map(u64::to_string).collect()
        });
        table(&mut page, &["member", "orders", "trades", "shares"], members);
        page.push_str("</body></html>\n");
        page
    }
}

fn table(page: &mut String, heads: &[&str], rows: impl Iterator<Item = Vec<String>>) {
    page.push_str("<table><tr>");
    heads.iter().for_each(|head| _ = write!(page, "<th>{head}</th>"));
    page.push_str("</tr>\n");
    for row in rows {
        page.push_str("<tr>");
        row.iter().for_each(|cell| _ = write!(page, "<td>{cell}</td>"));
        page.push_str("</tr>\n");
    }
    page.push_str("</table>\n");
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
