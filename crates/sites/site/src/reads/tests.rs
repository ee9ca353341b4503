//! Reads that take too long, wait, or are given up.

use pares_store::{Applied, Memory};

use super::*;

#[test]
fn what_takes_too_long_reads_no_more() {
    let store = Memory::default();
    let writes = (0..9u8).map(|name| (Key::new([name]), Some(Value::counter(1)))).collect();
    store.apply(&[Applied { version: Version(1), writes }], None).unwrap();
    let (now, snapshot) = (Cell::new(Duration::ZERO), store.snapshot().unwrap());
    let clock = || {
        now.set(now.get() + Duration::from_secs(1));
        now.get()
    };
    let until = Duration::from_secs(5);
    let items = Timed { items: &*snapshot, clock, until, expired: Cell::new(false) };
    let mut seen = 0;
    items
        .range(&KeyRange::prefix(b""), &mut |_, _| {
            seen += 1;
            ControlFlow::Continue(())
        })
        .unwrap_err();
    assert_eq!((seen, items.expired.get()), (4, true));
    items.get(&Key::new([0])).unwrap_err();
}

#[test]
fn who_is_gone_leaves_no_read_behind_that_still_waits() {
    let bounds = Bounds { client_open_max: 2, ..Bounds::default() };
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let (mut readers, _ends) = Readers::new(Arc::new(crate::items::Items), &store, &bounds);
    let take = |readers: &mut Readers<()>, client| {
        let least = Least { awaits: Awaits::Version(Version(1)), until: None };
        readers.take((ClientId(client), 1), vec![0; 10], least).map_err(|refused| refused.code)
    };
    assert_eq!([take(&mut readers, 1), take(&mut readers, 1)], [Ok(()), Ok(())]);
    assert_eq!(take(&mut readers, 1), Err(Code::Busy), "one client does not take all places");
    assert_eq!(take(&mut readers, 2), Ok(()));
    readers.forget(ClientId(1));
    assert_eq!((readers.count, readers.bytes, readers.waiting.len(), readers.open.len()), (1, 10, 1, 1));
}
#[test]
fn waiting_for_absent_version_has_bounded_places_time() {
    let bounds = Bounds { reads_max: 8, ..Bounds::default() };
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let (mut readers, ends) = Readers::new(Arc::new(crate::items::Items), &store, &bounds);
    let [now, later] = [1, 2].map(Duration::from_secs);
    let mut take = |awaits, until| {
        let least = Least { awaits, until };
        readers.take((ClientId(1), 1), b"digest".to_vec(), least).map_err(|refused| refused.code)
    };
    let lie = Awaits::Version(Version(u64::MAX));
    assert_eq!(take(lie, Some(now)), Ok(()));
    assert_eq!(take(Awaits::Barrier, Some(later)), Ok(()));
    assert_eq!(take(lie, Some(now)), Err(Code::Busy));
    assert_eq!(take(Awaits::Version(Version(0)), None), Ok(()), "others have their places");
    readers.go_on(Version(0));
    assert!(ends[0].step() && !ends[0].step());
    assert_eq!(readers.expired(now).into_iter().map(|(_, awaited)| awaited).collect::<Vec<_>>(), [lie]);
    readers.passed(readers.last_at_barrier().unwrap(), Version(0));
    readers.go_on(Version(0));
    assert!(ends[0].step() && readers.waiting.is_empty());
}

#[test]
fn a_barrier_is_for_those_that_came_before_it() {
    let store: Arc<dyn Store> = Arc::new(Memory::default());
    let (mut readers, _ends) = Readers::new(Arc::new(crate::items::Items), &store, &Bounds::default());
    let mut last = || {
        let least = Least { awaits: Awaits::Barrier, until: Some(Duration::ZERO) };
        readers.take((ClientId(1), 1), Vec::new(), least).unwrap();
        readers.last_at_barrier()
    };
    let (first, second) = (last(), last());
    readers.passed(first.unwrap(), Version(0));
    readers.go_on(Version(0));
    assert_eq!((readers.waiting.len(), readers.last_at_barrier()), (1, second));
}
