//! A front whose clock is off, as the pages see it.

use pares_broker::{
    Asked, BrokerRead, BrokerReply, CommandName, PersonAsked, Refusal, StockQuote, StockSymbol, UserName,
};
use pares_web::{Broker, BrokerAnswer, Costs, service};
use serde_json::json;
use tokio::sync::broadcast;

use crate::stand_in::MemoryBroker;
use crate::support::{PASSWORD, Web};

/// Refuses who tries to sign in.
struct ClockOff(MemoryBroker);

impl Broker for ClockOff {
    fn ask(
        &self,
        user: Option<UserName>,
        name: Option<CommandName>,
        asked: Asked,
    ) -> BrokerAnswer<'_, BrokerReply> {
        if matches!(asked, Asked::Person { asked: PersonAsked::Try { .. } }) {
            return Box::pin(async { Ok(BrokerReply::Refused { refusal: Refusal::ClockOff }) });
        }
        self.0.ask(user, name, asked)
    }

    fn read_bytes(&self, read: BrokerRead) -> BrokerAnswer<'_, Vec<u8>> {
        self.0.read_bytes(read)
    }

    fn quote(&self, symbol: StockSymbol) -> Option<StockQuote> {
        self.0.quote(symbol)
    }

    fn quotes(&self) -> broadcast::Receiver<StockQuote> {
        self.0.quotes()
    }

    fn costs(&self) -> Costs {
        self.0.costs()
    }
}

#[tokio::test]
async fn sign_in_at_wrong_clock_works_at_another_front() {
    let web = Web::new();
    let ann = web.somebody("ann").await;
    let mut off = web.other();
    off.router = service(ClockOff(web.broker.clone()), web.settings.clone());
    for name in ["ann", "nobody"] {
        assert_eq!(off.try_in(name, PASSWORD).await.told(), (503, "clock-off".into()));
    }
    let asked = json!({"password": PASSWORD, "new": "another horse"});
    let told = off.ask("POST", "/password", &[ann.bearer()], &asked).await.told();
    assert_eq!(told, (503, "clock-off".into()));
    assert_eq!(off.get(&ann, "/session").await.status, 200, "who is signed in stays so");
    web.sign_in("ann").await;
}
