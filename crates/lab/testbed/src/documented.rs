//! Whether documents are true about the command line. Both programs, `pares` and `pares-lab`, test themselves with it.
//!
//! A command that was renamed lives on in pages that nobody runs. So each command line in a Markdown file is parsed here as
//! the program would parse it, and not run. The change log tells of the past and is left out.
//!
//! | where | must be |
//! |---|---|
//! | a line of a fenced block that begins with `pares`, `pares-lab`, a path to one or `cargo run -p` with one, after `$` and `NAME=value`; also behind `;`, `&&` or a pipe | a whole command line |
//! | inline code that begins so, in prose, tables and comments of blocks | the beginning of one: values and subcommands may be missing |
//!
//! What is not meant literally: a value that the program refuses stands for another if it holds a capital letter or `..`
//! (`N`, `venue-V`); a word `..` or `...` stands for what is left out; `[..]` is tried without its brackets, or left out if it
//! only says that something repeats (`[--gateway ..]`); of `a|b` each is tried.

use std::path::{Path, PathBuf};

use clap::Command;
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};

/// Most alternatives (`a|b|c`) that a line has.
const ALTERNATIVES_MAX: usize = 6;

/// A command line in a document.
struct Documented {
    /// File and line.
    place: String,
    /// The program's name, and its arguments.
    words: Vec<String>,
    /// Inline code: what follows may be missing.
    is_mention: bool,
}

/// What became of the command lines that a program has in documents.
pub struct Tried {
    /// How many were parsed.
    pub count: usize,
    /// Those that the program would refuse, and why.
    pub wrong: Vec<String>,
}

/// Parses every documented command line of `program`: those for which `is_ours` says so, given the name in the document and
/// its first argument.
///
/// # Panics
/// If the documents cannot be read.
pub fn try_every_line(program: &Command, is_ours: impl Fn(&str, &str) -> bool) -> Tried {
    let mut tried = Tried { count: 0, wrong: Vec::new() };
    for line in documents().iter().flat_map(|path| lines_of(path)) {
        let first = line.words.get(1).map_or("", String::as_str);
        if is_ours(&line.words[0], first) {
            tried.count += 1;
            let why = refusal(program.clone(), &line);
            tried.wrong.extend(why.map(|why| format!("{}: `{}`: {why}", line.place, line.words.join(" "))));
        }
    }
    tried
}

/// The Markdown files of the workspace.
fn documents() -> Vec<PathBuf> {
    let mut found = Vec::new();
    walk(&root(), &mut found);
    assert!(found.len() > 20, "{found:?}");
    found
}

/// The folder of the workspace, from that of a program's crate.
fn root() -> PathBuf {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().nth(3);
    crates.expect("a program's crate lies in crates/GROUP/NAME").to_owned()
}

fn walk(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("a folder of the workspace can be read").flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_folder = entry.file_type().is_ok_and(|kind| kind.is_dir());
        if is_folder && name != "target" && name != "node_modules" && !name.starts_with('.') {
            walk(&entry.path(), found);
        } else if name.ends_with(".md") && name != "CHANGELOG.md" {
            found.push(entry.path());
        }
    }
}

fn lines_of(path: &Path) -> Vec<Documented> {
    let text = std::fs::read_to_string(path).expect("a document is text");
    let name = path.strip_prefix(root()).unwrap_or(path).display().to_string();
    let mut found = Vec::new();
    let mut is_fenced = false;
    for (number, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            is_fenced = !is_fenced;
            continue;
        }
        let place = format!("{name}:{}", number + 1);
        let mut add = |text: &str, is_mention| {
            let commands = commands(text).into_iter();
            found.extend(commands.map(|words| Documented { place: place.clone(), words, is_mention }));
        };
        line.split('`').skip(1).step_by(2).for_each(|code| add(&code.replace("\\|", "|"), true));
        if is_fenced {
            add(line, false);
        }
    }
    found
}

