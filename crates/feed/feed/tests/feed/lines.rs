//! Two publications are one, and two lines that lose make one sequence.

use pares_feed::mold::Packing;
use pares_feed::receiver::{FeedState, Receiver};
use pares_random::Random;

use crate::{Published, tape};

/// The session in packets, cut at random.
fn packets(published: &Published, random: &mut Random) -> Vec<Vec<u8>> {
    let mut packing = Packing::new(published.session, 1);
    let mut packets = Vec::new();
    for message in &published.messages {
        if random.bytes(1)[0] < 60 {
            packets.push(packing.take().to_vec());
        }
        if !packing.push(message) {
            packets.push(packing.take().to_vec());
            assert!(packing.push(message), "an empty packet has room");
        }
    }
    packets.push(packing.take().to_vec());
    if published.over {
        packets.push(packing.end().to_vec());
    }
    packets
}

/// What comes of a line: packets lost, doubled, and out of their order.
fn line(packets: &[Vec<u8>], lost_percent: u8, random: &mut Random) -> Vec<Vec<u8>> {
    let mut line: Vec<Vec<u8>> = Vec::new();
    for packet in packets {
        let [lot, place] = random.bytes(2)[..] else { unreachable!("two bytes") };
        if lot % 100 < lost_percent {
            continue;
        }
        let back = line.len().saturating_sub(usize::from(place % 4));
        line.insert(back, packet.clone());
        if place > 230 {
            line.push(packet.clone());
        }
    }
    line
}

#[test]
fn two_publications_of_one_record_are_equal_in_every_byte() {
    for seed in 0..50 {
        assert_eq!(tape(seed), tape(seed));
    }
}

#[test]
fn two_lossy_lines_give_each_message_once_gap_not_current() {
    let (mut gaps, mut random) = (0, Random::new(11));
    for seed in 0..60 {
        for published in tape(seed).0 {
            let lost = [0, 1, 5, 20][seed as usize % 4];
            let whole = packets(&published, &mut random);
            let lines = [packets(&published, &mut random), packets(&published, &mut random)]
                .map(|packets| line(&packets, lost, &mut random));
            let mut receiver = Receiver::new(published.session, 1);
            let mut got: Vec<Vec<u8>> = Vec::new();
            let length = lines[0].len().max(lines[1].len());
            for at in 0..length {
                for line in &lines {
                    let Some(packet) = line.get(at) else { continue };
                    let take =
                        |_, messages: &[&[u8]]| got.extend(messages.iter().map(|message| message.to_vec()));
                    receiver.on_packet(packet, 0, take).unwrap();
                    assert_eq!(got, published.messages[..got.len()], "seed {seed}");
                }
                gaps += u64::from(matches!(receiver.state(0), FeedState::Gap { .. }));
            }
            // What is asked for again comes as it was.
            for packet in &whole {
                let take =
                    |_, messages: &[&[u8]]| got.extend(messages.iter().map(|message| message.to_vec()));
                receiver.on_packet(packet, 0, take).unwrap();
            }
            assert_eq!(got, published.messages, "seed {seed}");
            let end = if published.over { FeedState::Over } else { FeedState::Current };
            assert_eq!(receiver.state(0), end, "seed {seed}");
        }
    }
    assert!(gaps > 100, "there were gaps: {gaps}");
}
