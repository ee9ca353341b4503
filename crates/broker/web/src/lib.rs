//! The broker over HTTP: people sign in, and trade, each on an account of their own.
//!
//! The obvious web server keeps who is signed in, and what he did last, in its memory. It cannot be one of many, and what it knows dies with it. Here a server knows nothing: people, sessions,
//! accounts and the log are items of the sites, which it reaches through a [`Broker`]. It decides who asks and whether that may be; what a command does, the rules decide.
//!
//! | module | what |
//! |---|---|
//! | `broker` | what it needs of a front |
//! | `server` | the paths behind connections with limits (`pares-http`) |
//! | `routes`, `pages` | which path is served by what; the pages |
//! | `caller`, `body`, `problem`, `allowances` | who asks, what is said, what is answered if not, and how often |
//! | `people`, `passwords`, `second_factor`, `codes` | signing up, in and out |
//! | `commands`, `account`, `history`, `quotes`, `points`, `log` | commands, and what can be read |
//! | `orders` | orders on the exchange |
//! | `notices`, `follow`, `news` | what happens, as it happens |
//! | `supervisor`, `customers` | what supervisors see and say |

mod account;
mod allowances;
mod app;
mod body;
mod broker;
mod caller;
mod codes;
mod commands;
mod customers;
mod follow;
mod history;
mod log;
mod news;
mod notices;
mod orders;
mod pages;
mod passwords;
mod people;
mod points;
mod problem;
mod quotes;
mod routes;
mod second_factor;
mod server;
mod settings;
mod supervisor;

pub use broker::{Broker, BrokerAnswer, Costs, Unavailable};
pub use pares_http::connections::{WebError, WebTransport};
pub use pares_http::origins;
pub use people::{PersonError, add_person, person_of};
pub use server::WebServer;
pub use settings::{Allowance, WebClock, WebSettings};

/// The server's paths without connections, for tests.
pub fn service(broker: impl Broker, settings: WebSettings) -> axum::Router {
    let app = app::App::new(broker, settings, &WebTransport::Loopback);
    app.watch();
    routes::router(app)
}
