//! Both ends over TCP.

use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use pares_link::frame;
use pares_log::{Config, Offset, Reader};
use pares_roles::mirror::{MirrorEnded, MirrorSource};
use pares_roles::world::{Ring, World};
use pares_types::{GatewayId, VenueId};

use super::serve::{serve_by, serving};
use pares_config::SystemConfig;

use super::*;
use crate::{HostWorld, keys};

const LOG: NodeId = NodeId::Gateway(GatewayId(0));
const PATIENCE: Duration = Duration::from_secs(30);

#[test]
fn receivers_show_a_certificate_of_their_own_kind() {
    let dirs = [0; 2].map(|_| tempfile::tempdir().unwrap());
    let [here, there] = dirs.each_ref().map(|dir| Layout::new(dir.path()));
    let config = SystemConfig { mirror: Some(([10, 0, 0, 1], 7400).into()), ..SystemConfig::default() };
    keys::ensure(&here, &config, &[]).unwrap();
    for name in ["mirror-b", "member-7"] {
        keys::issue(&here, name, 1).unwrap();
    }
    std::fs::create_dir_all(there.root()).unwrap();
    std::fs::rename(here.keys(), there.keys()).unwrap();
    let links = serving(&Layout::new(there.root()), ([127, 0, 0, 1], 0).into(), true).unwrap();
    let world = HostWorld::new(&here).unwrap();
    let mut writer = world.write_log(LOG, Config::default()).unwrap();
    let end = writer.append(b"request").map(|_| writer.publish()).unwrap();
    world.ringer().ring(NodeId::Venue(VenueId(0)));
    let stop = &AtomicBool::new(false);
    std::thread::scope(|scope| {
        let (told, at) = mpsc::channel();
        let source = here.clone();
        scope.spawn(move || {
            serve_by(links, &source, &Scope::Whole, stop, |at| told.send(at).unwrap()).unwrap()
        });
        let at = at.recv_timeout(PATIENCE).unwrap();
        let why = refusal(&there, at, "member-7");
        assert!(why.contains("member-7 is no receiver's"), "{why}");
        let (door, log, begun) =
            (door(&there, at, Some("mirror-b")).unwrap(), there.log(LOG), Instant::now());
        scope.spawn(move || receive(&there, &door, stop, |_| {}).unwrap());
        while Reader::at_end(&log).map_or(Offset::START, |reader| reader.written()) < end {
            assert!(begun.elapsed() < PATIENCE, "the record does not come");
            std::thread::sleep(Duration::from_millis(1));
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// What a receiver with that certificate gets as an answer.
fn refusal(there: &Layout, at: SocketAddr, certificate: &str) -> String {
    let (mut said, stop) = (String::new(), AtomicBool::new(false));
    let door = door(there, at, Some(certificate)).unwrap();
    receive(there, &door, &stop, |news| {
        if let ReceiverNews::Disconnected(why) = news
            && why.contains("certificate")
        {
            said = why.to_owned();
            stop.store(true, Ordering::Relaxed);
        }
    })
    .unwrap();
    said
}

#[test]
fn beyond_loopback_a_receiver_needs_a_certificate() {
    let dir = tempfile::tempdir().unwrap();
    let layout = Layout::new(dir.path());
    assert!(door(&layout, ([127, 0, 0, 1], 1).into(), None).is_ok());
    let why = door(&layout, ([10, 0, 0, 1], 1).into(), None).unwrap_err().to_string();
    assert!(why.contains("pares certificate mirror-b"), "{why}");
}

#[test]
fn prepared_settings_are_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let (layout, nowhere) = (Layout::new(dir.path()), SocketAddr::from(([127, 0, 0, 1], 1)).into());
    let receive = || receive(&layout, &nowhere, &AtomicBool::new(true), |_| {});
    std::fs::write(layout.config(), "").unwrap();
    let why = receive().unwrap_err().to_string();
    assert!(
        why.contains("pares.toml is not of `pares mirror receive`") && why.contains("empty --dir"),
        "{why}"
    );
    std::fs::remove_file(layout.config()).unwrap();
    receive().unwrap();
    std::fs::write(layout.config(), "").unwrap();
    receive().unwrap();
    take_over(&layout, &NodeId::all(&SystemConfig::default())).unwrap();
    assert!(receive().is_err(), "it is a system's own");
}

fn ends(why: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    frame::append(&mut bytes, &MirrorSource::<HostWorld>::farewell(&MirrorEnded::Broken(why.into())));
    bytes
}

/// What a receiver says while `play` is the source for each of so many connections.
fn told_by(connections: u32, play: impl Fn(u32, &TcpStream) + Send + Sync) -> Vec<String> {
    let (dir, stop) = (tempfile::tempdir().unwrap(), AtomicBool::new(false));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let door = listener.local_addr().unwrap().into();
    let mut said = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for n in 0..connections {
                let (source, _) = listener.accept().unwrap();
                play(n, &source);
                // The receiver closes.
                let _rest = std::io::copy(&mut &source, &mut std::io::sink());
            }
            stop.store(true, Ordering::Relaxed);
        });
        receive(&Layout::new(dir.path()), &door, &stop, |news| {
            if let ReceiverNews::Disconnected(why) = news {
                said.push(why.to_owned());
            }
        })
        .unwrap();
    });
    said
}

#[test]
fn lines_that_alternate_are_said_once() {
    let said = told_by(6, |n, mut source| source.write_all(&ends(["one", "two"][n as usize % 2])).unwrap());
    assert_eq!(said, ["the source says: one", "the source says: two"]);
}

#[test]
fn slow_frames_are_life() {
    let said = told_by(1, |_, mut source| {
        for part in ends(&"long ".repeat(8)).chunks(1) {
            source.write_all(part).unwrap();
            std::thread::sleep(receive::SILENCE / 40);
        }
    });
    assert!(said[0].starts_with("the source says: long"), "{said:?}");
}
