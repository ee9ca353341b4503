//! Turns the dictionaries of `dictionary/` into tables.
//!
//! A dictionary is lines of words; `#` begins a comment.
//!
//! | line | says |
//! |---|---|
//! | `version V` | the BeginString |
//! | `tags N` | the standard defines tags up to N; a field beyond is the exchange's own, from 20001 on |
//! | `types T ...` | the standard's message types, also those that are not served |
//! | `field TAG NAME FORM VALUE ...` | a field, and its values if only some are allowed; behind `DATA` the tag of its length |
//! | `group COUNT TAG ...` | a repeating group by the tag of its count; its first tag begins an entry |
//! | `header TAG ...`, `trailer TAG ...` | fields of every message |
//! | `message TYPE NAME TAG ...` | a message, its name for people, and the fields of its body; `*` marks what is required, here and in the header |
#![allow(clippy::print_stdout, clippy::disallowed_methods)] // how cargo is told, and how it tells

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

/// Fields of one dictionary have places 1 to 255; a place is a bit of a set of four words.
const FIELDS_MAX: usize = 255;
/// The first tag of the exchange's own; they follow each other.
const OWN_FROM: u16 = 20_001;

#[derive(Default)]
struct Source {
    version: String,
    tags_max: u16,
    types: Vec<String>,
    fields: BTreeMap<u16, Field>,
    groups: BTreeMap<u16, Vec<u16>>,
    header: Vec<(u16, bool)>,
    trailer: Vec<(u16, bool)>,
    messages: Vec<Body>,
}

struct Field {
    name: String,
    form: String,
    values: Vec<String>,
}

struct Body {
    kind: String,
    fields: Vec<(u16, bool)>,
}

fn main() {
    println!("cargo::rerun-if-changed=dictionary");
    println!("cargo::rerun-if-changed=build.rs");
    let root =
        PathBuf::from(std::env::var("CARGO_MANIFEST_DIR").expect("cargo says where")).join("dictionary");
    let sources = ["fix42", "fix44"].map(|name| {
        let text = std::fs::read_to_string(root.join(name).with_extension("txt")).expect("a dictionary");
        (name.to_uppercase(), read(&text))
    });
    let mut code = String::new();
    tags(&sources, &mut code);
    let depth = sources.iter().flat_map(|(_, source)| source.groups.keys().map(|count| source.depth(*count)));
    let depth = depth.max().expect("groups");
    writeln!(code, "/// Groups within groups.\npub(crate) const DEPTH_MAX: usize = {depth};")
        .expect("a text");
    for (name, source) in &sources {
        dictionary(name, source, &mut code);
    }
    let out = PathBuf::from(std::env::var("OUT_DIR").expect("cargo says where"));
    std::fs::write(out.join("dictionaries.rs"), code).expect("the tables can be written");
}

fn read(text: &str) -> Source {
    let mut source = Source::default();
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            [] => {}
            ["version", version] => source.version = version.into(),
            ["tags", most] => source.tags_max = number(most),
            ["types", ref types @ ..] => source.types.extend(types.iter().map(|&kind| kind.to_owned())),
            ["field", tag, name, form, ref values @ ..] => {
                let values = values.iter().map(|&value| value.to_owned()).collect();
                let field = Field { name: name.into(), form: form.into(), values };
                assert!(source.fields.insert(number(tag), field).is_none(), "field {tag} stands twice");
            }
            ["group", count, ref members @ ..] => {
                source.groups.insert(number(count), members.iter().map(|tag| number(tag)).collect());
            }
            ["header", ref tags @ ..] => source.header = starred(tags),
            ["trailer", ref tags @ ..] => source.trailer = starred(tags),
            ["message", kind, _, ref tags @ ..] => {
                source.messages.push(Body { kind: kind.into(), fields: starred(tags) });
            }
            _ => panic!("{line}: no such line in a dictionary"),
        }
    }
    assert!(source.fields.len() < FIELDS_MAX, "a place is a byte");
    source
}

