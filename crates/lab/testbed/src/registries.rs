//! Programs of others, from PyPI and npm: installed once, each in a folder of its own, where the registry and what runs them are at hand.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Whether a command succeeds.
pub fn answers(command: &mut Command) -> bool {
    let quiet = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

/// The name of a package, without its extras and its version.
pub fn name_of(package: &str) -> &str {
    package.split(['=', '[']).next().unwrap_or(package)
}

/// A Python environment below `folder` with that package: its `bin`, in which its programs are. None, and a line that says so, if it cannot be made.
pub fn python_with(folder: &Path, package: &str, is_there: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    let dir = folder.join(name_of(package));
    let bin = dir.join("bin");
    let install = ["-m", "pip", "install", "--quiet", package];
    let made = is_there(&bin)
        || answers(Command::new("python3").args(["-m", "venv"]).arg(&dir))
            && answers(Command::new(bin.join("python")).args(install))
            && is_there(&bin);
    if !made {
        println!("skipped: {package} cannot be installed; it needs Python 3 with venv, and PyPI");
    }
    made.then_some(bin)
}

/// A folder with those packages of npm, in which `is_there` finds them. None, and a line that says so, if it cannot be made.
pub fn node_with(dir: PathBuf, packages: &[&str], is_there: impl Fn(&Path) -> bool) -> Option<PathBuf> {
    std::fs::create_dir_all(&dir).unwrap();
    let install = ["install", "--no-audit", "--no-fund", "--prefix"];
    let made = is_there(&dir)
        || answers(Command::new("npm").args(install).arg(&dir).args(packages)) && is_there(&dir);
    if !made {
        println!("skipped: {packages:?} cannot be installed; they need Node, and npm's registry");
    }
    made.then_some(dir)
}
