//! The form of pages: cells of tables, the length of README, and the places that the recipes of CONTRIBUTING name.
//!
//! A table is read across. A cell that has grown into a paragraph hides the cells beside it, and no single edit is to
//! blame; so the length is bounded. A recipe is useless after the first renamed function; so each line of a recipe names a
//! file and what to look for in it, and both must exist.

use super::File;
use super::rust::has_word;

/// The most characters of a cell, markup included.
const CELL_MAX: usize = 300;
/// The most lines and words of README.
const FIRST_PAGE_MAX: (usize, usize) = (130, 1_000);
/// The recipes.
const RECIPES: &str = "CONTRIBUTING.md";
/// The fewest places of a recipe: with fewer, the recipes' form has changed and they are not checked.
const PLACES_MIN: usize = 10;

/// Checks all pages.
pub(super) fn check(files: &[File], violations: &mut Vec<String>) {
    for file in files.iter().filter(|file| is_page(&file.path)) {
        check_cells(file, violations);
    }
    if let Some(readme) = files.iter().find(|file| file.path == "README.md") {
        check_first_page(&readme.text, violations);
    }
    match files.iter().find(|file| file.path == RECIPES) {
        Some(recipes) => check_recipes(recipes, files, violations),
        None => violations.push(format!("{RECIPES} is missing")),
    }
}

fn is_page(path: &str) -> bool {
    let at_the_root = ["README.md", "CHANGELOG.md", RECIPES].contains(&path);
    at_the_root || path.starts_with("docs/") && path.ends_with(".md")
}

/// No cell of a table is longer than [`CELL_MAX`].
fn check_cells(file: &File, violations: &mut Vec<String>) {
    let mut fenced = false;
    for (index, line) in file.text.lines().enumerate() {
        fenced ^= line.trim_start().starts_with("```");
        if fenced || !line.starts_with('|') {
            continue;
        }
        let longest = cells(line).iter().map(|cell| cell.trim().chars().count()).max().unwrap_or_default();
        if longest > CELL_MAX {
            violations.push(format!(
                "{}:{}: a cell has {longest} characters, {CELL_MAX} at most: put the rest below the table",
                file.path,
                index + 1
            ));
        }
    }
}

/// The texts between the bars of a row; `\|` is no bar.
fn cells(row: &str) -> Vec<String> {
    row.replace("\\|", "/").split('|').map(str::to_owned).collect()
}

fn check_first_page(text: &str, violations: &mut Vec<String>) {
    let (lines, words) = (text.lines().count(), text.split_whitespace().count());
    if lines > FIRST_PAGE_MAX.0 || words > FIRST_PAGE_MAX.1 {
        let (lines_max, words_max) = FIRST_PAGE_MAX;
        violations.push(format!(
            "README.md: {lines} lines and {words} words, {lines_max} and {words_max} at most: docs/tour.md takes the rest"
        ));
    }
}

/// Every file that a recipe names exists, and contains the names that the recipe says.
fn check_recipes(recipes: &File, files: &[File], violations: &mut Vec<String>) {
    for section in recipes.text.split("\n## Recipe: ").skip(1) {
        let name = section.lines().next().unwrap_or_default();
        let places: Vec<Place<'_>> = section.lines().filter_map(place).collect();
        if places.len() < PLACES_MIN {
            violations.push(format!("{}: only {} places to {name}", recipes.path, places.len()));
        }
        for Place { path, items } in places {
            let Some(file) = files.iter().find(|file| file.path == path) else {
                violations.push(format!("{}: to {name}: there is no `{path}`", recipes.path));
                continue;
            };
            for item in items.into_iter().filter(|item| !has_word(&file.text, item)) {
                violations.push(format!("{}: to {name}: `{path}` has no `{item}`", recipes.path));
            }
        }
    }
}

/// A file, and the names to look for in it.
#[derive(Debug, PartialEq, Eq)]
struct Place<'a> {
    path: &'a str,
    items: Vec<&'a str>,
}

/// Reads a line of a recipe: ``- `path`: text with `item` ``. Code that is no name, such as a command, is no item.
fn place(line: &str) -> Option<Place<'_>> {
    let (path, rest) = line.strip_prefix("- `")?.split_once('`')?;
    let is_name = |code: &&str| code.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    Some(Place { path, items: rest.split('`').skip(1).step_by(2).filter(is_name).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::testing::{file, found};

    #[test]
    fn a_cell_is_short_and_a_bar_in_code_ends_none() {
        let long = "x".repeat(CELL_MAX + 1);
        let of = |text: String| {
            found(|violations| check(&[file("docs/a.md", &text), file(RECIPES, "")], violations))
        };
        assert!(of(format!("| {} |\n", &long[1..])).is_empty());
        assert!(
            of(format!("{long}\n```\n| {long} |\n```\n")).is_empty(),
            "text and code are as long as they like"
        );
        assert_eq!(of(format!("| a |\n| b | {long} |\n")).len(), 1);
        let half = "x".repeat(CELL_MAX / 2 + 1);
        assert_eq!(of(format!("| {half}\\|{half} |")).len(), 1, "one cell");
    }

    #[test]
    fn the_first_page_is_short() {
        let of = |text: String| found(|violations| check_first_page(&text, violations)).len();
        assert_eq!(of("a b\n".repeat(FIRST_PAGE_MAX.0)), 0);
        assert_eq!(of("a\n".repeat(FIRST_PAGE_MAX.0 + 1)), 1);
        assert_eq!(of("a ".repeat(FIRST_PAGE_MAX.1 + 1)), 1);
    }

    #[test]
    fn a_recipe_names_what_is_there() {
        let recipe =
            |line: &str| format!("# A\n\n## Recipe: cook\n\n{}", format!("{line}\n").repeat(PLACES_MIN));
        let of = |line: &str| {
            let files = [file(RECIPES, &recipe(line)), file("a/b.rs", "fn boil() {}\nfn stir_well() {}")];
            found(|violations| check(&files, violations)).len() / PLACES_MIN
        };
        assert_eq!(of("- `a/b.rs`: `boil`, then `stir_well`, by `cargo run`"), 0);
        assert_eq!(of("- `a/b.rs`: `stir`"), 1, "part of a name is another name");
        assert_eq!(of("- `a/c.rs`: `boil`"), 1);
        let short = [file(RECIPES, "\n## Recipe: cook\n\n- `CONTRIBUTING.md`: it\n")];
        assert_eq!(found(|violations| check(&short, violations)).len(), 1, "a recipe of one place");
    }
}
