//! A quote server whose stamps are an hour old; of the stock D it says nothing.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};

/// Begins it, on a thread that ends with the process.
pub(super) fn serve() -> SocketAddr {
    let listener = TcpListener::bind(SocketAddr::from(([127, 0, 0, 1], 0))).unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for mut stream in listener.incoming().map(Result::unwrap) {
            let mut asked = String::new();
            BufReader::new(&stream).read_line(&mut asked).unwrap();
            if !asked.starts_with('D') {
                let stamp = crate::floor::now_ms() - 3_600_000;
                // Who has heard enough closes before it has all.
                let _ = writeln!(stream, "1.00,{},{stamp},key", asked.trim());
            }
            kept.extend(asked.starts_with('D').then_some(stream));
        }
    });
    address
}