/// The command lines of ours in a line of a shell, with each of its alternatives.
fn commands(text: &str) -> Vec<Vec<String>> {
    let mut found: Vec<Vec<String>> = Vec::new();
    for alternative in 0..ALTERNATIVES_MAX {
        let commands = shell(&without_brackets(text, alternative), alternative);
        for words in commands.into_iter().filter_map(of_ours) {
            if !found.contains(&words) {
                found.push(words);
            }
        }
    }
    found
}

/// A command of a shell as one of ours: the program's name and its arguments.
fn of_ours(command: Vec<String>) -> Option<Vec<String>> {
    let is_variable = |word: &String| word.starts_with(|c: char| c.is_uppercase()) && word.contains('=');
    let mut words: Vec<String> =
        command.into_iter().skip_while(|word| word == "$" || is_variable(word)).collect();
    if words.starts_with(&["cargo".into(), "run".into()]) {
        let package = words.iter().skip_while(|word| *word != "-p").nth(1)?.clone();
        let arguments = words.into_iter().skip_while(|word| word != "--").skip(1);
        words = std::iter::once(package).chain(arguments).collect();
    }
    let name = program(words.first()?)?.to_owned();
    words[0] = name;
    Some(words)
}

/// Which program a word starts: `target/release/pares` is `pares`.
fn program(word: &str) -> Option<&str> {
    let name = word.rsplit('/').next()?;
    ["pares", "pares-lab"].contains(&name).then_some(name)
}

/// A line with one alternative of each of its optional parts; a part that only says that something repeats is left out.
fn without_brackets(text: &str, alternative: usize) -> String {
    let mut parts = text.split(" [");
    let mut line = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let Some((optional, rest)) = part.split_once(']') else {
            line.push_str(" [");
            line.push_str(part);
            continue;
        };
        if !optional.contains("..") {
            line.push(' ');
            line.push_str(chosen(optional, " | ", alternative));
        }
        line.push_str(rest);
    }
    line
}

/// One of several alternatives; the last if there are not so many.
fn chosen<'a>(text: &'a str, mark: &str, alternative: usize) -> &'a str {
    let last = text.split(mark).count() - 1;
    text.split(mark).nth(alternative.min(last)).unwrap_or(text)
}

/// The commands of a line of a shell, each in its words: quotes are taken off, a comment ends the line.
fn shell(text: &str, alternative: usize) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let mut rest = text.trim_start();
    while !rest.is_empty() && !rest.starts_with('#') {
        let (word, after) = word(rest);
        rest = after.trim_start();
        if [";", "|", "&&", "&", ">", "||"].contains(&word.as_str()) {
            commands.push(Vec::new());
            continue;
        }
        let (word, is_end) = match word.strip_suffix(';') {
            Some(word) => (word, true),
            None => (word.as_str(), false),
        };
        commands.last_mut().expect("never empty").push(chosen(word, "|", alternative).to_owned());
        if is_end {
            commands.push(Vec::new());
        }
    }
    commands
}

/// The first word of a text that begins with one, and what follows it.
fn word(text: &str) -> (String, &str) {
    let mut word = String::new();
    let mut quote = None;
    for (at, letter) in text.char_indices() {
        match quote {
            None if letter.is_whitespace() => return (word, &text[at..]),
            None if letter == '\'' || letter == '"' => quote = Some(letter),
            Some(open) if letter == open => quote = None,
            _ => word.push(letter),
        }
    }
    (word, "")
}

/// Why the program would refuse a line, if it would.
fn refusal(mut program: Command, line: &Documented) -> Option<String> {
    let is_cut = |word: &&String| ["..", "..."].contains(&word.as_str());
    let may_miss = line.is_mention || line.words.iter().any(|word| is_cut(&word));
    let words: Vec<&String> = line.words.iter().filter(|word| !is_cut(word)).collect();
    loop {
        let error = program.clone().try_get_matches_from(&words).err()?;
        match stand_in(&error) {
            Some(option) => program = loosen(program, &option),
            None if is_help(&error) || may_miss && is_something_missing(&error) => return None,
            None => return Some(error.to_string().lines().next().unwrap_or_default().to_owned()),
        }
    }
}

