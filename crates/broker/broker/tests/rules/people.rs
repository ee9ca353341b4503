//! People: what is asked about them as bytes, and that it leaves accounts and logs alone.

use std::collections::BTreeMap;

use pares_broker::{
    Asked, BrokerRead, BrokerReply, BrokerRequest, PasswordString, Person, PersonAsked, PersonRead,
    PersonRight, Refusal, SessionDigest, UserName, WorkloadLine, answer, execute,
};
use pares_wice::codec::Coded as _;
use pares_wice::{Key, Value};

type Items = BTreeMap<Key, Value>;

fn request(asked: PersonAsked, time_ms: u64) -> BrokerRequest {
    BrokerRequest { number: 0, after: 0, name: None, time_ms, quote: None, asked: Asked::Person { asked } }
}

/// One of each kind, in an order in which all are done.
fn all() -> Vec<PersonAsked> {
    let (name, password) = (UserName::new("ann").unwrap(), PasswordString("$argon2id$x".into()));
    let (session, secret) = (SessionDigest([7; 32]), vec![1; 20]);
    let rights = vec![PersonRight::Supervisor, PersonRight::Trader];
    vec![
        PersonAsked::Add {
            name: name.clone(),
            password: password.clone(),
            rights: rights.clone(),
            takes_account: false,
        },
        PersonAsked::Try { name: name.clone() },
        PersonAsked::SignIn { name: name.clone(), password: password.clone(), step: None, session },
        PersonAsked::Seen { session },
        PersonAsked::SetCode { name: name.clone(), secret: secret.clone() },
        PersonAsked::ConfirmCode { name: name.clone(), secret, step: 5, session },
        PersonAsked::DropCode { name: name.clone(), step: Some(6) },
        PersonAsked::SetRights { name: name.clone(), rights: rights.clone() },
        PersonAsked::SetRightsOf { by: name.clone(), name: name.clone(), rights },
        PersonAsked::ChangePassword {
            name: name.clone(),
            before: password.clone(),
            password: password.clone(),
            session,
        },
        PersonAsked::SignOutAll { name: name.clone() },
        PersonAsked::SignOut { session },
        PersonAsked::SetPassword { name, password },
    ]
}

#[test]
fn people_requests_never_write_accounts_or_logs() {
    let mut items = Items::default();
    for (time_ms, asked) in (1..).zip(all()) {
        let request = request(asked, time_ms);
        assert_eq!(BrokerRequest::from_bytes(&request.to_bytes()).unwrap(), request);
        let reply = execute(&request, &mut items).unwrap();
        assert!(!matches!(reply, BrokerReply::Refused { .. }), "{request:?}: {reply:?}");
        assert_eq!(BrokerReply::from_bytes(&reply.to_bytes()).unwrap(), reply);
        assert!(items.keys().all(|key| matches!(key.as_bytes()[..2], [b'b', b'u' | b'w'])));
    }
    assert_eq!(items.len(), 1, "no session is left");
}

#[test]
fn name_is_taken_by_account_not_by_refused_command() {
    let mut items = Items::default();
    let command = |number: u64, line: &str| {
        let line = WorkloadLine::parse(format!("[{number}] {line}").as_bytes()).unwrap();
        let asked = Asked::Command { command: line.command, fault: line.fault };
        BrokerRequest { number, after: 0, name: None, time_ms: 1, quote: None, asked }
    };
    let refused = execute(&command(1, "COMMIT_BUY,ann"), &mut items).unwrap();
    assert!(matches!(refused, BrokerReply::Refused { .. }), "and ann's row is there");
    execute(&command(2, "ADD,bob,1.00"), &mut items).unwrap();
    let mut add = |name: &str, takes_account| {
        let (name, password) = (UserName::new(name).unwrap(), PasswordString("$argon2id$x".into()));
        let asked = PersonAsked::Add { name, password, rights: vec![], takes_account };
        execute(&request(asked, 1), &mut items).unwrap()
    };
    assert_eq!(add("ann", false), BrokerReply::Done);
    assert_eq!(add("bob", false), BrokerReply::Refused { refusal: Refusal::PersonTaken });
    assert_eq!(add("bob", true), BrokerReply::Done);
}

#[test]
fn new_password_ends_sessions_and_old_proofs() {
    let mut items = Items::default();
    for asked in &all()[..3] {
        execute(&request(asked.clone(), 1), &mut items).unwrap();
    }
    let (name, session) = (UserName::new("ann").unwrap(), SessionDigest([7; 32]));
    let password = PasswordString("$argon2id$y".into());
    execute(&request(PersonAsked::SetPassword { name: name.clone(), password }, 2), &mut items).unwrap();
    let read = BrokerRead::Person { read: PersonRead::Session { session, now_ms: 3 } };
    let found = Option::<pares_broker::SessionFound>::from_bytes(&answer(&read, &items).unwrap()).unwrap();
    assert_eq!(found, None);
    let reply = execute(&request(all()[2].clone(), 3), &mut items).unwrap();
    assert_eq!(reply, BrokerReply::Refused { refusal: Refusal::PersonChanged });
    let person = person(&items, name);
    assert_eq!((person.tries, person.sessions), (0, vec![]));
}

#[test]
fn rival_supervisors_leave_one_with_the_right() {
    let mut items = Items::default();
    let people = ["ann", "bob"].map(|name| UserName::new(name).unwrap());
    for name in people.clone() {
        let (password, rights) = (PasswordString("$argon2id$x".into()), vec![PersonRight::Supervisor]);
        let asked = PersonAsked::Add { name, password, rights, takes_account: false };
        execute(&request(asked, 1), &mut items).unwrap();
    }
    let [ann, bob] = people;
    let of = |by: &UserName, name: &UserName| {
        request(PersonAsked::SetRightsOf { by: by.clone(), name: name.clone(), rights: vec![] }, 2)
    };
    assert_eq!(execute(&of(&ann, &bob), &mut items).unwrap(), BrokerReply::Done);
    let reply = execute(&of(&bob, &ann), &mut items).unwrap();
    assert_eq!(reply, BrokerReply::Refused { refusal: Refusal::NoRight });
    assert_eq!(person(&items, ann).rights, [PersonRight::Supervisor]);
}

#[test]
fn own_password_change_ends_other_sessions() {
    let mut items = Items::default();
    for asked in &all()[..3] {
        execute(&request(asked.clone(), 1), &mut items).unwrap();
    }
    let PersonAsked::SignIn { name, password: before, .. } = all()[2].clone() else { panic!("a sign-in") };
    let session = SessionDigest([8; 32]);
    let again = PersonAsked::SignIn { name: name.clone(), password: before.clone(), step: None, session };
    execute(&request(again, 2), &mut items).unwrap();
    let password = PasswordString("$argon2id$y".into());
    let change = PersonAsked::ChangePassword { name: name.clone(), before, password, session };
    assert_eq!(execute(&request(change.clone(), 3), &mut items).unwrap(), BrokerReply::Done);
    assert_eq!(person(&items, name.clone()).sessions, [session]);
    let reply = execute(&request(change, 4), &mut items).unwrap();
    assert_eq!(reply, BrokerReply::Refused { refusal: Refusal::PersonChanged });
    execute(&request(PersonAsked::SignOutAll { name: name.clone() }, 5), &mut items).unwrap();
    assert_eq!(person(&items, name).sessions, []);
    assert_eq!(items.len(), 1, "no session is left");
}

fn person(items: &Items, name: UserName) -> Person {
    let read = BrokerRead::Person { read: PersonRead::Person { name } };
    Option::<Person>::from_bytes(&answer(&read, items).unwrap()).unwrap().unwrap()
}
