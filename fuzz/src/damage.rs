//! Good inputs turned bad, by a seed.
//!
//! Random bytes never get past the first check of a parser. What real damage and real attackers send is almost
//! right: a good message with one thing changed, cut, doubled or taken from another.

/// A small seeded generator (`SplitMix64`): the same inputs on every machine.
pub struct Random(u64);

impl Random {
    /// The stream of `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    }

    /// Bytes of any value.
    #[must_use]
    pub fn bytes(&mut self, length: usize) -> Vec<u8> {
        (0..length).map(|_| self.next() as u8).collect()
    }

    /// A number below `bound`; 0 if `bound` is.
    fn below(&mut self, bound: usize) -> usize {
        ((u128::from(self.next()) * bound as u128) >> 64) as usize
    }
}

/// One input: a seed input, damaged up to four times. One in eight stays whole.
#[must_use]
pub fn input(random: &mut Random, seeds: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
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
    let at = random.below(bytes.len());
    match random.below(7) {
        0 => bytes.truncate(at),
        1 => flip_bit(random, bytes, at),
        2 => replace(bytes, at, &[random.next() as u8]),
        3 => overwrite_number(random, bytes, at),
        4 => {
            let end = at + random.below(bytes.len() - at + 1);
            bytes.drain(at..end);
        }
        5 => {
            let piece = bytes[at..at + random.below(bytes.len() - at + 1)].to_vec();
            bytes.splice(at..at, piece);
        }
        _ => {
            let other = &seeds[random.below(seeds.len())];
            bytes.truncate(at);
            bytes.extend_from_slice(&other[random.below(other.len())..]);
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
    let number = EDGES[random.below(EDGES.len())];
    replace(bytes, at, &number.to_le_bytes()[..width]);
}

fn replace(bytes: &mut [u8], at: usize, with: &[u8]) {
    bytes.iter_mut().skip(at).zip(with).for_each(|(byte, with)| *byte = *with);
}
