//! A first trade: one member offers, another buys. Start an exchange (`pares up`), let both in
//! (`pares admin member add 1`, `pares admin member add 2`), then
//! `cargo run -p pares-client --example first_trade -- 127.0.0.1:7100 pares-data/keys`.
#![allow(clippy::print_stdout, clippy::print_stderr)] // printing what it did is what an example is for

use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pares_client::{Answer, Client, ClientError, ClientRequest, Credential, KeyFile, Options, Tls, Update};
use pares_types::{ClientOrderId, InstrumentId, MemberId, NewOrder, Price, Quantity, Reason, Side};

fn main() -> ExitCode {
    match trade() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("first_trade: {error}");
            ExitCode::FAILURE
        }
    }
}

fn trade() -> Result<(), Box<dyn Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:7100".into());
    let keys = std::env::args().nth(2).unwrap_or_else(|| "pares-data/keys".into());
    let mut seller = sign_on(&address, Path::new(&keys), 1)?;
    let mut buyer = sign_on(&address, Path::new(&keys), 2)?;
    // Names are for life: the time makes this run's its own. In nanoseconds it would leave a series of names every 78 hours.
    let name = ClientOrderId(milliseconds_since_1970());

    println!("member 1 sells 100 at 10.0000");
    let offer = seller.submit_and_wait(&order(name, Side::Sell, 100))?;
    println!("  {}: {} shares wait", told(&offer), offer.remaining);

    println!("member 2 buys 60 at 10.0000");
    let bid = buyer.submit_and_wait(&order(name, Side::Buy, 60))?;
    println!("  {}: {} shares executed", told(&bid), bid.executed);

    print_trades("member 1", &mut seller)?;
    print_trades("member 2", &mut buyer)?;
    Ok(())
}

/// Signs on as the member's first session, by the key that `pares admin member add` made; over TLS if the exchange has certificates.
fn sign_on(address: &str, keys: &Path, member: u32) -> Result<Client, Box<dyn Error>> {
    let key = KeyFile::read(&keys.join(format!("member-{member}-1.key"))).map_err(|error| {
        format!("{error}: make it by `pares admin member add {member}`, or name the folder of keys as the second argument")
    })?;
    let authority = Some(keys.join("ca.pem")).filter(|path| path.exists());
    let tls = authority.map(|path| Tls::of_exchange(&path)).transpose()?;
    let options = Options { credential: Some(Credential::from(&key)), tls, ..Options::default() };
    Ok(Client::connect_with(address, MemberId(member), options)?)
}

/// The status of a request and where it was executed; of one that was refused, why.
fn told(answer: &Answer) -> String {
    let told = format!("{:?} at position {}", answer.status, answer.position);
    match answer.reason {
        Reason::None => told,
        reason => format!("{told} ({reason}: {})", reason.meaning()),
    }
}

fn order(client_order_id: ClientOrderId, side: Side, quantity: u64) -> ClientRequest {
    let order = NewOrder::limit(side, Price(100_000), Quantity(quantity));
    ClientRequest::Enter { client_order_id, instrument: InstrumentId(1), order }
}

/// Trades come before the answer at the same position, so they are here by now, or about to be.
fn print_trades(who: &str, client: &mut Client) -> Result<(), ClientError> {
    let mut trades = 0;
    while trades == 0 && client.wait(Duration::from_secs(1))? {
        client.poll(|update| {
            if let Update::Trade(trade) = update {
                println!("{who}: {:?} {} at {} ({:?})", trade.side, trade.quantity, trade.price, trade.role);
                trades += 1;
            }
        })?;
    }
    Ok(())
}

fn milliseconds_since_1970() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX)
}
