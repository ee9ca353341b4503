//! Reads that take long, at sites with real logs, stores and sockets.
#![allow(clippy::unwrap_used)] // helpers are test code, too

mod common;

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use common::{PATIENCE, Sites, done, report};
use pares_link::ClientStream;
use pares_site::items::Items;
use pares_site::protocol::{Ask, Code, Horizon, Reply};
use pares_site::{Application, ApplicationError, Client, View};
use pares_store::{Reads, Work};
use pares_wice::SiteId;

/// Far longer than a delegate may be silent; only a site that is broken lets a test wait for so long.
const HELD_MAX: Duration = Duration::from_secs(20);

/// Items whose read `hold` ends when the test says so.
#[derive(Clone, Default)]
struct Held(Arc<Gate>);

#[derive(Default)]
struct Gate {
    /// How many reads wait, and whether they need not any more.
    state: Mutex<(u32, bool)>,
    changed: Condvar,
}

impl Gate {
    fn hold(&self) {
        let mut state = self.state.lock().unwrap();
        state.0 += 1;
        self.changed.notify_all();
        drop(self.changed.wait_timeout_while(state, HELD_MAX, |(_, open)| !*open).unwrap());
        self.state.lock().unwrap().1 = true;
    }

    fn wait_until_held(&self) {
        drop(self.changed.wait_while(self.state.lock().unwrap(), |(held, _)| *held == 0).unwrap());
    }

    fn is_open(&self) -> bool {
        self.state.lock().unwrap().1
    }

    fn open(&self) {
        self.state.lock().unwrap().1 = true;
        self.changed.notify_all();
    }
}

impl Application for Held {
    fn execute(&self, request: &[u8], work: &mut Work<View<'_>>) -> Result<Vec<u8>, ApplicationError> {
        Items.execute(request, work)
    }

    fn read(&self, request: &[u8], items: &dyn Reads) -> Result<Vec<u8>, ApplicationError> {
        match request {
            b"hold" => {
                let before = Items.read(b"get a", items)?;
                self.0.hold();
                assert_eq!(Items.read(b"get a", items)?, before, "a read is of one moment");
                Ok(before)
            }
            _ => Items.read(request, items),
        }
    }
}

/// The site that certifies, and a client of it alone.
fn certifier(sites: &Sites<Held>) -> Client {
    for number in (0..3).cycle() {
        let mut client = sites.client(1, &[SiteId::new(0, number)]);
        if report(&mut client).certifies {
            return client;
        }
    }
    unreachable!("it goes on until one certifies")
}

#[test]
fn a_read_that_takes_long_deposes_nobody_and_delays_nobody() {
    let held = Held::default();
    let sites = Sites::start_with(1, 3, held.clone());
    let mut client = certifier(&sites);
    done(client.execute(b"put a 1", PATIENCE));
    // Not a client, which would ask again.
    let mut reader = ClientStream::connect(&client.site().into(), 1 << 20).unwrap();
    reader.send(&Ask::Read(7, Horizon::default(), b"hold".to_vec()).to_bytes()).unwrap();
    held.0.wait_until_held();
    for round in 2..60 {
        done(client.execute(format!("put a {round}").as_bytes(), PATIENCE));
        assert_eq!(done(client.read(b"get a", PATIENCE)), round.to_string(), "own writes are read");
    }
    assert!(!held.0.is_open(), "other requests were answered while the read went on");
    assert!(report(&mut client).certifies, "and its site has kept its office");
    held.0.open();
    let reply = Reply::from_bytes(&reader.receive().unwrap()).unwrap();
    assert_eq!((reply.to, reply.code, &reply.body[..]), (7, Code::Done, &b"1"[..]));
    assert!(reply.horizon.version < client.horizon().version, "it is of the moment at which it began");
}