fn number(word: &str) -> u16 {
    word.parse().unwrap_or_else(|_| panic!("{word}: not a tag"))
}

fn starred(words: &[&str]) -> Vec<(u16, bool)> {
    words.iter().map(|word| (number(word.trim_end_matches('*')), word.ends_with('*'))).collect()
}

/// Constants for the tags of all dictionaries, by name. A tag that was renamed has both names.
fn tags(sources: &[(String, Source)], code: &mut String) {
    let mut names = BTreeMap::new();
    for (tag, field) in sources.iter().flat_map(|(_, source)| &source.fields) {
        let before = names.insert(&field.name, *tag);
        assert!(before.is_none_or(|before| before == *tag), "{} names two tags", field.name);
    }
    writeln!(code, "/// The first tag of the exchange's own.\nconst OWN_FROM: usize = {OWN_FROM};")
        .expect("a text");
    code.push_str("/// Tags by name.\npub mod tag {\n");
    for (name, tag) in names {
        writeln!(code, "    /// `{name}`.\n    pub const {}: u16 = {tag};", screaming(name)).expect("a text");
    }
    code.push_str("}\n");
}

/// `ClOrdID` as `CL_ORD_ID`.
fn screaming(name: &str) -> String {
    let letters: Vec<char> = name.replace("IDs", "Ids").chars().collect();
    let mut text = String::new();
    for (at, letter) in letters.iter().enumerate() {
        let before = at.checked_sub(1).map(|before| letters[before]);
        let after = letters.get(at + 1);
        let begins = before.is_some_and(|before| !before.is_uppercase())
            || after.is_some_and(|after| after.is_lowercase());
        if letter.is_uppercase() && at > 0 && begins {
            text.push('_');
        }
        text.push(letter.to_ascii_uppercase());
    }
    text
}

fn dictionary(name: &str, source: &Source, code: &mut String) {
    // BeginString, BodyLength and CheckSum are the frame's, not the parser's.
    let framed = [8, 9, 10];
    let header: Vec<_> = source.header.iter().copied().filter(|(tag, _)| !framed.contains(tag)).collect();
    let parts = [
        ("begin_string", format!("{:?}", source.version)),
        ("tags_max", source.tags_max.to_string()),
        ("types", format!("&{:?}", source.types)),
        ("places", format!("&{:?}", source.places(0..=source.tags_max))),
        ("own", format!("&{:?}", source.own())),
        ("fields", format!("&[{}]", source.field_rules().join(", "))),
        ("groups", format!("&[{}]", source.group_rules().join(", "))),
        ("messages", format!("&[{}]", source.message_rules().join(", "))),
        ("letters", format!("{:?}", source.letters())),
        ("framed", source.set(framed)),
        ("required", source.required(&header)),
    ];
    let parts: Vec<String> =
        parts.into_iter().map(|(part, value)| format!("    {part}: {value},\n")).collect();
    let about = format!("/// {} as it is served.", source.version);
    writeln!(code, "{about}\npub static {name}: FixDictionary = FixDictionary {{\n{}}};", parts.concat())
        .expect("a text");
}

impl Source {
    fn place(&self, tag: u16) -> usize {
        let before = self.fields.keys().position(|known| *known == tag);
        1 + before.unwrap_or_else(|| panic!("{tag}: not a field"))
    }

    fn places(&self, tags: std::ops::RangeInclusive<u16>) -> Vec<usize> {
        tags.map(|tag| if self.fields.contains_key(&tag) { self.place(tag) } else { 0 }).collect()
    }

    /// The places of the exchange's own tags.
    fn own(&self) -> Vec<usize> {
        let last = self.fields.keys().next_back().copied().filter(|last| *last > self.tags_max);
        let is_own = |tag: &u16| *tag <= self.tags_max || *tag >= OWN_FROM;
        assert!(self.fields.keys().all(is_own), "a tag is the standard's, or from {OWN_FROM} on");
        last.map_or_else(Vec::new, |last| self.places(OWN_FROM..=last))
    }

