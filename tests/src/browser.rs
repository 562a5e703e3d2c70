//! A real Chromium, driven over the WebDriver protocol by `chromedriver`. The requests are few, so that no library is
//! needed: the known one turns on a feature of `serde_json` that changes the order of fields in our own programs.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

/// Names the driver's program, if it is not on the path.
const DRIVER: &str = "CASEBOOK_CHROMEDRIVER";
/// Set to skip tests that need a browser.
const WITHOUT: &str = "CASEBOOK_NO_BROWSER";
const PATIENCE: Duration = Duration::from_secs(60);

/// A browser with one window. Ends with the value.
pub struct Browser {
    driver: Child,
    port: u16,
    /// For the profile of the browser, which stays otherwise.
    _folder: TempDir,
    client: reqwest::Client,
    session: String,
}

impl Drop for Browser {
    fn drop(&mut self) {
        // A driver that is killed leaves its browser running.
        let _ = shut_down(self.port);
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

/// Waits until the driver has closed its browsers.
fn shut_down(port: u16) -> std::io::Result<()> {
    let mut driver = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
    driver.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(driver, "GET /shutdown HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n")?;
    driver.read_to_end(&mut Vec::new()).map(drop)
}

type Answer = Result<Value, String>;

impl Browser {
    /// None if the tests are to run without a browser.
    ///
    /// # Errors
    /// The driver is missing, or does not start a browser.
    pub async fn start() -> Result<Option<Self>, String> {
        Self::started(false).await
    }

    /// A browser that runs only when nothing else wants the cores, so that it takes none from a server, as if it were on
    /// another machine.
    ///
    /// # Errors
    /// As for [`Browser::start`], or `chrt` of util-linux is missing.
    pub async fn start_idle() -> Result<Option<Self>, String> {
        Self::started(true).await
    }

    async fn started(idle: bool) -> Result<Option<Self>, String> {
        if std::env::var_os(WITHOUT).is_some() {
            return Ok(None);
        }
        casebook_runtime::tls::install();
        let program = std::env::var_os(DRIVER).map_or_else(|| PathBuf::from("chromedriver"), PathBuf::from);
        let port =
            TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).map_err(|e| e.to_string())?.port();
        let folder = tempfile::tempdir().map_err(|e| e.to_string())?;
        let mut command = Command::new(if idle { "chrt".as_ref() } else { program.as_os_str() });
        if idle {
            command.args(["--idle", "0"]).arg(&program);
        }
        let driver = command
            .arg(format!("--port={port}"))
            .env("TMPDIR", folder.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|e| {
                let program = if idle { "chrt (of util-linux)".into() } else { program.display().to_string() };
                format!("{program}: {e}; install chromium-driver, name it in {DRIVER}, or set {WITHOUT}=1")
            })?;
        let client = reqwest::Client::builder().timeout(PATIENCE).build().map_err(|e| e.to_string())?;
        let mut browser = Self { driver, port, _folder: folder, client, session: String::new() };
        let arguments = [
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-background-networking",
            "--disable-dev-shm-usage",
            "--window-size=1280,900",
        ];
        let wanted = json!({"capabilities": {"alwaysMatch": {"browserName": "chrome", "goog:chromeOptions": {"args": arguments}}}});
        let place = format!("http://127.0.0.1:{port}/session");
        let end = Instant::now() + PATIENCE;
        let opened = loop {
            match browser.post(&place, &wanted).await {
                Ok(opened) => break opened,
                Err(error) if Instant::now() > end => return Err(format!("the browser does not start: {error}")),
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        };
        let id = opened.get("sessionId").and_then(Value::as_str).ok_or_else(|| format!("no session: {opened}"))?;
        browser.session = format!("{place}/{id}");
        Ok(Some(browser))
    }

    async fn post(&self, place: &str, body: &Value) -> Answer {
        let request = self.client.post(place).header("content-type", "application/json").body(body.to_string());
        let answer = request.send().await.map_err(|e| e.to_string())?;
        let good = answer.status().is_success();
        let bytes = answer.bytes().await.map_err(|e| e.to_string())?;
        let mut body: Value = serde_json::from_slice(&bytes).map_err(|e| e.to_string())?;
        let value = body.get_mut("value").map(Value::take).unwrap_or_default();
        if good { Ok(value) } else { Err(value.to_string()) }
    }

    /// Opens an address and waits until the page is loaded.
    ///
    /// # Errors
    /// The browser refuses it.
    pub async fn open(&self, url: &str) -> Answer {
        self.post(&format!("{}/url", self.session), &json!({"url": url})).await
    }

    /// Runs a script in the page; a promise is waited for.
    ///
    /// # Errors
    /// The script fails.
    pub async fn run(&self, script: &str) -> Answer {
        self.post(&format!("{}/execute/sync", self.session), &json!({"script": script, "args": []})).await
    }

    /// Sends a command of the Chrome DevTools protocol.
    ///
    /// # Errors
    /// The browser refuses it.
    pub async fn devtools(&self, command: &str, parameters: Value) -> Answer {
        self.post(&format!("{}/goog/cdp/execute", self.session), &json!({"cmd": command, "params": parameters})).await
    }

    /// Waits until the expression is true in the page.
    ///
    /// # Errors
    /// It never is.
    pub async fn until(&self, expression: &str) -> Result<(), String> {
        self.within(PATIENCE * 3, expression).await
    }

    /// Like [`Browser::until`], with another patience.
    ///
    /// # Errors
    /// It is not true in time.
    pub async fn within(&self, patience: Duration, expression: &str) -> Result<(), String> {
        let end = Instant::now() + patience;
        loop {
            match self.run(&format!("return Boolean({expression})")).await {
                Ok(Value::Bool(true)) => return Ok(()),
                Err(error) if Instant::now() > end => return Err(error),
                _ if Instant::now() > end => return Err(format!("never true: {expression}")),
                _ => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        }
    }

    /// Presses a key in the page.
    ///
    /// # Errors
    /// The browser refuses it.
    pub async fn press(&self, key: &str) -> Answer {
        self.keys(&[key]).await
    }

    /// Presses keys, one after the other.
    ///
    /// # Errors
    /// The browser refuses it.
    pub async fn keys(&self, keys: &[&str]) -> Answer {
        let pressed: Vec<Value> =
            keys.iter().flat_map(|key| ["keyDown", "keyUp"].map(|does| json!({"type": does, "value": key}))).collect();
        let actions = json!([{"type": "key", "id": "keyboard", "actions": pressed}]);
        self.post(&format!("{}/actions", self.session), &json!({"actions": actions})).await
    }

    /// Opens another window, which is the one in use from now on. It stays visible when another is used.
    ///
    /// # Errors
    /// The browser refuses it.
    pub async fn window(&self) -> Result<String, String> {
        let made = self.post(&format!("{}/window/new", self.session), &json!({"type": "window"})).await?;
        let handle = made.get("handle").and_then(Value::as_str).ok_or("no handle of a window")?.to_owned();
        self.switch(&handle).await?;
        Ok(handle)
    }

    /// Hides the window, as a tab is behind another one. A browser without a screen hides no tabs.
    ///
    /// # Errors
    /// The browser refuses it.
    pub async fn hide(&self) -> Answer {
        self.post(&format!("{}/window/minimize", self.session), &json!({})).await
    }

    /// Shows a hidden window.
    ///
    /// # Errors
    /// The browser refuses it.
    pub async fn show(&self) -> Answer {
        self.post(&format!("{}/window/rect", self.session), &json!({"x": 0, "y": 0})).await
    }

    /// Uses this window from now on.
    ///
    /// # Errors
    /// The window does not exist.
    pub async fn switch(&self, window: &str) -> Answer {
        self.post(&format!("{}/window", self.session), &json!({"handle": window})).await
    }

    /// The width of the window, as of a phone.
    ///
    /// # Errors
    /// The browser refuses it.
    pub async fn width(&self, width: u32) -> Answer {
        let parameters = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
        self.devtools("Emulation.setDeviceMetricsOverride", parameters).await
    }
}
