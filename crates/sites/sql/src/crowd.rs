//! Who is connected: a bounded number, of whom some have not signed on yet.
//!
//! Who says nothing costs as much as who works: a thread, and a place. Patience alone does not help, for who connects again has it again; and a place that is refused at once is
//! refused to the right one too. So who has not signed on may stay while there is room. When there is none the oldest of them goes, once it has had a moment to sign on; until
//! then those who connect wait at the door, as at the port for clients of `pares_link`.

use std::collections::BTreeMap;
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

/// Time to sign on before another may take the place.
const MOMENT: Duration = Duration::from_secs(1);

/// Whether another may come in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Room {
    /// Yes.
    Free,
    /// Soon: it is to be looked again.
    Soon,
    /// No: all have signed on.
    None,
}

struct Guest {
    /// So that it can be ended.
    socket: TcpStream,
    since: Instant,
    has_signed_on: bool,
}

/// All who are connected.
pub(crate) struct Crowd {
    max: usize,
    guests: BTreeMap<u64, Guest>,
    last: u64,
}

impl Crowd {
    /// Nobody; at most so many.
    pub(crate) fn of(max: usize) -> Self {
        Self { max, guests: BTreeMap::new(), last: 0 }
    }

    /// Whether there is room for one more. The oldest of those who have not signed on goes, if it has had its moment.
    pub(crate) fn room(&mut self, now: Instant) -> Room {
        if self.guests.len() < self.max {
            return Room::Free;
        }
        // Their numbers are in the order in which they came.
        let Some((&oldest, guest)) = self.guests.iter().find(|(_, guest)| !guest.has_signed_on) else {
            return Room::None;
        };
        if now.saturating_duration_since(guest.since) < MOMENT {
            return Room::Soon;
        }
        // It may have gone by itself.
        let _ = guest.socket.shutdown(Shutdown::Both);
        self.leave(oldest);
        Room::Free
    }

    /// One comes in; its number.
    pub(crate) fn enter(&mut self, socket: TcpStream, now: Instant) -> u64 {
        self.last += 1;
        self.guests.insert(self.last, Guest { socket, since: now, has_signed_on: false });
        self.last
    }

    /// It has signed on; whether it is still there.
    pub(crate) fn signed_on(&mut self, number: u64) -> bool {
        self.guests.get_mut(&number).map(|guest| guest.has_signed_on = true).is_some()
    }

    /// It is gone.
    pub(crate) fn leave(&mut self, number: u64) {
        self.guests.remove(&number);
    }

    /// Ends all.
    pub(crate) fn end(&self) {
        for guest in self.guests.values() {
            let _ = guest.socket.shutdown(Shutdown::Both);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;
    use std::net::TcpListener;

    use super::*;

    #[test]
    fn oldest_unsigned_connection_makes_room_after_moment() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut crowd = Crowd::of(3);
        let began = Instant::now();
        let mut peers = Vec::new();
        let numbers = [0, 1, 2].map(|second| {
            assert_eq!(crowd.room(began), Room::Free);
            peers.push(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
            crowd.enter(listener.accept().unwrap().0, began + second * MOMENT)
        });
        assert!(crowd.signed_on(numbers[0]));
        assert_eq!(crowd.room(began + MOMENT), Room::Soon, "the second has just come");
        assert_eq!(crowd.room(began + 2 * MOMENT), Room::Free);
        assert_eq!(peers[1].read(&mut [0]).unwrap(), 0, "the second has gone");
        assert!(!crowd.signed_on(numbers[1]) && crowd.signed_on(numbers[2]));
        let peer = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let last = crowd.enter(listener.accept().unwrap().0, began);
        assert!(crowd.signed_on(last));
        assert_eq!(crowd.room(began + 9 * MOMENT), Room::None, "who has signed on stays");
        crowd.leave(last);
        assert_eq!(crowd.room(began), Room::Free);
        drop(peer);
    }
}
