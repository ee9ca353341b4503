//! TPC-C as an application of sites: a wholesale supplier's warehouses, orders and payments.
//!
//! `pares-tpcc` simulates the rows that TPC-C's transactions write, since that is what conflicts. A system that is to be measured has to do all
//! the rest too: find customers by name, take items from stock, add money up, and have it right in the end at every site. So here are
//! the five transactions as a [`pares_site::Application`], what makes the initial database, and what the standard wants to
//! hold afterwards (clause 3.3.2).
//!
//! It is the benchmark's load, not an audited result of it: the database can be smaller than the standard's, nobody keys anything in unless told to, and
//! columns that nothing reads are zeros.
//!
//! | module | what |
//! |---|---|
//! | `rows` | tables as items; which columns are left out |
//! | `request` | requests as bytes |
//! | `transactions` | clause 2 |
//! | `population` | clause 4.3 |
//! | `conditions` | clause 3.3.2 |
//! | `terminal` | what users ask for |
//! | `receipts` | what users received, compared with the rows there are |

mod conditions;
mod population;
mod receipts;
mod request;
mod rows;
mod terminal;
#[cfg(test)]
mod tests;
mod transactions;

pub use population::DatabaseSize;
pub use receipts::{FoundRows, Receipts};

use population::DISTRICTS;
pub use terminal::{Terminal, TerminalTransaction};

use pares_site::items::digest;
use pares_site::{Application, ApplicationError, View};
use pares_store::{Reads, Work};

use request::{Asks, Check};

/// See the [module](self).
#[derive(Clone, Copy, Debug, Default)]
pub struct Wholesale;

impl Application for Wholesale {
    fn execute(&self, request: &[u8], work: &mut Work<View<'_>>) -> Result<Vec<u8>, ApplicationError> {
        execute(request, work)
    }

    fn read(&self, request: &[u8], items: &dyn Reads) -> Result<Vec<u8>, ApplicationError> {
        match Asks::from_bytes(request)? {
            Asks::OrderStatus(ask) => transactions::order_status(&ask, items),
            Asks::StockLevel(ask) => transactions::stock_level(&ask, items),
            Asks::Check(ask) => conditions::check(&ask, items),
            Asks::Page(ask) => receipts::page(&ask, items),
            Asks::Digest => digest(items),
            _ => rows::refuse("this changes items: have it executed"),
        }
    }
}

/// Executes a request on whatever can be read: a site's view, or a store in memory in a test.
fn execute<R: Reads>(request: &[u8], work: &mut Work<R>) -> Result<Vec<u8>, ApplicationError> {
    match Asks::from_bytes(request)? {
        Asks::NewOrder(ask) => transactions::new_order(&ask, work),
        Asks::Payment(ask) => transactions::payment(&ask, work),
        Asks::Delivery(ask) => transactions::delivery(&ask, work),
        Asks::Populate(part) => population::populate(&part, work),
        _ => rows::refuse("this changes nothing: read it"),
    }
}

impl DatabaseSize {
    /// Requests that make the initial database, in any order, all at once if one likes.
    #[must_use]
    pub fn population(&self) -> Vec<Vec<u8>> {
        self.parts().into_iter().map(|part| Asks::Populate(part).to_bytes()).collect()
    }

    /// Reads that check the consistency conditions: a reply says what does not hold, and is empty if all does.
    #[must_use]
    pub fn checks(&self) -> Vec<Vec<u8>> {
        let all = (1..=self.warehouses)
            .flat_map(|warehouse| (0..=DISTRICTS).map(move |district| (warehouse, district)));
        all.map(|(warehouse, district)| Asks::Check(Check { warehouse, district }).to_bytes()).collect()
    }

    /// A read whose reply is one number for all there is.
    #[must_use]
    pub fn digest() -> Vec<u8> {
        Asks::Digest.to_bytes()
    }
}
