//! What a client asks of its gateway that changes nothing: how orders are, which there are, what it may do.

use pares_types::{ClientOrderId, ListRequest, OrderKey, OwnLimits};
use pares_wire::frame;

use crate::{Client, ClientError, Update};

impl Client {
    /// Buffers the question how an order of the member is; the gateway answers with [`Update::OrderStatus`] or [`Update::UnknownOrder`].
    /// Questions are answered in the order they were asked.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub fn order_status(&mut self, key: OrderKey) -> Result<(), ClientError> {
        self.outbox.push(|out| frame::write_order_status_request(out, key))
    }

    /// Buffers the question for a list: of the member's orders that are in flight or work, or of instruments. They come as
    /// [`Update::OrderStatus`], or as [`Update::Instrument`] with its [`Update::TickRow`]s, then [`Update::ListEnd`]. One at a time.
    ///
    /// # Errors
    /// As [`Client::send`].
    pub fn list(&mut self, request: &ListRequest) -> Result<(), ClientError> {
        self.outbox.push(|out| frame::write_list_request(out, request))
    }

    /// Buffers the question what this session may do, and how much of that is used; the gateway answers with [`Update::OwnLimits`].
    ///
    /// # Errors
    /// As [`Client::send`].
    pub fn own_limits(&mut self, token: u64) -> Result<(), ClientError> {
        self.outbox.push(|out| frame::write_limits_request(out, token))
    }

    /// Asks what this session may do and waits for the answer. Other updates are kept for the next [`Client::poll`].
    ///
    /// # Errors
    /// As [`Client::submit_and_wait`].
    pub fn own_limits_and_wait(&mut self) -> Result<OwnLimits, ClientError> {
        self.own_limits(0)?;
        self.wait_for(|update| match *update {
            Update::OwnLimits(own) => Some(Ok(own)),
            Update::Rejected { client_order_id: ClientOrderId(0), reason } => {
                Some(Err(ClientError::Rejected(reason)))
            }
            _ => None,
        })
    }
}
