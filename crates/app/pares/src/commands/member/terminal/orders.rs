//! The trader's way to the exchange: orders in; what becomes of them the member's stream tells.

use std::path::PathBuf;

use pares_client::{Client, ClientError, Credential, KeyFile, Options, Tls, Update};
use pares_member::reports::ExchangeConfig;
use pares_types::{ClientOrderId, MemberId, NewOrder};

use super::command::Ticket;
use crate::text::name;

/// The lower bits of an order's name.
const NUMBER_BITS: u32 = 48;
/// Series of members' programs; those above are guarded.
const SERIES: u64 = 1 << 15;

/// The connection that orders go over, made with the first.
pub(super) struct Orders {
    exchange: Option<ExchangeConfig>,
    key: Option<PathBuf>,
    client: Option<Client>,
    /// The last name given.
    name: u64,
}

impl Orders {
    /// Each trader counts in a series of its own, on from the time, so that two lives of a terminal do not give the same names.
    pub(super) fn new(exchange: Option<ExchangeConfig>, trader: u32, key: Option<PathBuf>) -> Self {
        let now_us = (pares_os::clock::now_ns() / 1_000) & ((1 << NUMBER_BITS) - 1);
        let name = (u64::from(trader) % SERIES) << NUMBER_BITS | now_us;
        Self { exchange, key, client: None, name }
    }

    /// Enters an order: its name, or why it was not sent.
    pub(super) fn enter(&mut self, ticket: Ticket) -> Result<ClientOrderId, String> {
        self.name += 1;
        let name = ClientOrderId(self.name);
        let order = NewOrder::limit(ticket.side, ticket.price, ticket.quantity);
        self.with(|client| client.enter(name, ticket.instrument, order)).map(|()| name)
    }

    /// Cancels an order. Says what happened.
    pub(super) fn cancel(&mut self, target: u64) -> String {
        self.name += 1;
        let name = ClientOrderId(self.name);
        match self.with(|client| client.cancel(name, ClientOrderId(target))) {
            Ok(()) => format!("sent the cancel of {target}"),
            Err(why) => why,
        }
    }

    fn with(&mut self, send: impl FnOnce(&mut Client) -> Result<(), ClientError>) -> Result<(), String> {
        if self.client.is_none() {
            self.client = Some(self.connect()?);
        }
        let client = self.client.as_mut().ok_or("not connected")?;
        let sent = send(client).and_then(|()| client.flush());
        sent.map(drop).map_err(|error| {
            self.client = None;
            error.to_string()
        })
    }

    fn connect(&self) -> Result<Client, String> {
        let exchange = self.exchange.as_ref();
        let exchange =
            exchange.ok_or("this member's system is not connected to an exchange: start it with `pares member up --exchange DIR`")?;
        let key = self.key.as_deref().map(KeyFile::read).transpose().map_err(|error| error.to_string())?;
        let tls = exchange.authority.as_deref().map(Tls::of_exchange).transpose();
        let tls = tls.map_err(|error| error.to_string())?;
        let mut why = "the exchange has no gateway".to_owned();
        for &gateway in &exchange.gateways {
            let credential = key.as_ref().map(Credential::from);
            let options = Options { credential, tls: tls.clone(), ..Options::default() };
            match Client::connect_with(gateway, MemberId(exchange.member), options) {
                Ok(client) => return Ok(client),
                Err(error) => why = error.to_string(),
            }
        }
        Err(why)
    }

    /// Takes what the gateway says; `say` gets what the member's stream does not tell.
    pub(super) fn poll(&mut self, mut say: impl FnMut(String)) {
        let Some(client) = &mut self.client else { return };
        let polled = client.poll(|update| {
            if let Update::Rejected { client_order_id, reason } = update {
                say(format!("refused ({}): order {client_order_id}", name(&reason)));
            }
        });
        if let Err(error) = polled {
            say(format!("the connection to the gateway was lost: {error}"));
            self.client = None;
        }
    }
}