/// The option whose value was refused because it stands for another.
fn stand_in(error: &Error) -> Option<String> {
    let text = |kind| match error.get(kind) {
        Some(ContextValue::String(text)) => Some(text.clone()),
        _ => None,
    };
    let is_refused = [ErrorKind::InvalidValue, ErrorKind::ValueValidation].contains(&error.kind());
    let value = text(ContextKind::InvalidValue).filter(|_| is_refused)?;
    (value.contains(char::is_uppercase) || value.contains("..")).then(|| text(ContextKind::InvalidArg))?
}

/// The same program, with an option, as an error calls it (`--rate <RATE>`, `[SESSION]`), that takes anything.
fn loosen(program: Command, option: &str) -> Command {
    let name = option.split([' ', '=']).next().unwrap_or_default().trim_start_matches("--");
    let is_meant = |arg: &clap::Arg| match arg.get_long() {
        Some(long) => long == name,
        None => option.trim_start_matches(['<', '[']).starts_with(&value_name(arg)),
    };
    let anything = |arg: clap::Arg| match is_meant(&arg) {
        true => arg.value_parser(clap::builder::ValueParser::string()),
        false => arg,
    };
    program.mut_args(anything).mut_subcommands(|below| loosen(below, option))
}

fn value_name(arg: &clap::Arg) -> String {
    let named = arg.get_value_names().and_then(|names| names.first());
    named.map_or_else(|| arg.get_id().to_string(), ToString::to_string)
}

fn is_help(error: &Error) -> bool {
    [ErrorKind::DisplayHelp, ErrorKind::DisplayVersion].contains(&error.kind())
}

fn is_something_missing(error: &Error) -> bool {
    let is_empty =
        matches!(error.get(ContextKind::InvalidValue), Some(ContextValue::String(text)) if text.is_empty());
    match error.kind() {
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
        | ErrorKind::TooFewValues => true,
        ErrorKind::InvalidValue => is_empty,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(text: &str) -> Vec<String> {
        commands(text).iter().map(|words| words.join(" ")).collect()
    }

    #[test]
    fn commands_are_found_in_a_line_of_a_shell() {
        assert_eq!(said("pares up; pares stat --watch  # pares down"), ["pares up", "pares stat --watch"]);
        assert_eq!(said("$ A=1 target/release/pares-lab demo | cat"), ["pares-lab demo"]);
        assert_eq!(said("pares site execute 'together a; b'"), ["pares site execute together a; b"]);
        assert_eq!(said("cargo run --release -p pares -- stat"), ["pares stat"]);
        assert!(said("from pares import Side").is_empty());
    }

    #[test]
    fn each_alternative_is_tried() {
        assert_eq!(said("pares drill a|b --x"), ["pares drill a --x", "pares drill b --x"]);
        assert_eq!(said("pares up [--a N | --b] [--c ..] d"), ["pares up --a N d", "pares up --b d"]);
    }

    #[test]
    fn a_false_line_is_found_and_a_stand_in_is_none() {
        let number = clap::Arg::new("rate").long("rate").value_parser(clap::value_parser!(u32));
        let program = Command::new("pares").subcommand(Command::new("drill").arg(number));
        let why = |text: &str, is_mention| {
            let words = commands(text).remove(0);
            refusal(program.clone(), &Documented { place: String::new(), words, is_mention })
        };
        assert_eq!(why("pares drill --rate N", false), None);
        assert_eq!(why("pares drill --rate", true), None);
        for wrong in ["pares drill --rate fast", "pares drill --rate", "pares drll", "pares drill --speed 1"]
        {
            assert!(why(wrong, false).is_some(), "{wrong}");
        }
    }
}
