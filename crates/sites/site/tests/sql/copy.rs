//! COPY FROM STDIN: rows that come in one stream.

use super::*;

fn rows_of(numbers: std::ops::Range<i32>) -> String {
    numbers.map(|number| format!("{number}\tm{number}\t1\n")).collect()
}

#[test]
fn rows_that_are_copied_in_are_at_every_site() {
    let Some((_sites, mut here, mut there)) = bank() else { return };
    let mut copy = here.copy_in("COPY account FROM STDIN").unwrap();
    copy.write_all(rows_of(100..1_100).as_bytes()).unwrap();
    assert_eq!(copy.finish().unwrap(), 1_000);
    assert_eq!(count(&mut here), Some(1_005));
    until(|| count(&mut there) == Some(1_005));
    until(|| rows(&mut here) == rows(&mut there));
    // In a transaction, with what else it does; and another way than the driver's, which prepares.
    let mut transaction = there.transaction().unwrap();
    transaction.execute("DELETE FROM account WHERE number >= 100", &[]).unwrap();
    let mut copy = transaction.copy_in("COPY account (number, balance) FROM STDIN (FORMAT csv)").unwrap();
    copy.write_all(b"6,7\n").unwrap();
    copy.finish().unwrap();
    transaction.commit().unwrap();
    alike(&mut here, &mut there, "(1,m1,100) (2,m2,100) (3,m3,100) (4,m4,100) (5,m5,100) (6,,7)");
}

#[test]
fn failed_copy_does_nothing_session_continues() {
    let Some((_sites, mut here, mut there)) = bank() else { return };
    // The server has seen enough long before the client has said all.
    for (rows, expected) in [
        (rows_of(5..50_000), "23505"),
        ("no row\n".repeat(50_000), "22P02"),
        ("6\tm6\t-1\n".into(), "23514"),
        (format!("6\t{}\t1\n", "x".repeat(600 << 10)), "54000"),
        (rows_of(6..60_000), "54000"),
        ((6..8_000).map(|row| format!("{row}\tm{row}{}\t1\n", "x".repeat(200))).collect(), "54000"),
    ] {
        let mut copy = here.copy_in("COPY account FROM STDIN").unwrap();
        let written = copy.write_all(rows.as_bytes());
        let refused = copy.finish().unwrap_err();
        assert_eq!(code(&refused), expected, "{written:?}");
    }
    let mut copy = here.copy_in("COPY account FROM STDIN").unwrap();
    copy.write_all(b"6\tm6\t1\n").unwrap();
    drop(copy);
    let mut transaction = here.transaction().unwrap();
    let mut copy = transaction.copy_in("COPY account FROM STDIN").unwrap();
    copy.write_all(b"1\tm6\t1\n").unwrap();
    assert_eq!(code(&copy.finish().unwrap_err()), "23505");
    assert_eq!(code(&transaction.query("SELECT 1", &[]).unwrap_err()), "25P02");
    transaction.rollback().unwrap();
    alike(&mut here, &mut there, "(1,m1,100) (2,m2,100) (3,m3,100) (4,m4,100) (5,m5,100)");
}

#[test]
fn psql_copies_from_a_file_and_from_its_script() {
    let Some((sites, mut here, mut there)) = bank() else { return };
    let file = sites.dir.join("rows");
    std::fs::write(&file, rows_of(6..8)).unwrap();
    let script = format!(
        "\\copy account FROM '{}'\nCOPY account FROM STDIN;\n8\tm8\t1\n\\.\nSELECT 'and on';\n\
         BEGIN; DELETE FROM account WHERE number = 1; COPY account (number, balance) FROM STDIN;\n1\t5\n\\.\nCOMMIT;\n",
        file.display()
    );
    let mut psql = Command::new("psql");
    psql.args([&sites.sql_url(A0), "-X", "-A", "-t", "-f", "-"]);
    let mut psql =
        psql.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped()).spawn().unwrap();
    psql.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = psql.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said, "COPY 2\nCOPY 1\nand on\nBEGIN\nDELETE 1\nCOPY 1\nCOMMIT\n");
    alike(
        &mut here,
        &mut there,
        "(1,,5) (2,m2,100) (3,m3,100) (4,m4,100) (5,m5,100) (6,m6,1) (7,m7,1) (8,m8,1)",
    );
}

#[test]
fn one_who_stops_in_the_middle_of_a_copy_holds_nobody_up() {
    let Some((sites, mut here, mut there)) = bank() else { return };
    let mut beside = sites.sql(A0);
    let mut transaction = here.transaction().unwrap();
    transaction.execute("DELETE FROM account WHERE number = 1", &[]).unwrap();
    let mut copy = transaction.copy_in("COPY account FROM STDIN").unwrap();
    copy.write_all(b"6\tm6\t1\n").unwrap();
    copy.flush().unwrap();
    there.execute("UPDATE account SET balance = 8 WHERE number = 1", &[]).unwrap();
    alike(&mut beside, &mut there, "(1,m1,8) (2,m2,100) (3,m3,100) (4,m4,100) (5,m5,100)");
    assert!(copy.finish().is_err(), "it has lost");
}
