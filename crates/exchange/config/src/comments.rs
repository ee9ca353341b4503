//! The comment on each setting in the configuration file of a new system: what it is, its unit, its legal range, its default.
//!
//! `cargo xtask tidy` checks that every setting has one. docs/operations.md says more of each.

const COMMENTS: &[(&str, &str)] = &[
    (
        "durability",
        "What an answer survives. \"disk\": a power loss; \"os\": the death of any process. Default \"disk\".",
    ),
    ("venues", "Matching engines, each of which executes everything: 1 to 16. Default 2."),
    ("recorders", "Copies of the record: 1 to 16. Default 2."),
    ("quorum", "Recorders that must store a record before it is answered: 1 to `recorders`. Default 1."),
    (
        "sequencer",
        "Whether venues agree on an order. false only with a single gateway, for measurements. Default true.",
    ),
    (
        "window",
        "Positions of a shard by which venues may lead the recorders: a power of two, 16 or more. Default 65536.",
    ),
    ("checkpoint_every", "Positions, over all shards, between two checkpoints: 1 or more. Default 4096."),
    (
        "in_flight_max",
        "Unanswered requests of a gateway: one per shard or more, 4194304 over all gateways at most. Default 32768.",
    ),
    (
        "wait_target_ms",
        "Milliseconds that requests may wait before orders are refused; cancels are accepted. 0: no target, 10000 at most. Default 10.",
    ),
    ("session_in_flight_max", "Unanswered requests of a session: 1 to 65535. Default 16384."),
    (
        "session_rate_max",
        "Orders and amends a session may send in a second; cancels do not count. 0: no limit. Default 10000.",
    ),
    ("session_burst_max", "Orders and amends a session may send at once (burst). Default 1000."),
    (
        "quorum_patience_ms",
        "Milliseconds without a record before new requests are refused: 400 to 3600000, or 0: never. Default 500.",
    ),
    ("sessions_max", "Connections of a gateway: 1 or more. Default 4096."),
    ("member_sessions_max", "Connections of a member at a gateway: 1 or more. Default 64."),
    (
        "names_max",
        "Request names that a gateway keeps in memory, some 80 bytes each: 16 to 2147483648. Default 4194304.",
    ),
    ("clock_ms", "Milliseconds between two time messages to the shards: 1 to 3600000. Default 1000."),
    (
        "engine_budget_ms",
        "Processor time in milliseconds for one request before the matching engine counts as stuck: 1 to 60000. Default 4.",
    ),
    ("segment_mib", "MiB of one file of a log: 2 to 1024. Default 4."),
    (
        "gateways",
        "Where gateways listen, 1 to 16 addresses; port 0 takes a free one. Default [\"127.0.0.1:7100\"].",
    ),
    (
        "fix",
        "Where gateways listen for FIX (docs/protocols/fix.md): one address per gateway, or none. Default [].",
    ),
    (
        "ouch",
        "Where gateways listen for OUCH (docs/protocols/ouch.md): one address per gateway, or none. Passwords are unencrypted unless `tls` is \"on\". Default [].",
    ),
    (
        "tap",
        "true: gateways record the bytes of all connections in tap/ (docs/protocols/tap.md). Default false.",
    ),
    ("tap_keep_mib", "MiB of tap that each gateway keeps, the newest: 64 to 16777216. Default 1024."),
    (
        "sign_on",
        "\"required\": sessions sign on with keys (docs/security.md); \"open\": any client can sign on as any member. Default \"required\".",
    ),
    (
        "operator_key",
        "The public key of the first operator, 64 hexadecimal digits; made at the first start if it is missing.",
    ),
    ("index_rows", "Rows of a run of the recorders' indexes, 24 bytes each: 1 to 16777216. Default 262144."),
    ("retention_days", "Archived days before the last one that recorders keep; 0 keeps all. Default 0."),
    (
        "day",
        "When business days begin and end, UTC; day orders expire at the end. Without this table, by hand: `pares admin day`. Here: every day, all day.",
    ),
    (
        "feed",
        "Market data publishers and their destinations (docs/operations.md, Market data). Without this table there are none; `pares up --feed` adds it.",
    ),
    (
        "feed.publishers",
        "Publishers; each sends everything. Several alternate between the two lines, a single one sends on both. 1 to 8. Default 2.",
    ),
    (
        "feed.line_a",
        "Line A of shard 0: a multicast group, or the address of one receiver. Shard S uses the port S higher.",
    ),
    ("feed.line_b", "Line B."),
    (
        "feed.interface",
        "The network interface for outgoing multicast. Default \"0.0.0.0\", the system's choice.",
    ),
    ("feed.ttl", "Networks that multicast may cross: 0 stays on this host. Default 1."),
    (
        "feed.replayers",
        "Where replayers serve snapshots and lost messages, over UDP and TCP: 1 to 8 addresses.",
    ),
    (
        "feed.tls",
        "\"on\": the replayers' TCP ports use TLS 1.3; receivers need keys/ca.pem. Lines stay unencrypted. Default \"off\".",
    ),
    (
        "feed.exposed",
        "true: allow addresses beyond this machine, although lines are neither encrypted nor authenticated. Default false.",
    ),
    (
        "gateways_exposed",
        "true: allow gateways beyond loopback without TLS or certificates, at your own risk. Default false.",
    ),
    (
        "tls",
        "\"on\": all gateway ports, including FIX and OUCH, use TLS 1.3 with certificates in keys/. Default \"off\".",
    ),
    ("tls_names", "Additional host names and addresses in the gateways' certificates. Default []."),
    (
        "client_certificates",
        "\"required\": members must present a certificate (`pares certificate NAME`). Default \"none\".",
    ),
    (
        "instruments",
        "The instruments. Each has an id, a symbol, and a shard unless it has one to itself. Prices are in \
         ten-thousandths; ticks, limits, bands, calls and timetables: docs/operations.md.",
    ),
];

/// The comment on a setting.
fn comment(setting: &str) -> Option<&'static str> {
    COMMENTS.iter().find(|(name, _)| *name == setting).map(|(_, comment)| *comment)
}

/// A configuration file with a comment before each setting; of a list of tables before the first.
pub(crate) fn with_comments(text: &str) -> String {
    let mut commented = String::from(
        "# Configuration of a Pares system. Stop all nodes before you change this file.\n# `pares check-config` checks it, and lists what to consider before production.\n\n",
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
    use super::*;
    use crate::{FeedConfig, SystemConfig};

    /// A new system's file does not have them.
    fn is_optional(setting: &str) -> bool {
        setting == "operator_key" || setting.starts_with("feed")
    }

    #[test]
    fn new_config_comments_every_setting_and_is_default() {
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
        assert!(gateways.contains("# \"on\": all gateway ports"));
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
