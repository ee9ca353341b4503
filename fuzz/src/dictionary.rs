//! The text of a FIX dictionary, of which the build makes tables: one with a fault is refused, and no build panics.

#[path = "../../crates/doors/fix/build/tables.rs"]
mod tables;

/// Makes tables of a text, alone and beside itself.
pub fn dictionary(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(code) = tables::tables(&[("own.txt", text)]) else { return };
    assert!(code.contains("pub static OWN: FixDictionary"), "it has the dictionary");
    let twice =
        tables::tables(&[("own.txt", text), ("other.txt", text)]).expect("the same names for the same tags");
    assert!(twice.starts_with(code.split("/// Groups within groups.").next().expect("a beginning")));
}

/// A small one, with a field of each kind.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    vec![SOUND.as_bytes().to_vec()]
}

const SOUND: &str = "\
version FIX.4.4
tags 956
types 0 V
field 8 BeginString STRING
field 9 BodyLength LENGTH
field 10 CheckSum STRING
field 93 SignatureLength LENGTH
field 89 Signature DATA 93
field 146 NoRelatedSym NUMINGROUP
field 55 Symbol CHAR A B
field 386 NoTradingSessions NUMINGROUP
field 336 TradingSessionID STRING
group 146 55|386
group 386 336
header 8* 9*
trailer 93 89 10*
message V MarketDataRequest 146*
";
