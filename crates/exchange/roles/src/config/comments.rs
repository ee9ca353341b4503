//! The comment on each setting in the configuration file of a new system: what it is, its unit, its legal range, its default.
//!
//! `cargo xtask tidy` checks that every setting has one. docs/operations.md says more of each.

/// A setting, and its comment.
const COMMENTS: &[(&str, &str)] = &[
    (
        "durability",
        "What an answer promises. \"disk\": survives the loss of power; \"os\": the death of any process. Default \"disk\".",
    ),
    ("venues", "Matching engines, each of which executes everything: 1 to 16. Default 2."),
    ("recorders", "Copies of the record: 1 to 16. Default 2."),
    ("quorum", "Recorders that must have a record before anybody is told: 1 to `recorders`. Default 1."),
    (
        "sequencer",
        "Whether venues agree on an order. false only with a single gateway, to measure. Default true.",
    ),
    (
        "window",
        "Positions of a shard that venues may be ahead of the recorders: a power of two, 16 or more. Default 65536.",
    ),
    ("checkpoint_every", "Positions, over all shards, between two checkpoints: 1 or more. Default 4096."),
    (
        "in_flight_max",
        "Unanswered requests of a gateway: one per shard or more, 4194304 over all gateways at most. Default 32768.",
    ),
    (
        "wait_target_ms",
        "Milliseconds that requests may wait before orders are refused; cancels pass. 0: no target, 10000 at most. Default 10.",
    ),
    ("session_in_flight_max", "Unanswered requests of a session: 1 to 65535. Default 16384."),
    (
        "session_rate_max",
        "Orders and amends a session may send in a second; cancels pass. 0: no limit. Default 10000.",
    ),
    ("session_burst_max", "How many of them at once. Default 1000."),
    (
        "quorum_patience_ms",
        "Milliseconds without a record before new requests are refused: 400 to 3600000, or 0: never. Default 500.",
    ),
    ("sessions_max", "Connections of a gateway: 1 or more. Default 4096."),
    ("member_sessions_max", "Connections of a member at a gateway: 1 or more. Default 64."),
    (
        "names_max",
        "Requests whose names a gateway knows, some 80 bytes each: 16 to 2147483648. Default 4194304.",
    ),
    ("clock_ms", "Milliseconds between two times that shards are told the time: 1 to 3600000. Default 1000."),
    (
        "engine_budget_ms",
        "Milliseconds of the processor for one request, before the engine counts as hanging: 1 to 60000. Default 4.",
    ),
    ("segment_mib", "MiB of one file of a log: 2 to 1024. Default 4."),
    (
        "gateways",
        "Where gateways listen, 1 to 16 addresses; port 0 takes a free one. Default [\"127.0.0.1:7100\"].",
    ),
    (
        "fix",
        "Where gateways listen for FIX (docs/protocols/fix.md), as many addresses; none: they do not. Default [].",
    ),
    (
        "ouch",
        "Where gateways listen for OUCH (docs/protocols/ouch.md), likewise. Passwords go there in the clear unless `tls` is \"on\". Default [].",
    ),
    (
        "tap",
        "true: gateways keep what their connections said, byte for byte, in tap/ (docs/protocols/tap.md). Default false.",
    ),
    ("tap_keep_mib", "How much of it each keeps, MiB: 64 to 16777216; the oldest goes. Default 1024."),
    (
        "sign_on",
        "\"required\": sessions prove who they are, by keys (docs/security.md); \"open\": anybody is any member. Default \"required\".",
    ),
    (
        "operator_key",
        "The public key of the first operator, 64 hexadecimal digits; made at the first start if it is missing.",
    ),
    ("index_rows", "Rows of a run of the recorders' indexes, 24 bytes each: 1 to 16777216. Default 262144."),
    (
        "retention_days",
        "Days before the last one that recorders keep of what is archived; 0 keeps all. Default 0.",
    ),
    (
        "day",
        "When business days begin and end, UTC; day orders expire at the end. Left out, by hand: `pares admin day`. Here: every day, all day.",
    ),
    (
        "feed",
        "Who tells the market data, and where to (docs/operations.md, Market data). Left out, nobody does; `pares up --feed` adds it.",
    ),
    (
        "feed.publishers",
        "Each sends everything: two or more one line each by turns, one alone on both. 1 to 8. Default 2.",
    ),
    (
        "feed.line_a",
        "Line A of shard 0: a multicast group, or the one receiver. Shard S has the port S higher.",
    ),
    ("feed.line_b", "Line B."),
    ("feed.interface", "The interface by which multicast leaves. Default \"0.0.0.0\", the system's choice."),
    ("feed.ttl", "Networks that multicast may cross: 0 stays on this host. Default 1."),
    ("feed.replayers", "Where snapshots and what lines lost are had, by UDP and TCP, 1 to 8 addresses."),
    (
        "feed.tls",
        "\"on\": the replayers' TCP ports are TLS 1.3; receivers need keys/ca.pem. Lines stay in the clear. Default \"off\".",
    ),
    (
        "feed.exposed",
        "true: beyond this machine, although nothing on lines is encrypted or proved. Default false.",
    ),
    (
        "gateways_exposed",
        "true: beyond loopback without TLS or certificates, on your responsibility. Default false.",
    ),
    (
        "tls",
        "\"on\": the gateways' ports are TLS 1.3, those for FIX and OUCH too, with certificates in keys/. Default \"off\".",
    ),
    (
        "tls_names",
        "Host names and addresses that the gateways' certificates bear besides their own. Default [].",
    ),
    (
        "client_certificates",
        "\"required\": members show a certificate (`pares certificate NAME`). Default \"none\".",
    ),
    (
        "instruments",
        "What is traded. Each has an id, a symbol, and if it is not alone in it a shard. Prices are in ten-thousandths; steps, limits, bands, \
         calls and timetables: docs/operations.md.",
    ),
];

