//! Whether the help texts of a program are true. Both programs, `pares` and `pares-lab`, test themselves with it.

use clap::error::ErrorKind;
use clap::{Arg, Command};

/// All options of a command and of those below it, each with the words that lead to it.
fn options(command: &Command, path: &[String]) -> Vec<(Vec<String>, Arg)> {
    let path = [path, &[command.get_name().to_owned()]].concat();
    let own =
        command.get_arguments().filter(|arg| arg.get_action().takes_values() && arg.get_long().is_some());
    let own = own.map(|arg| (path.clone(), arg.clone()));
    let below = command.get_subcommands().flat_map(|below| options(below, &path));
    own.chain(below).collect()
}

/// The values that a help text names: in backticks, or in the list of scenarios.
fn named(option: &Arg) -> Vec<String> {
    let help = option.get_help().map(ToString::to_string).unwrap_or_default();
    let words: Vec<&str> = match option.get_id().as_str() {
        "scenario" if !help.contains('`') => help.split([',', ' ', ';', '(', ')']).collect(),
        _ => help.split('`').skip(1).step_by(2).collect(),
    };
    let prose = ["or", "replication", "between", "clusters", "positions", "are", "there", "epochs", "eras"];
    let is_value = |word: &&str| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'-') && !prose.contains(word)
    };
    words.into_iter().filter(is_value).map(str::to_owned).collect()
}

/// Tries every value that a help text names, and says how many there are.
///
/// # Panics
/// If one is refused.
pub fn try_every_value(program: &Command) -> usize {
    let mut tried = 0;
    for (path, option) in options(program, &[]) {
        for word in named(&option) {
            let long = format!("--{}", option.get_long().expect("only these are listed"));
            let line: Vec<String> = path.iter().cloned().chain([long, word]).collect();
            let error = program.clone().try_get_matches_from(&line).err().map(|error| error.kind());
            let refused = [Some(ErrorKind::ValueValidation), Some(ErrorKind::InvalidValue)].contains(&error);
            assert!(!refused, "{line:?}");
            tried += 1;
        }
    }
    tried
}
