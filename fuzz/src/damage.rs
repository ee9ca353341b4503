//! Good inputs turned bad, by a seed.
//!
//! Random bytes never get past the first check of a parser. What real damage and real attackers send is almost
//! right: a good message with one thing changed, cut, doubled or taken from another.

use pares_random::Random;

/// One input: a seed input, damaged up to four times. One in eight stays whole.
#[must_use]
pub fn input(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[random.index(seeds.len())].clone();
    if random.below(8) > 0 {
        for _ in 0..=random.below(4) {
            damage(random, &mut bytes, seeds);
        }
    }
    bytes
}

/// Numbers that parsers get wrong.
const EDGES: [u64; 8] = [0, 1, 0x7F, 0xFF, 0x7FFF, 0xFFFF_FFFF, 0x7FFF_FFFF_FFFF_FFFF, u64::MAX];

fn damage(random: &mut Random, bytes: &mut Vec<u8>, seeds: &[Vec<u8>]) {
    let at = random.index(bytes.len());
    match random.below(7) {
        0 => bytes.truncate(at),
        1 => flip_bit(random, bytes, at),
        2 => replace(bytes, at, &[random.next_u64() as u8]),
        3 => overwrite_number(random, bytes, at),
        4 => {
            let end = at + random.index(bytes.len() - at + 1);
            bytes.drain(at..end);
        }
        5 => {
            let piece = bytes[at..at + random.index(bytes.len() - at + 1)].to_vec();
            bytes.splice(at..at, piece);
        }
        _ => {
            let other = &seeds[random.index(seeds.len())];
            bytes.truncate(at);
            bytes.extend_from_slice(&other[random.index(other.len())..]);
        }
    }
}

fn flip_bit(random: &mut Random, bytes: &mut [u8], at: usize) {
    if let Some(byte) = bytes.get_mut(at) {
        *byte ^= 1 << random.below(8);
    }
}

fn overwrite_number(random: &mut Random, bytes: &mut [u8], at: usize) {
    let width = 1 << random.below(4);
    let number = EDGES[random.index(EDGES.len())];
    replace(bytes, at, &number.to_le_bytes()[..width]);
}

fn replace(bytes: &mut [u8], at: usize, with: &[u8]) {
    bytes.iter_mut().skip(at).zip(with).for_each(|(byte, with)| *byte = *with);
}
