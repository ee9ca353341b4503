//! The accounts: items in memory, and the rules over them.

use std::collections::BTreeMap;

use pares_broker::{
    AccountSummary, Asked, AuditReplay, BrokerRead, BrokerReply, BrokerRequest, Customer, Order, OrderAsked,
    OrderListed, OrderRead, PasswordString, PersonAsked, PersonRight, QuoteBrought, StockQuote, StockSymbol,
    UserName, WorkloadLine, answer, audit_page, execute, number_in_session, session_of_front, summary,
    tell_log,
};
use pares_wice::codec::Coded as _;
use pares_wice::{Key, Value};

pub(crate) const USERS: usize = 4;
pub(crate) const STOCKS: [&str; 3] = ["A", "BC", "DEF"];

#[derive(Default)]
pub(crate) struct Accounts {
    items: BTreeMap<Key, Value>,
    asked: u64,
}

pub(crate) fn user(index: usize) -> UserName {
    UserName::new(&format!("u{index}")).unwrap()
}

pub(crate) fn supervisor() -> UserName {
    UserName::new("boss").unwrap()
}

pub(crate) fn stock(index: usize) -> StockSymbol {
    StockSymbol::new(STOCKS[index]).unwrap()
}

impl Accounts {
    /// Each user with cash and some shares of each stock, and a supervisor.
    pub(crate) fn new() -> Self {
        let mut accounts = Self::default();
        let (name, password) = (supervisor(), PasswordString(String::new()));
        let rights = vec![PersonRight::Supervisor];
        let asked = PersonAsked::Add { name, password, rights, takes_account: false };
        accounts.request(Asked::Person { asked }, None, 0);
        for index in 0..USERS {
            let user = user(index);
            accounts.command(&format!("ADD,{user},100000.00"));
            for symbol in STOCKS {
                accounts.command(&format!("BUY,{user},{symbol},5000.00"));
                accounts.command(&format!("COMMIT_BUY,{user}"));
            }
        }
        accounts
    }

    fn command(&mut self, line: &str) {
        let WorkloadLine { command, fault, .. } =
            WorkloadLine::parse(format!("[1] {line}").as_bytes()).unwrap();
        let quote = command.symbol.map(|symbol| StockQuote {
            price_cents: 1_000,
            symbol,
            user: "desk".to_owned(),
            server_ms: 0,
            key: "key".to_owned(),
        });
        let quote = quote.map(|quote| QuoteBrought { quote, hit: None });
        let reply = self.request(Asked::Command { command, fault }, quote, 0);
        assert!(!matches!(reply, BrokerReply::Refused { .. }), "{line}: {reply:?}");
    }

    /// Executes; a router's questions and users' requests have journeys as bytes.
    pub(crate) fn execute(&mut self, asked: OrderAsked, now_ms: u64) -> BrokerReply {
        self.request(Asked::Order { asked }, None, now_ms)
    }

    fn request(&mut self, asked: Asked, quote: Option<QuoteBrought>, time_ms: u64) -> BrokerReply {
        self.asked += 1;
        let number = number_in_session(session_of_front(1, 1), self.asked);
        let request = BrokerRequest { number, after: 0, name: None, time_ms, quote, asked };
        let request = BrokerRequest::from_bytes(&request.to_bytes()).unwrap();
        let reply = execute(&request, &mut self.items).unwrap();
        BrokerReply::from_bytes(&reply.to_bytes()).unwrap()
    }

    pub(crate) fn read(&self, read: OrderRead) -> Vec<u8> {
        answer(&BrokerRead::Order { read }, &self.items).unwrap()
    }

    /// The number of the next message of a shard.
    pub(crate) fn told(&self, shard: u32) -> u64 {
        let all = Vec::<(u32, u64)>::from_bytes(&self.read(OrderRead::Told)).unwrap();
        all.into_iter().find(|(of, _)| *of == shard).map_or(1, |(_, next)| next)
    }

    pub(crate) fn orders(&self, user: &UserName) -> Vec<(u64, Order)> {
        let (mut all, mut before) = (Vec::new(), None);
        loop {
            let read = self.read(OrderRead::Mine { user: user.clone(), before });
            let page = Vec::<OrderListed>::from_bytes(&read).unwrap();
            let Some(last) = page.last() else { break };
            before = Some(last.place);
            all.extend(page.iter().map(|listed| (listed.number, listed.order)));
        }
        all
    }

    pub(crate) fn summary(&self, user: &UserName) -> AccountSummary {
        summary(&self.items, user).unwrap().unwrap()
    }

    pub(crate) fn customer(&self, user: &UserName) -> Customer {
        Customer::from_bytes(&self.read(OrderRead::Customer { user: user.clone() })).unwrap()
    }

    /// Replays the log alone, and holds what it leaves against the accounts.
    pub(crate) fn check_log(&self) -> Result<(), String> {
        let mut replay = AuditReplay::default();
        let page = |from: Option<Key>| Ok(audit_page(&self.items, None, from.as_ref()).unwrap());
        tell_log(page, |text| replay.text(text)).map_err(|fault| fault.to_string())?;
        let report = replay.finish().map_err(|fault| fault.to_string())?;
        for index in 0..USERS {
            let user = user(index);
            let (found, has) = (&report.accounts[user.as_str()], self.summary(&user));
            if !found.is(&has) {
                return Err(format!("the log of {user} leaves {found:?}, and he has {has:?}"));
            }
        }
        Ok(())
    }
}
