//! stand-in until the server is there
use super::{Hand, Page};
pub(crate) const PASSWORD: &str = "correct horse battery";
pub(crate) struct Server { address: String }
impl Server {
    pub(crate) fn start() -> Self { Self { address: std::env::var("PARES_PAGES_AT").unwrap() } }
    pub(crate) fn address(&self) -> &str { &self.address }
    pub(crate) async fn enter_supervisor(&self, page: &Page) { crate::day::sign_up(page, Hand::Mouse, &format!("boss{}", std::process::id() % 1000 + std::time::Instant::now().elapsed().subsec_nanos() % 7)).await; }
    pub(crate) fn price(&self, symbol: &str, cents: u64) {
        use std::io::{Read, Write};
        let mut to = std::net::TcpStream::connect(self.address.trim_start_matches("http://")).unwrap();
        write!(to, "GET /api/v1/fakeprice?s={symbol}&c={cents} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
        to.read_to_string(&mut String::new()).unwrap();
    }
}
