//! The pages and the API over a broker in memory: `cargo run -p pares-web --example pages -- --port 8080`.
//!
//! There is a user `demo` with the password `demo-password`, who may do everything.
#![allow(clippy::print_stdout, clippy::unwrap_used)] // an example prints

mod stand_in;

use std::net::SocketAddr;

use pares_broker::PersonRight;
use pares_web::{WebServer, WebSettings, WebTransport, add_person};
use stand_in::MemoryBroker;

#[tokio::main]
async fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let port =
        arguments.iter().position(|argument| argument == "--port").and_then(|at| arguments.get(at + 1));
    let port = port.map_or(8080, |port| port.parse().expect("--port NUMBER"));
    let settings = WebSettings::default();
    let broker = MemoryBroker::new(settings.clock.clone());
    add_person(&broker, &settings, "demo", "demo-password", &PersonRight::ALL).await.unwrap();
    tokio::spawn(broker.clone().live());
    let address = SocketAddr::from(([127, 0, 0, 1], port));
    let server = WebServer::bind(address, WebTransport::Loopback, broker, settings).await.unwrap();
    println!("http://{}/  (demo, demo-password)", server.address());
    server.run().await;
}
