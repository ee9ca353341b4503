//! The text of a FIX dictionary, of which the build makes tables: one with a fault is refused, and no build panics.

/// Makes tables of a text, alone and beside itself.
pub fn dictionary(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(code) = pares_dictionary::tables(&[("own.txt", text)]) else { return };
    assert!(code.contains("pub static OWN: FixDictionary"), "it has the dictionary");
    let twice = pares_dictionary::tables(&[("own.txt", text), ("other.txt", text)])
        .expect("the same names for the same tags");
    assert!(twice.starts_with(code.split("/// Groups within groups.").next().expect("a beginning")));
}

/// A small one, with a field of each kind.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    vec![include_bytes!("../../crates/doors/dictionary/tests/sound.txt").to_vec()]
}
