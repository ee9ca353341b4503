//! The broker's accounts as an application of sites.
//!
//! [`pares_broker`] says what a request reads and writes; this hands it a site's transactions and snapshots. A command that is refused is *done* as far as the site
//! is concerned: its entry in the log commits, and the reply says why. The site's own refusal, which leaves nothing behind, is for bytes that are no request, and for
//! numbers that no request can have.

use pares_broker::{BrokerError, BrokerRead, BrokerRequest, Ledger, Shelf, answer};
use pares_site::{Application, ApplicationError, View};
use pares_store::{Reads, StoreError, Work, WorkError};
use pares_wice::codec::{Coded, DecodeError};
use pares_wice::{Key, KeyRange, Value};

/// See the [module](self). Requests are [`BrokerRequest`]s, reads [`BrokerRead`]s.
#[derive(Clone, Copy, Debug, Default)]
pub struct Accounts;

impl Application for Accounts {
    fn execute(&self, request: &[u8], work: &mut Work<View<'_>>) -> Result<Vec<u8>, ApplicationError> {
        execute(request, work)
    }

    fn read(&self, request: &[u8], items: &dyn Reads) -> Result<Vec<u8>, ApplicationError> {
        let read = BrokerRead::from_bytes(request).or_else(no_request)?;
        answer(&read, &Snapshot(items)).or_else(|error| match error {
            BrokerError::Items(error) => Err(error.into()),
            other => refuse(other),
        })
    }

    fn views(&self) -> &'static str {
        include_str!("views.sql")
    }
}

/// Executes on whatever can be read: a site's view, or a store in memory in a test.
fn execute<R: Reads>(request: &[u8], work: &mut Work<R>) -> Result<Vec<u8>, ApplicationError> {
    let request = BrokerRequest::from_bytes(request).or_else(no_request)?;
    match pares_broker::execute(&request, &mut Transaction(work)) {
        Ok(reply) => Ok(reply.to_bytes()),
        Err(BrokerError::Items(error)) => Err(error.into()),
        Err(other) => refuse(other),
    }
}

fn refuse<T>(why: impl ToString) -> Result<T, ApplicationError> {
    Err(ApplicationError::Refused(why.to_string()))
}

fn no_request<T>(why: DecodeError) -> Result<T, ApplicationError> {
    refuse(format!("not a request of the broker: {why}"))
}

struct Transaction<'a, R>(&'a mut Work<R>);

impl<R: Reads> Ledger for Transaction<'_, R> {
    type Error = WorkError;

    fn get(&mut self, key: &Key) -> Result<Option<Value>, WorkError> {
        self.0.get(key)
    }

    fn put(&mut self, key: &Key, value: Value) {
        self.0.put(key, value);
    }

    fn delete(&mut self, key: &Key) {
        self.0.delete(key);
    }
}

struct Snapshot<'a>(&'a dyn Reads);

impl Shelf for Snapshot<'_> {
    type Error = StoreError;

    fn first(&self, range: &KeyRange, limit: usize) -> Result<Vec<(Key, Value)>, StoreError> {
        self.0.first(range, limit)
    }
}

#[cfg(test)]
mod tests {
    use pares_broker::{
        AccountSummary, Asked, AuditPage, BrokerReply, CustomerLimits, OrderAsked, PasswordString,
        PersonAsked, PersonRight, Refusal, UserName, WorkloadLine,
    };
    use pares_store::{Applied, Memory, Store};
    use pares_wice::index::Index;
    use pares_wice::{Change, Isolation, TransactionId, Version};

    use super::*;

    fn request(line: &str) -> Vec<u8> {
        let WorkloadLine { number, command, fault } = WorkloadLine::parse(line.as_bytes()).unwrap();
        of(number, Asked::Command { command, fault })
    }

    fn of(number: u64, asked: Asked) -> Vec<u8> {
        BrokerRequest { number, after: 0, name: None, time_ms: 1, quote: None, asked }.to_bytes()
    }

    fn person(asked: PersonAsked) -> Vec<u8> {
        of(0, Asked::Person { asked })
    }

    fn user(name: &str) -> UserName {
        UserName::new(name).unwrap()
    }

    fn new_person(name: &str, rights: &[PersonRight]) -> Vec<u8> {
        let (name, password) = (user(name), PasswordString("$argon2id$x".into()));
        person(PersonAsked::Add { name, password, rights: rights.to_vec(), takes_account: false })
    }

    fn takes_right(by: &str, name: &str) -> Vec<u8> {
        person(PersonAsked::SetRightsOf { by: user(by), name: user(name), rights: vec![] })
    }

    fn run(store: &Memory, line: &str) -> Result<BrokerReply, ApplicationError> {
        run_request(store, &request(line))
    }

