//! Many questions at once, and questions that are asked again.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};

use pares_front::StandInSettings;

use super::*;
use crate::quote_server::QuoteServer;

const ANY: &str = "127.0.0.1:0";

fn symbol(number: u8) -> StockSymbol {
    let letters = [number / 26, number % 26].map(|letter| char::from(b'A' + letter));
    StockSymbol::new(&String::from_iter(letters)).unwrap()
}

fn jo() -> UserName {
    UserName::new("jo").unwrap()
}

/// The next `count` answers.
fn wait(quoter: &Quoter, count: usize) -> Vec<QuoteAnswer> {
    let mut all = Vec::new();
    while all.len() < count {
        all.extend(quoter.answers());
        std::thread::sleep(Duration::from_millis(1));
    }
    all
}

/// The next connection, and the line that came on it.
fn asked(listener: &TcpListener) -> (TcpStream, String) {
    let (stream, _) = listener.accept().unwrap();
    let mut line = String::new();
    BufReader::new(&stream).read_line(&mut line).unwrap();
    (stream, line)
}

#[test]
fn thousand_concurrent_quotes_answered_and_charged_once() {
    let settings = StandInSettings { seed: 4, is_instant: true, bad_per_mille: 0 };
    let server = QuoteServer::start(ANY.parse().unwrap(), settings).unwrap();
    let quoter = Quoter::start(server.address(), None, || ()).unwrap();
    (0..1_000).for_each(|hit| quoter.ask(hit, symbol((hit % 600 / 3) as u8), jo()));
    let answers = wait(&quoter, 1_000);
    assert!(answers.iter().all(|(_, answer)| answer.is_ok()), "{answers:?}");
    assert_eq!(answers.iter().map(|(hit, _)| *hit).collect::<BTreeSet<_>>().len(), 1_000);
    assert_eq!((server.hits(), quoter.hedges()), (1_000, 0));
}

#[test]
fn unanswered_quote_is_repeated_on_new_connection() {
    let listener = TcpListener::bind(ANY).unwrap();
    let server = listener.local_addr().unwrap();
    let quoter = Quoter::start(server, Some(Duration::from_millis(5)), || ()).unwrap();
    quoter.ask(7, symbol(0), jo());
    let (first, line) = asked(&listener);
    let (mut second, again) = asked(&listener);
    assert_eq!((line.as_str(), again.as_str()), ("AA,jo\n", "AA,jo\n"));
    drop(first);
    second.write_all(b"1.50,AA,jo,5,key\n").unwrap();
    let answers = wait(&quoter, 1);
    assert!(matches!(&answers[..], [(7, Ok(quote))] if quote.price_cents == 150), "{answers:?}");
    assert!((1..=5).contains(&quoter.hedges()), "{}", quoter.hedges());
}

#[test]
fn a_question_whose_connections_have_all_ended_has_no_answer() {
    let listener = TcpListener::bind(ANY).unwrap();
    let quoter = Quoter::start(listener.local_addr().unwrap(), None, || ()).unwrap();
    quoter.ask(1, symbol(1), jo());
    drop(asked(&listener));
    assert_eq!(wait(&quoter, 1), [(1, Err(QuoteFault::Closed))]);
    drop(listener);
    quoter.ask(2, symbol(1), jo());
    assert_eq!(wait(&quoter, 1), [(2, Err(QuoteFault::Unreached))], "nothing was asked");
}

#[test]
fn quote_request_lost_with_connection_counts_as_asked() {
    let listener = TcpListener::bind(ANY).unwrap();
    let server = listener.local_addr().unwrap();
    let (tell, told) = channel();
    let hedge = Some(Duration::from_millis(10));
    let mut asking = Asking::new(server, hedge, <_>::default(), Poll::new().unwrap(), tell);
    asking.ask(1, symbol(1), jo());
    let (mut first, _) = listener.accept().unwrap();
    first.set_nonblocking(true).unwrap();
    while first.read(&mut [0; 16]).is_err() {
        asking.progress(0);
    }
    drop(listener);
    asking.do_what_is_due(Instant::now() + Duration::from_millis(20));
    drop(first);
    // The one that brought it ends first, and then the one that reaches nobody.
    asking.progress(0);
    let answer = std::iter::repeat_with(|| {
        asking.progress(1);
        told.try_recv().ok()
    });
    let answer = answer.flatten().next().unwrap();
    assert_eq!(answer, (1, Err(QuoteFault::Closed)), "it cost its five cents");
}
