//! What tools say by themselves: pools, dumps, migrations.

use super::*;

#[test]
fn pools_and_dumps_say_what_they_are_used_to() {
    let Some((sites, mut here, _there)) = bank() else { return };
    here.batch_execute("SELECT pg_advisory_unlock_all(); CLOSE ALL; UNLISTEN *; RESET ALL;").unwrap();
    here.batch_execute("UNLISTEN news").unwrap();
    here.batch_execute(
        "BEGIN; LOCK TABLE account IN ACCESS SHARE MODE; DELETE FROM account WHERE number = 5; COMMIT",
    )
    .unwrap();
    let dump = Command::new("pg_dump")
        .args([&sites.sql_url(A0), "--table=account", "--inserts", "--data-only"])
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&dump.stdout);
    assert!(
        dump.status.success() && text.contains("VALUES (4, 'm4', 100)") && !text.contains("(5,"),
        "{dump:?}"
    );
}

#[test]
fn tables_and_columns_with_rows_are_renamed_everywhere() {
    let Some((mut sites, mut here, mut there)) = bank() else { return };
    here.batch_execute("ALTER TABLE account RENAME COLUMN email TO owner").unwrap();
    here.batch_execute("ALTER TABLE account RENAME COLUMN owner TO holder").unwrap();
    here.batch_execute("ALTER TABLE account RENAME TO accounts").unwrap();
    here.batch_execute("UPDATE accounts SET holder = 'Ada' WHERE number = 1").unwrap();
    until(|| there.query("SELECT FROM accounts WHERE holder = 'Ada'", &[]).is_ok_and(|rows| rows.len() == 1));
    there.batch_execute("DELETE FROM accounts WHERE number > 1").unwrap();
    sites.restart(A0);
    let mut here = sites.sql(A0);
    there.batch_execute("ALTER TABLE accounts RENAME TO account").unwrap();
    until(|| here.query("SELECT FROM account", &[]).is_ok());
    alike(&mut here, &mut there, "(1,Ada,100)");
}

#[test]
fn schema_change_error_carries_full_server_message() {
    let Some((_sites, mut here, _there)) = bank() else { return };
    here.batch_execute("CREATE VIEW shown AS SELECT number FROM account").unwrap();
    let refused = here.batch_execute("DROP TABLE account").unwrap_err();
    let said = refused.as_db_error().unwrap();
    assert_eq!(said.code().code(), "2BP01");
    assert!(
        said.detail().unwrap().contains("view shown") && said.hint().unwrap().contains("CASCADE"),
        "{said:?}"
    );
}
