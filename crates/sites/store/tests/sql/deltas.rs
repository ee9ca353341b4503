//! Columns that change by addition.

use super::*;

const TILL: &str = "
    CREATE TABLE till (id int PRIMARY KEY, name text UNIQUE, balance numeric(12, 2) NOT NULL DEFAULT 0, sales int);
    COMMENT ON COLUMN till.balance IS 'pares: delta';
    COMMENT ON COLUMN till.sales IS 'pares: delta'";

/// Two sites with one till, of 100 and no sales.
fn shop() -> Option<Bank> {
    let mut shop = Bank::of(TILL, &["till"])?;
    shop.commit(0, &["INSERT INTO till VALUES (1, 'a', 100, 0)"]);
    Some(shop)
}

impl Bank {
    /// Whether the later of two, one at each site, that have not seen each other commits too.
    fn both_commit(&mut self, first: &str, second: &str) -> bool {
        let later = self.sites[1].run(&[second]).unwrap();
        self.commit(0, &[first]);
        let passes = self.certifier.clone().passes(&later);
        if passes {
            self.apply(vec![later]);
        }
        passes
    }
}

const ADD: &str = "UPDATE till SET balance = balance + 2.50 WHERE id = 1";

#[test]
fn two_that_add_to_one_row_both_commit_and_both_additions_hold() {
    let Some(mut shop) = shop() else { return };
    assert!(shop.both_commit(ADD, "UPDATE till SET balance = balance - 0.75, sales = sales + 1"));
    assert_eq!(shop.rows("till"), ["(1,a,101.75,1)"]);
    // Who writes what it computed from what it read adds the difference.
    assert!(shop.both_commit("UPDATE till SET balance = 101.76", "UPDATE till SET balance = 101.85"));
    assert_eq!(shop.rows("till"), ["(1,a,101.86,1)"]);
    let adds = shop.sites[0].run(&[ADD, ADD]).unwrap();
    let changes: Vec<_> = adds.writes.iter().map(|write| &write.change).collect();
    assert!(changes.iter().all(|change| matches!(change, Change::Add(0 | 500))), "{changes:?}");
}

#[test]
fn what_else_is_done_to_the_row_conflicts_with_additions() {
    for other in [
        "UPDATE till SET name = 'b'",
        "UPDATE till SET name = 'b', balance = balance + 1",
        "UPDATE till SET balance = balance",
        "UPDATE till SET sales = NULL",
        "UPDATE till SET balance = balance + 5000",
        "UPDATE till SET id = 2",
        "DELETE FROM till",
    ] {
        for turned in [false, true] {
            let Some(mut shop) = shop() else { return };
            let (first, second) = if turned { (other, ADD) } else { (ADD, other) };
            assert!(!shop.both_commit(first, second), "{first}, then {second}");
        }
    }
}

#[test]
fn rows_are_sums_of_all_additions_even_in_pieces() {
    let Some(mut shop) = shop() else { return };
    for (statement, expected) in [
        (ADD, "(1,a,102.50,0)"),
        ("UPDATE till SET name = 'b'", "(1,b,102.50,0)"),
        (ADD, "(1,b,105.00,0)"),
        ("UPDATE till SET sales = sales - 7", "(1,b,105.00,-7)"),
        ("UPDATE till SET balance = 9000000000.01", "(1,b,9000000000.01,-7)"),
        (ADD, "(1,b,9000000002.51,-7)"),
        ("DELETE FROM till", ""),
        ("INSERT INTO till VALUES (1, 'c', 1, NULL)", "(1,c,1.00,)"),
        (ADD, "(1,c,3.50,)"),
        ("UPDATE till SET sales = 3, id = 2 WHERE id = 1", "(2,c,3.50,3)"),
        ("UPDATE till SET sales = sales + 1", "(2,c,3.50,4)"),
    ] {
        shop.commit(0, &[statement]);
        assert_eq!(shop.rows("till").concat(), expected, "{statement}");
    }
    shop.commit(1, &["INSERT INTO till SELECT i, i::text, i, 0 FROM generate_series(10, 400) i"]);
    shop.commit(0, &["UPDATE till SET balance = balance - 0.01"]);
    let joining = Site::new(server().unwrap(), TILL, &["till"]);
    joining.take(&shop.sites[0], 4000);
    assert_eq!(joining.rows("till"), shop.rows("till"));
}

#[test]
fn watched_or_uncountable_column_refuses_addition() {
    let Some(server) = server() else { return };
    for (column, why) in [
        ("b int CHECK (b >= 0)", "CHECK"),
        ("b bigint UNIQUE", "CHECK"),
        ("b int REFERENCES a", "CHECK"),
        ("b int GENERATED ALWAYS AS (a + 1) STORED", "CHECK"),
        ("b smallint", "an integer"),
        ("b numeric", "an integer"),
        ("b numeric(37, 2)", "an integer"),
        ("b text", "an integer"),
    ] {
        let options = Options::new(server.database());
        let mut client = Client::connect(&options.connection, NoTls).unwrap();
        let make =
            format!("CREATE TABLE a (a int PRIMARY KEY, {column}); COMMENT ON COLUMN a.b IS 'pares: delta'");
        client.batch_execute(&make).unwrap();
        let refused = capture(&options, &["a"]).unwrap_err().to_string();
        assert!(refused.contains("cannot be updated by addition") && refused.contains(why), "{refused}");
    }
}