/// The comment on a setting.
fn comment(setting: &str) -> Option<&'static str> {
    COMMENTS.iter().find(|(name, _)| *name == setting).map(|(_, comment)| *comment)
}

/// A configuration file with a comment before each setting; of a list of tables before the first.
pub(super) fn with_comments(text: &str) -> String {
    let mut commented = String::from(
        "# A system of Pares. All of its nodes must be down when this file changes.\n# `pares check-config` says whether it is legal, and what to think about.\n\n",
    );
    let (mut last, mut table) = (String::new(), "");
    for line in text.lines() {
        let key = line.split(" = ").next().unwrap_or_default();
        let setting = if line.starts_with('[') {
            table = line.trim_start_matches('[').trim_end_matches(']');
            table.to_owned()
        } else if table.is_empty() {
            key.to_owned()
        } else {
            format!("{table}.{key}")
        };
        if let Some(comment) = comment(&setting).filter(|_| setting != last) {
            commented.push_str(&format!("# {comment}\n"));
            last = setting;
        }
        commented.push_str(line);
        commented.push('\n');
    }
    commented
}

#[cfg(test)]
mod tests {
    use super::super::{FeedConfig, SystemConfig};
    use super::*;

    /// A new system's file does not have them.
    fn is_optional(setting: &str) -> bool {
        setting == "operator_key" || setting.starts_with("feed")
    }

    #[test]
    fn a_new_systems_file_has_a_comment_on_each_setting_and_means_what_it_says() {
        let fresh = SystemConfig::fresh();
        let text = fresh.text();
        assert_eq!(SystemConfig::parse(&text).unwrap(), fresh);
        for (setting, comment) in COMMENTS.iter().filter(|(setting, _)| !is_optional(setting)) {
            let named = text.contains(&format!("\n# {comment}\n{setting} = "))
                || text.contains(&format!("\n# {comment}\n[{setting}]\n"))
                || text.contains(&format!("\n# {comment}\n[[{setting}]]"));
            assert!(named, "{setting}");
            assert_eq!(text.matches(comment).count(), 1, "{setting}");
        }
    }

    #[test]
    fn what_a_feed_is_told_has_comments_of_its_own() {
        let with_feed = SystemConfig { feed: Some(FeedConfig::default()), ..SystemConfig::fresh() };
        let text = with_feed.text();
        assert_eq!(SystemConfig::parse(&text).unwrap(), with_feed);
        let (gateways, feed) = text.split_once("[feed]\n").unwrap();
        assert!(gateways.contains("# \"on\": the gateways'"));
        for line in feed.lines().take_while(|line| !line.starts_with('[')) {
            let Some((setting, value)) = line.split_once(" = ") else { continue };
            let comment = comment(&format!("feed.{setting}")).unwrap_or_else(|| panic!("{setting}"));
            assert!(feed.contains(&format!("# {comment}\n{line}\n")), "{setting}");
            let default = comment.rsplit_once("Default ").map(|(_, default)| default.trim_end_matches('.'));
            let default = default.map(|default| default.split(", ").next().unwrap_or_default());
            assert!(default.is_none_or(|default| default == value), "{line}: {comment}");
        }
    }

    #[test]
    fn a_comments_default_is_that_of_a_new_system() {
        let text = toml::to_string(&SystemConfig::fresh()).unwrap();
        let with_default = COMMENTS
            .iter()
            .filter(|(setting, _)| !["instruments", "day"].contains(setting) && !is_optional(setting));
        for (setting, comment) in with_default {
            let (_, default) = comment.rsplit_once("Default ").unwrap();
            let line = format!("{setting} = {}\n", default.trim_end_matches('.'));
            assert!(text.contains(&line), "{line}{text}");
        }
    }
}
