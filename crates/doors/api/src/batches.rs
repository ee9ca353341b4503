//! Several orders in one request. They are sent in their order and answered each by itself: a batch is no transaction.

use std::time::Instant;

use futures_util::future::join_all;
use pares_http::problem::Problem;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::caller::{Answered, Call};
use crate::forms::{OrderForm, Outcome};
use crate::orders::entering;
use crate::spoken::Said;

/// Orders in a batch at most.
const BATCH_MAX: usize = 100;

/// Orders.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Batch {
    #[schema(min_items = 1, max_items = 100)]
    orders: Vec<OrderForm>,
}

/// What became of each, in their order.
#[derive(Serialize, ToSchema)]
pub(crate) struct BatchAnswered {
    results: Vec<BatchResult>,
}

/// What became of one: an outcome or a problem.
#[derive(Serialize, ToSchema)]
pub(crate) struct BatchResult {
    client_order_id: String,
    /// The status that it would have been answered with alone.
    status: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    outcome: Option<Outcome>,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<Problem>,
}

/// Enters up to 100 orders.
#[utoipa::path(post, path = "/v1/orders/batch", operation_id = "enter_batch", tag = "orders", request_body = Batch, responses(
    (status = 200, description = "Each for itself", body = BatchAnswered)))]
pub(crate) async fn enter(call: Call, Said(Batch { orders }): Said<Batch>) -> Answered {
    if orders.is_empty() || orders.len() > BATCH_MAX {
        return Err(Problem::bad("a batch must have 1 to 100 orders"));
    }
    // An answer under no name cannot be told from the others.
    orders.iter().try_for_each(|form| form.name().map(|_| ()))?;
    let came = Instant::now();
    let mut requests = Vec::with_capacity(orders.len());
    for form in &orders {
        requests.push(entering(&call, form, came).await);
    }
    let asking = requests.into_iter().map(async |request| call.app.ask_of(&call.session, request?).await);
    let answers = join_all(asking).await;
    let results = orders.into_iter().zip(answers).map(|(form, answer)| result(form.client_order_id, answer));
    call.ok("batch", &BatchAnswered { results: results.collect() })
}

fn result(client_order_id: String, answer: Result<pares_types::Answer, Problem>) -> BatchResult {
    match answer {
        Ok(answer) => {
            BatchResult { client_order_id, status: 201, outcome: Some(Outcome::from(&answer)), problem: None }
        }
        Err(problem) => {
            BatchResult { client_order_id, status: problem.status(), outcome: None, problem: Some(problem) }
        }
    }
}
