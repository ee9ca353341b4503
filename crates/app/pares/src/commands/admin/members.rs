//! `pares admin member list`: who participates, and how much each may ask.

use pares_node::{Layout, SystemConfig};
use pares_register::{Permit, Register};
use pares_types::{Key, Limits, MemberId};
use serde_json::{Value, json};

use super::operator::EXCHANGE;
use crate::error::CommandResult;
use crate::standing::Standing;
use crate::text::{self, Table};

/// The limits that are set, in words.
pub(crate) fn limit_words(limits: &Limits, position_max: u64) -> String {
    let set: Vec<String> = limit_fields(limits, position_max)
        .into_iter()
        .filter(|(_, value)| *value != 0)
        .map(|(name, value)| format!("{name} {value}"))
        .collect();
    if set.is_empty() { "no limits".into() } else { set.join(", ") }
}

fn limit_fields(limits: &Limits, position_max: u64) -> [(&'static str, u64); 7] {
    [
        ("quantity", limits.quantity_max),
        ("value", limits.value_max),
        ("collar", limits.collar.into()),
        ("orders", limits.orders_max.into()),
        ("position", position_max),
        ("rate", limits.rate_max.into()),
        ("burst", limits.burst_max.into()),
    ]
}

/// A member as a whole (session 0, without a key), or one of its sessions.
type Row = (MemberId, u16, &'static str, Permit);

/// Shows the register as the record has it.
pub(super) fn list(config: &SystemConfig, layout: &Layout, as_json: bool) -> CommandResult {
    let standing = Standing::read(config, layout)?;
    let register = standing.register();
    let rows: Vec<Row> = register
        .members()
        .flat_map(|(member, permit)| {
            let sessions = register.sessions(member).map(move |(session, key, permit)| {
                let kind = if matches!(key, Key::Ed25519(_)) { "ed25519" } else { "shared" };
                (member, session, kind, permit)
            });
            [(member, 0, "", permit)].into_iter().chain(sessions)
        })
        .collect();
    text::print(&if as_json { listed_json(register, &rows) } else { listed_table(register, rows) });
    Ok(())
}

fn listed_json(register: &Register, rows: &[Row]) -> String {
    let entry = |(member, session, key, permit): &Row| {
        let limits: serde_json::Map<String, Value> = limit_fields(&permit.limits, permit.position_max)
            .into_iter()
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .collect();
        let instruments: Vec<u32> = register.listed(*member, *session).map(|id| id.0).collect();
        json!({
            "member": member.0, "session": session, "key": key, "rights": permit.rights.to_string(),
            "instruments": instruments, "limits": limits,
            "copies": register.copied(*member, *session).map(|copied| copied.0),
        })
    };
    let entries: Vec<Value> = rows.iter().map(entry).collect();
    json!({ "four_eyes": register.needs_four_eyes(), "register": entries }).to_string()
}

fn listed_table(register: &Register, rows: Vec<Row>) -> String {
    let mut table = Table::new(["member", "session", "key", "rights", "instruments", "limits"]);
    for (member, session, key, permit) in rows {
        let name = if member == EXCHANGE { "exchange".into() } else { member.to_string() };
        let numbers: Vec<String> = register.listed(member, session).map(|id| id.to_string()).collect();
        let copied = register.copied(member, session);
        let session = if session == 0 { "all".into() } else { session.to_string() };
        let limits = limit_words(&permit.limits, permit.position_max);
        let rights = match copied {
            Some(copied) => format!("copies member {copied}"),
            None => permit.rights.to_string(),
        };
        table.row(vec![name, session, key.into(), rights, numbers.join(" "), limits]);
    }
    let four_eyes = if register.needs_four_eyes() { "on" } else { "off" };
    format!(
        "{}A request must be allowed by both the member (session \"all\") and the session. Four eyes: {four_eyes}\n",
        table.render()
    )
}
