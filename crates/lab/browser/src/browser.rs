//! Chromium by its driver: one process of each for a test, gone with it.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use fantoccini::elements::Element;
use fantoccini::wd::WebDriverCompatibleCommand;
use fantoccini::{Client, ClientBuilder, Locator};
use hyper_util::client::legacy::connect::HttpConnector;
use serde_json::{Value, json};

/// How long a page has for what it is waited for. Far longer than it takes: it only ends a test that hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// A running chromedriver. It ends its browsers when it ends.
pub struct Driver {
    process: Child,
    port: u16,
}

impl Driver {
    /// None if this machine has none, or no browser for it.
    pub fn start() -> Option<Self> {
        browser()?;
        let mut command = Command::new("chromedriver");
        command.arg("--port=0").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut process = command.spawn().ok()?;
        let mut said = BufReader::new(process.stdout.take()?).lines().map_while(Result::ok);
        // "ChromeDriver was started successfully on port 38213."
        let port = said
            .find_map(|line| line.rsplit_once("successfully on port ")?.1.trim_end_matches('.').parse().ok());
        Some(Self { process, port: port? })
    }
}

impl Driver {
    /// Asks it to end its browsers and itself. One that is killed leaves its browsers running.
    fn shut_down(&mut self) -> std::io::Result<()> {
        let mut driver = TcpStream::connect(("127.0.0.1", self.port))?;
        let host = format!("127.0.0.1:{}", self.port);
        write!(driver, "GET /shutdown HTTP/1.1\r\nHost: {host}\r\n\r\n")?;
        for _ in 0..100 {
            if self.process.try_wait()?.is_some() {
                break;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.shut_down();
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn browser() -> Option<PathBuf> {
    let places = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];
    places.into_iter().map(PathBuf::from).find(|place| place.exists())
}

/// The folder of what is built.
#[must_use]
pub fn target() -> PathBuf {
    // target/debug/deps/a-test
    std::env::current_exe().unwrap().ancestors().nth(3).unwrap().to_owned()
}

/// Where pictures of the pages are left.
fn screenshots() -> PathBuf {
    let folder = target().join("screenshots");
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// How a page is looked at.
#[derive(Clone, Copy, Debug)]
pub struct PageLook {
    /// In the system's dark scheme.
    pub is_dark: bool,
    /// CSS pixels.
    pub width: u32,
}

impl PageLook {
    /// On a desk.
    pub const DESK: Self = Self { is_dark: false, width: 1360 };
    /// The same in the dark.
    pub const DARK: Self = Self { is_dark: true, width: 1360 };
    /// A phone.
    pub const PHONE: Self = Self { is_dark: false, width: 375 };
}

/// A tab.
#[derive(Clone, Debug)]
pub struct Tab {
    client: Client,
    address: String,
}

impl Tab {
    /// Opens the first page at that address.
    pub async fn open(driver: &Driver, address: &str) -> Self {
        let options = json!({
            "binary": browser().unwrap(),
            "args": ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--window-size=1360,1000"],
        });
        let wanted = [("goog:chromeOptions".to_owned(), options)].into_iter().collect();
        let driver = format!("http://127.0.0.1:{}", driver.port);
        let mut builder = ClientBuilder::new(HttpConnector::new());
        let client = builder.capabilities(wanted).connect(&driver).await.unwrap();
        let page = Self { client, address: address.to_owned() };
        page.look(PageLook::DESK).await;
        page.goto("/").await;
        page
    }

    /// Goes to another path there.
    pub async fn goto(&self, path: &str) {
        self.client.goto(&format!("{}{path}", self.address)).await.unwrap();
    }

    /// What a script returns. `arguments[0]` is `given`.
    pub async fn script(&self, script: &str, given: Value) -> Value {
        self.client.execute(script, vec![given]).await.unwrap()
    }

    /// What a script gives to its last argument, a function, in the end.
    pub async fn script_ends(&self, script: &str, given: Value) -> Value {
        self.client.execute_async(script, vec![given]).await.unwrap()
    }

    /// The first element of `css`, once it is there.
    pub async fn find(&self, css: &str) -> Element {
        let found = self.client.wait().at_most(PATIENCE).for_element(Locator::Css(css)).await;
        match found {
            Ok(element) => element,
            Err(error) => panic!("{css} does not come: {error}; the page: {}", self.text().await),
        }
    }

    /// All of the page's text.
    pub async fn text(&self) -> String {
        self.script("return document.body.innerText", Value::Null).await.as_str().unwrap().to_owned()
    }

    /// The text of the first element of `css`; empty if there is none.
    pub async fn text_of(&self, css: &str) -> String {
        let script = "return document.querySelector(arguments[0])?.innerText ?? ''";
        self.script(script, json!(css)).await.as_str().unwrap().to_owned()
    }

    /// Waits until the text of an element has these words in it.
    pub async fn shows(&self, css: &str, words: &str) {
        let script =
            "return document.querySelector(arguments[0][0])?.innerText.includes(arguments[0][1]) ?? false";
        self.until(script, json!([css, words]), &format!("{css} shows {words:?}")).await;
    }

    /// Waits until a script returns true.
    pub async fn until(&self, script: &str, given: Value, what: &str) {
        let tried = async {
            while self.script(script, given.clone()).await != Value::Bool(true) {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        if tokio::time::timeout(PATIENCE, tried).await.is_err() {
            panic!("never: {what}; the page: {}", self.text().await);
        }
    }

    /// A command to the driver.
    pub async fn send(&self, path: &'static str, body: Value) -> Value {
        self.client.issue_cmd(Raw { path, body }).await.unwrap()
    }

    async fn developer(&self, method: &str, given: Value) -> Value {
        self.send("goog/cdp/execute", json!({ "cmd": method, "params": given })).await
    }

    /// Looks at it in another way.
    pub async fn look(&self, look: PageLook) {
        let scheme = if look.is_dark { "dark" } else { "light" };
        let media = json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] });
        self.developer("Emulation.setEmulatedMedia", media).await;
        let high = if look.width < 600 { 812 } else { 1000 };
        self.size(&json!(look.width), &json!(high)).await;
    }

    async fn size(&self, width: &Value, height: &Value) {
        let is_phone = width.as_u64() < Some(600);
        let size = json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": is_phone });
        self.developer("Emulation.setDeviceMetricsOverride", size).await;
    }

    /// Leaves a picture of the whole page.
    pub async fn picture(&self, name: &str) {
        let size = self
            .script("return [innerWidth, innerHeight, document.documentElement.scrollHeight]", Value::Null)
            .await;
        let (width, high, all) = (&size[0], &size[1], &size[2]);
        self.size(width, all).await;
        let bytes = self.client.screenshot().await.unwrap();
        std::fs::write(screenshots().join(format!("{name}.png")), bytes).unwrap();
        self.size(width, high).await;
    }
}

/// A command of the driver that is no standard one.
#[derive(Debug)]
struct Raw {
    path: &'static str,
    body: Value,
}

impl WebDriverCompatibleCommand for Raw {
    fn endpoint(&self, base: &url::Url, session: Option<&str>) -> Result<url::Url, url::ParseError> {
        base.join(&format!("session/{}/{}", session.unwrap_or_default(), self.path))
    }

    fn method_and_body(&self, _: &url::Url) -> (hyper::http::Method, Option<String>) {
        (hyper::http::Method::POST, Some(self.body.to_string()))
    }
}