    fn run_request(store: &Memory, request: &[u8]) -> Result<BrokerReply, ApplicationError> {
        let snapshot = store.snapshot().unwrap();
        let mut work = Work::new(&*snapshot);
        let reply = execute(request, &mut work)?;
        let id = TransactionId { client: 1, sequence: 1 };
        let writes = work.finish(id, 0, snapshot.version()).writes.into_iter();
        let writes = writes.map(|write| match write.change {
            Change::Put(value) => (write.key, Some(value)),
            Change::Delete => (write.key, None),
            Change::Add(_) => panic!("the broker adds to no counter"),
        });
        let version = Version(snapshot.version().0 + 1);
        store.apply(&[Applied { version, writes: writes.collect() }], None).unwrap();
        Ok(BrokerReply::from_bytes(&reply).unwrap())
    }

    fn run_unnumbered(store: &Memory) -> Result<Vec<u8>, ApplicationError> {
        let request =
            BrokerRequest { number: 0, ..BrokerRequest::from_bytes(&request("[1] ADD,jo,5.00")).unwrap() };
        execute(&request.to_bytes(), &mut Work::new(&*store.snapshot().unwrap()))
    }

    #[test]
    fn refused_command_is_logged_repeat_is_not() {
        let store = Memory::default();
        assert_eq!(run(&store, "[1] ADD,jo,5.00").unwrap(), BrokerReply::Cash { cash_cents: 500 });
        let refused = BrokerReply::Refused { refusal: Refusal::NothingPending };
        assert_eq!(run(&store, "[2] COMMIT_BUY,jo").unwrap(), refused);
        assert_eq!(run(&store, "[1] ADD,jo,5.00").unwrap(), BrokerReply::Cash { cash_cents: 500 });
        assert!(matches!(run_unnumbered(&store), Err(ApplicationError::Refused(_))));
        let items = store.snapshot().unwrap();
        let user = UserName::new("jo").unwrap();
        let log = BrokerRead::Log { user: Some(user.clone()), from: None };
        let page = AuditPage::from_bytes(&Accounts.read(&log.to_bytes(), &*items).unwrap()).unwrap();
        assert_eq!(page.entries.iter().map(|entry| entry.record.number).collect::<Vec<_>>(), [1, 2]);
        let summary = Accounts.read(&BrokerRead::Summary { user }.to_bytes(), &*items).unwrap();
        let summary = Option::<AccountSummary>::from_bytes(&summary).unwrap().unwrap();
        assert_eq!(summary.account.cash_cents, 500);
    }

    /// Executes both over one snapshot, as two sites do, and certifies one after the other; which of them commit.
    fn at_once(store: &Memory, both: [Vec<u8>; 2]) -> [bool; 2] {
        let snapshot = store.snapshot().unwrap();
        let mut version = snapshot.version();
        let mut index = Index::new(version, both.len(), usize::MAX);
        both.map(|request| {
            let mut work = Work::new(&*snapshot);
            execute(&request, &mut work).unwrap();
            version.0 += 1;
            let id = TransactionId { client: version.0, sequence: 1 };
            let transaction = Isolation::Snapshot.certified(work.finish(id, 0, snapshot.version()));
            let commits = index.certify(&transaction).is_ok();
            if commits {
                index.record(version, id, &transaction.writes);
            }
            commits
        })
    }

    fn two_supervisors() -> Memory {
        let store = Memory::default();
        for name in ["ann", "bob"] {
            run_request(&store, &new_person(name, &[PersonRight::Supervisor])).unwrap();
        }
        run(&store, "[1] ADD,jo,5.00").unwrap();
        store
    }

    #[test]
    fn rival_supervisors_at_two_sites_leave_one_with_right() {
        let store = two_supervisors();
        assert_eq!(at_once(&store, [takes_right("ann", "bob"), takes_right("bob", "ann")]), [true, false]);
    }

    #[test]
    fn sign_up_fails_while_account_opens_at_other_site() {
        let store = two_supervisors();
        let both = [new_person("max", &[PersonRight::Trader]), request("[2] ADD,max,5.00")];
        assert_eq!(at_once(&store, both.clone()), [true, false]);
        let [signs_up, opens] = both;
        assert_eq!(at_once(&store, [opens, signs_up]), [true, false]);
    }

    #[test]
    fn ex_supervisor_elsewhere_sets_no_limits_or_blocks() {
        let store = two_supervisors();
        let (jo, ann) = (user("jo"), user("ann"));
        let limits = CustomerLimits::default();
        let limit = OrderAsked::Limit { user: jo.clone(), limits, by: ann.clone() };
        for asked in [limit, OrderAsked::Block { user: jo, is_blocked: true, by: ann }] {
            let asked = of(7, Asked::Order { asked });
            assert_eq!(at_once(&store, [takes_right("bob", "ann"), asked]), [true, false]);
        }
    }

    #[test]
    fn what_is_no_request_is_refused() {
        let store = Memory::default();
        let items = store.snapshot().unwrap();
        for bytes in [&b""[..], b"put a 5", &[3, 0]] {
            let refused = execute(bytes, &mut Work::new(&*items));
            assert!(matches!(refused, Err(ApplicationError::Refused(_))), "{bytes:?}");
            assert!(matches!(Accounts.read(bytes, &*items), Err(ApplicationError::Refused(_))), "{bytes:?}");
        }
    }
}
