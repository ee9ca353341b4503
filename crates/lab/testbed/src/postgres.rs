//! A PostgreSQL server of our own: in a directory of its own, reached by a socket there, gone when the tests are.
//!
//! A server left behind by a test that was killed would be worse than none, so it is started by a shell that waits for its
//! standard input to close, which happens however the test process ends, and then stops it and removes its directory.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use postgres::{Client, NoTls};

/// Owned by the user who runs it; stopped by immediate shutdown, since nobody will miss what it holds.
const SCRIPT: &str = r#"
    umask 077; mkdir "$1" || exit 1; cd "$1" || exit 1
    "$2/initdb" --pgdata=data --auth=trust --username=postgres --encoding=UTF8 --locale=C --no-sync >initdb.log 2>&1 &&
    { "$2/postgres" -D data -k "$1" -c listen_addresses= -c fsync=off -c max_connections=200 >server.log 2>&1 & server=$!
      cat >/dev/null; kill -QUIT $server; wait $server; }
    cd /; rm -rf "$1"
"#;

/// A server that ends with the test process.
pub struct Server {
    directory: PathBuf,
    /// Holds the pipe that keeps the server alive.
    _shell: Child,
}

/// The server of this test process; `None`, and a line that says so, where PostgreSQL is not installed.
pub fn server() -> Option<&'static Server> {
    static SERVER: OnceLock<Option<Server>> = OnceLock::new();
    let start = || {
        let server = Server::start();
        if server.is_none() {
            // Not by a macro, whose output the test harness hides.
            let why =
                "left out: PostgreSQL is not installed (Debian, Ubuntu: `apt-get install postgresql`)\n";
            std::io::stderr().write_all(why.as_bytes()).unwrap();
        }
        server
    };
    SERVER.get_or_init(start).as_ref()
}

impl Server {
    fn start() -> Option<Self> {
        let programs = programs()?;
        let directory = std::env::temp_dir().join(format!("pares-postgres-{}", std::process::id()));
        let shell = as_other_than_root()
            .args(["sh", "-c", SCRIPT, "sh"])
            .args([&directory, &programs])
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .ok()?;
        let mut server = Self { directory, _shell: shell };
        server.wait();
        Some(server)
    }

    fn wait(&mut self) {
        let deadline = Instant::now() + Duration::from_secs(120);
        while let Err(error) = Client::connect(&self.connection("postgres"), NoTls) {
            let log = || std::fs::read_to_string(self.directory.join("server.log")).unwrap_or_default();
            assert!(Instant::now() < deadline, "the server does not answer: {error}\n{}", log());
            let ended = self._shell.try_wait().unwrap();
            assert!(ended.is_none(), "the server did not start: {ended:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// How to reach a database of it.
    pub fn connection(&self, database: &str) -> String {
        format!("host={} user=postgres dbname={database}", self.directory.display())
    }

    /// A new, empty database.
    pub fn database(&self) -> String {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("test_{}", NUMBER.fetch_add(1, Ordering::Relaxed));
        let mut client = Client::connect(&self.connection("postgres"), NoTls).unwrap();
        client.batch_execute(&format!("CREATE DATABASE {name}")).unwrap();
        self.connection(&name)
    }
}

/// Where Debian and most others put `initdb` and `postgres`; the newest, if there are several.
fn programs() -> Option<PathBuf> {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut found: Vec<(u32, PathBuf)> = versions
        .filter_map(|version| Some((version.file_name().to_str()?.parse().ok()?, version.path().join("bin"))))
        .filter(|(_, folder)| has_programs(folder))
        .collect();
    found.sort();
    found
        .pop()
        .map(|(_, folder)| folder)
        .or_else(|| std::env::split_paths(&std::env::var_os("PATH")?).find(|folder| has_programs(folder)))
}

fn has_programs(folder: &Path) -> bool {
    ["initdb", "postgres"].iter().all(|program| folder.join(program).is_file())
}

/// PostgreSQL refuses to be run by root; installing it has made a user for it.
fn as_other_than_root() -> Command {
    if rustix::process::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=postgres", "--regid=postgres", "--clear-groups", "--"]);
        command
    } else {
        Command::new("env")
    }
}
