//! What a client receives for a statement, frame by frame: a driver may take *done* for the outcome.

use super::raw::{Raw, executed, flush, sync};
use super::*;

fn insert(number: u32, email: &str) -> Vec<u8> {
    executed(&format!("INSERT INTO account VALUES ({number}, {email}, 1)"))
}

const TOO_LARGE: &str = "repeat('x', 600000)";

#[test]
fn statement_is_confirmed_only_after_certification() {
    let Some((sites, mut here, mut there)) = bank() else { return };
    let mut raw = Raw::begun(&sites);
    let (close, describe) = (framed(b"C", b"P\0"), framed(b"D", b"S\0"));
    let told_of = |raw: &mut Raw, messages: &[Vec<u8>]| {
        raw.say(messages);
        raw.tags('Z')
    };
    assert_eq!(told_of(&mut raw, &[insert(6, "'six'"), close.clone(), sync()]), "12C3Z");
    // Refused as it commits: whatever was asked behind it, no `C` comes first.
    assert_eq!(told_of(&mut raw, &[insert(7, TOO_LARGE), sync()]), "12EZ");
    let behind = [insert(7, TOO_LARGE), close, describe, insert(8, "'eight'"), sync()];
    assert_eq!(told_of(&mut raw, &behind), "12EZ");
    // The server says no to the second.
    assert_eq!(told_of(&mut raw, &[insert(8, "'eight'"), insert(6, "'again'"), sync()]), "12EZ");
    // One who wants all at once gets it, as from a server whose constraints wait for the end.
    raw.say(&[insert(9, "'nine'"), flush()]);
    assert_eq!(raw.tags('C'), "12C");
    assert_eq!(told_of(&mut raw, &[insert(10, TOO_LARGE), sync()]), "12EZ");
    let all = "(1,m1,100) (2,m2,100) (3,m3,100) (4,m4,100) (5,m5,100) (6,six,1)";
    alike(&mut here, &mut there, all);
}

#[test]
fn rolled_back_transaction_is_never_confirmed() {
    let Some((sites, mut here, mut there)) = bank() else { return };
    let mut raw = Raw::begun(&sites);
    raw.say(&[executed("UPDATE account SET balance = 1 WHERE number = 1")]);
    // The row's lock is in the way of what comes from there.
    until(|| {
        let waits = "SELECT count(*) FROM pg_locks WHERE relation = 'account'::regclass AND mode = 'RowExclusiveLock'";
        here.query_one(waits, &[]).unwrap().get::<_, i64>(0) > 0
    });
    there.execute("UPDATE account SET balance = 2 WHERE number = 1", &[]).unwrap();
    until(|| rows(&mut here).starts_with("(1,m1,2)"));
    raw.say(&[sync()]);
    assert_eq!(raw.tags('Z'), "12EZ");
}