    fn set(&self, tags: impl IntoIterator<Item = u16>) -> String {
        let mut words = [0u64; 4];
        tags.into_iter().map(|tag| self.place(tag)).for_each(|place| words[place / 64] |= 1 << (place % 64));
        format!("FieldSet({words:?})")
    }

    fn required(&self, tags: &[(u16, bool)]) -> String {
        self.set(tags.iter().filter(|(_, star)| *star).map(|(tag, _)| *tag))
    }

    fn field_rules(&self) -> Vec<String> {
        // Place 0 is that of no field.
        let none = Field { name: String::new(), form: "STRING".into(), values: Vec::new() };
        let fields = self.fields.iter().map(|(tag, field)| rule(self, *tag, field));
        std::iter::once(rule(self, 0, &none)).chain(fields).collect()
    }

    fn group_rules(&self) -> Vec<String> {
        let rule = |(count, members): (&u16, &Vec<u16>)| {
            let [count, first] = [*count, members[0]].map(|tag| self.place(tag));
            let members = self.set(members.iter().copied());
            format!("GroupRule {{ count: {count}, first: {first}, members: {members} }}")
        };
        self.groups.iter().map(rule).collect()
    }

    /// How deep groups lie in each other, from this one on.
    fn depth(&self, count: u16) -> usize {
        let inner = self.groups.get(&count).map(|members| members.iter().map(|tag| self.depth(*tag)).max());
        inner.map_or(0, |inner| 1 + inner.unwrap_or_default())
    }

    fn message_rules(&self) -> Vec<String> {
        let rule = |body: &Body| {
            let allowed = self.set(body.fields.iter().map(|(tag, _)| *tag));
            let (kind, required) = (&body.kind, self.required(&body.fields));
            format!("MessageRule {{ msg_type: {kind:?}, allowed: {allowed}, required: {required} }}")
        };
        self.messages.iter().map(rule).collect()
    }

    /// By the letter of a type, one more than the number of its message.
    fn letters(&self) -> Vec<usize> {
        let mut letters = vec![0; 128];
        for (at, body) in self.messages.iter().enumerate() {
            if let [letter] = body.kind.as_bytes() {
                letters[usize::from(*letter)] = at + 1;
            }
        }
        letters
    }
}

fn rule(source: &Source, tag: u16, field: &Field) -> String {
    let group = source.groups.keys().position(|count| *count == tag).map_or(0, |at| at + 1);
    let length = if field.form == "DATA" { source.place(number(&field.values[0])) } else { 0 };
    let form = match field.form.as_str() {
        "STRING" => "Text",
        "CHAR" => "Char",
        "BOOLEAN" => "Flag",
        "INT" => "Integer",
        "LENGTH" | "SEQNUM" | "NUMINGROUP" => "Count",
        "QTY" | "PRICE" | "FLOAT" => "Decimal",
        "WORDS" => "Letters",
        "UTCTIMESTAMP" => "Timestamp",
        "LOCALMKTDATE" => "Date",
        "DATA" => "Data",
        other => panic!("{other}: no such form"),
    };
    let within = |tags: &[(u16, bool)]| tags.iter().any(|(other, _)| *other == tag);
    let section = match () {
        () if within(&source.header) => "Header",
        () if within(&source.trailer) => "Trailer",
        () => "Body",
    };
    let values = if length > 0 { String::from("Values::Any") } else { values(field) };
    format!(
        "FieldRule {{ tag: {tag}, form: Form::{form}, values: {values}, section: Section::{section}, group: {group}, length: {length} }}"
    )
}

fn values(field: &Field) -> String {
    if field.values.is_empty() {
        return "Values::Any".into();
    }
    if field.values.iter().all(|value| value.len() == 1) {
        let mask = field.values.iter().fold(0u128, |mask, value| mask | 1 << value.as_bytes()[0]);
        return format!("Values::Letters({mask:#x})");
    }
    format!("Values::Words(&{:?})", field.values)
}
