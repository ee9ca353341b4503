//! What clients send, read without a server: for who holds the parsers against any bytes.

use pares_types::{ClientOrderId, NewOrder, NewTerms};
use serde::de::DeserializeOwned;

use crate::batches::Batch;
use crate::forms::{OrderForm, TermsForm};
use crate::operator::Deed;
use crate::sign_on::{ProofForm, SignOnForm};
use crate::spoken::{of_json, of_xml};
use crate::timer::CancelAfterForm;
use crate::wishes::{self, Wished};

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyForm {
    /// `application/json`.
    Json,
    /// `application/xml`.
    Xml,
}

impl BodyForm {
    fn read<T: DeserializeOwned>(self, body: &[u8]) -> Option<T> {
        match self {
            Self::Json => of_json(body).ok(),
            Self::Xml => of_xml(body).ok(),
        }
    }

    /// A new order and its name, if the body says one.
    #[must_use]
    pub fn order(self, body: &[u8]) -> Option<(ClientOrderId, NewOrder)> {
        let form: OrderForm = self.read(body)?;
        form.name().ok().zip(form.order().ok())
    }

    /// New terms of an order, if the body says some.
    #[must_use]
    pub fn terms(self, body: &[u8]) -> Option<NewTerms> {
        self.read::<TermsForm>(body)?.terms().ok()
    }

    /// Whether the body is another form: a batch, a sign-on, a proof, a timer, what an operator asks for.
    #[must_use]
    pub fn is_other(self, body: &[u8]) -> bool {
        self.read::<Batch>(body).is_some()
            || self.read::<SignOnForm>(body).is_some()
            || self.read::<ProofForm>(body).is_some_and(|form| form.bytes().is_some())
            || self.read::<CancelAfterForm>(body).is_some()
            || self.read::<Deed>(body).is_some()
    }
}

/// Of a message on a socket that is understood: of how many shards the member's stream is wanted, 0 for all; `None` of the market.
///
/// # Errors
/// In words, if it is not understood.
pub fn wish(text: &[u8]) -> Result<Option<usize>, &'static str> {
    Ok(match wishes::read(text)? {
        Wished::Orders(from) => Some(from.map_or(0, |from| from.len())),
        Wished::Market(..) => None,
    })
}
