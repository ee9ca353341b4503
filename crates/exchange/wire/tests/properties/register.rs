//! Entries of the register.

use pares_types::{Entry, InstrumentId, Key, Limits, Proposal, Registration, Rights};
use proptest::prelude::*;

use super::{instrument, member};

pub(crate) fn registration() -> impl Strategy<Value = Registration> {
    let key = any::<[u8; 32]>();
    let limits = (any::<(u64, u64)>(), any::<(u32, u32, u32, u32)>()).prop_map(
        |((quantity_max, value_max), (collar, orders_max, rate_max, burst_max))| Limits {
            quantity_max,
            value_max,
            collar,
            orders_max,
            rate_max,
            burst_max,
        },
    );
    let proposal = (instrument(), 1..=Proposal::KIND_MAX, any::<u32>(), any::<u128>())
        .prop_map(|(instrument, kind, operand, detail)| Proposal { instrument, kind, operand, detail });
    let rights = (0..=Rights::ALL.bits()).prop_map(|bits| Rights::from_bits(bits).expect("all are rights"));
    let entry = prop_oneof![
        Just(Entry::AddMember),
        Just(Entry::RemoveMember),
        key.prop_map(|key| Entry::SetKey(Key::Ed25519(key))),
        key.prop_map(|key| Entry::SetKey(Key::Shared(key))),
        Just(Entry::RevokeKey),
        rights.prop_map(Entry::SetRights),
        limits.prop_map(Entry::SetLimits),
        any::<bool>().prop_map(Entry::SetFourEyes),
        proposal.prop_map(Entry::Propose),
        any::<u32>().prop_map(|id| Entry::ListInstrument(InstrumentId(id))),
        any::<u32>().prop_map(|id| Entry::UnlistInstrument(InstrumentId(id))),
        any::<u64>().prop_map(Entry::SetPositionMax),
        member().prop_map(Entry::SetCopied),
    ];
    (member(), any::<u16>(), entry).prop_map(|(member, session, entry)| Registration {
        member,
        session,
        entry,
    })
}
