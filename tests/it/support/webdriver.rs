//! A browser that is led by the WebDriver protocol: JSON over HTTP to Debian's chromedriver, which starts Chromium.
use super::home::Home;
use super::ports::{self, Lease};
use super::process::Process;
use super::{PATIENCE, is_root, program, wait_until};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Keys, as WebDriver writes them.
pub const TAB: &str = "\u{e004}";
pub const ENTER: &str = "\u{e007}";
pub const ESCAPE: &str = "\u{e00c}";

/// A browser in a home, with a profile of its own. It ends with this value.
pub struct Browser {
    session: String,
    port: Lease,
    _driver: Process,
}

impl Browser {
    /// Starts one that trusts what the home's NSS database trusts; `name` is its profile.
    pub fn start(home: &Home, name: &str) -> Self {
        let port = ports::one();
        let driver = program("chromedriver").unwrap();
        let mut driver = home.start(name, driver, &[&format!("--port={}", port.port())]);
        wait_until("the driver listens", PATIENCE, || {
            assert!(driver.ended().is_none(), "{}", driver.log());
            TcpStream::connect(("127.0.0.1", port.port())).is_ok()
        });
        let profile = format!("--user-data-dir={}", home.file(&format!("profile-{name}")).display());
        let mut args = vec!["--headless=new", "--window-size=1280,640", "--no-first-run", "--disable-gpu"];
        args.extend(["--disable-background-networking", "--disable-dev-shm-usage", "--lang=en", &profile]);
        if is_root() {
            args.push("--no-sandbox");
        }
        let options = json!({ "binary": program("chromium").unwrap(), "args": args });
        let all = json!({ "goog:chromeOptions": options, "goog:loggingPrefs": { "browser": "ALL" } });
        let wanted = json!({ "capabilities": { "alwaysMatch": all } });
        let made = call(port.port(), "POST", "/session", Some(&wanted)).unwrap_or_else(|e| panic!("no browser: {e}"));
        let session = format!("/session/{}", made["sessionId"].as_str().unwrap());
        Self { session, port, _driver: driver }
    }

    /// Goes to an address and waits until it is loaded.
    ///
    /// # Errors
    /// WebDriver's own word, such as `insecure certificate`.
    pub fn open(&self, url: &str) -> Result<(), String> {
        self.post("url", &json!({ "url": url })).map(drop)
    }

    /// What a script of the page returns.
    pub fn eval(&self, script: &str) -> Value {
        self.post("execute/sync", &json!({ "script": script, "args": [] })).unwrap_or_else(|e| panic!("{script}: {e}"))
    }

    /// Waits until a script returns `wanted`.
    #[track_caller]
    pub fn shows(&self, script: &str, wanted: &Value) {
        let end = Instant::now() + PATIENCE;
        loop {
            let shown = self.eval(script);
            if shown == *wanted {
                return;
            }
            assert!(Instant::now() < end, "{script}\nwanted {wanted}\n    is {shown}");
            sleep(Duration::from_millis(50));
        }
    }

    /// Types on the keyboard, wherever the focus is.
    pub fn press(&self, keys: &str) {
        let key = |key: char| ["keyDown", "keyUp"].map(|way| json!({ "type": way, "value": key.to_string() }));
        let actions: Vec<Value> = keys.chars().flat_map(key).collect();
        let keyboard = json!({ "actions": [{ "type": "key", "id": "keyboard", "actions": actions }] });
        self.post("actions", &keyboard).unwrap_or_else(|e| panic!("{keys:?}: {e}"));
    }

    /// A command of the browser's own protocol, for what a person sets outside the page.
    pub fn devtools(&self, command: &str, params: &Value) {
        let all = json!({ "cmd": command, "params": params });
        self.post("goog/cdp/execute", &all).unwrap_or_else(|e| panic!("{command}: {e}"));
    }

    /// Nothing in its console is an error.
    #[track_caller]
    pub fn complains_of_nothing(&self) {
        let log = self.post("se/log", &json!({ "type": "browser" })).unwrap();
        let errors: Vec<&Value> = log.as_array().unwrap().iter().filter(|line| line["level"] == "SEVERE").collect();
        assert!(errors.is_empty(), "{errors:?}");
    }

    /// The window as a PNG.
    pub fn screenshot(&self) -> Vec<u8> {
        let shot = call(self.port.port(), "GET", &format!("{}/screenshot", self.session), None).unwrap();
        base64(shot.as_str().unwrap())
    }

    fn post(&self, path: &str, body: &Value) -> Result<Value, String> {
        call(self.port.port(), "POST", &format!("{}/{path}", self.session), Some(body))
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // The browser ends in order; one that does not is killed with its driver.
        let _ = call(self.port.port(), "DELETE", &self.session, None);
    }
}

/// One command: its `value`, or the word of its error.
fn call(port: u16, method: &str, path: &str, body: Option<&Value>) -> Result<Value, String> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut stream = TcpStream::connect(("127.0.0.1", port)).map_err(|e| e.to_string())?;
    stream.set_read_timeout(Some(2 * PATIENCE)).map_err(|e| e.to_string())?;
    let head = format!("{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nContent-Type: application/json\r\n");
    let rest = format!("Content-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len());
    stream.write_all((head + &rest).as_bytes()).map_err(|e| e.to_string())?;
    let value = serde_json::from_slice::<Value>(&answer(&mut stream)?).map_err(|e| e.to_string())?["value"].take();
    match value["error"].as_str() {
        Some(error) => Err(format!("{error}: {}", value["message"].as_str().unwrap_or_default())),
        None => Ok(value),
    }
}

/// The body of an answer: as long as its head says, since the driver may keep the connection.
fn answer(stream: &mut TcpStream) -> Result<Vec<u8>, String> {
    let (mut all, mut part) = (Vec::new(), [0; 65_536]);
    loop {
        let read = stream.read(&mut part).map_err(|e| e.to_string())?;
        all.extend_from_slice(&part[..read]);
        let end = all.windows(4).position(|bytes| bytes == b"\r\n\r\n").map(|at| at + 4);
        if let Some(at) = end {
            let head = String::from_utf8_lossy(&all[..at]).to_ascii_lowercase();
            let length = head.lines().find_map(|line| line.strip_prefix("content-length:"));
            let length: Option<usize> = length.and_then(|text| text.trim().parse().ok());
            if read == 0 || length.is_some_and(|length| all.len() >= at + length) {
                return Ok(all.split_off(at));
            }
        }
        if read == 0 {
            return Err("the driver ended the connection".into());
        }
    }
}

/// Bytes of a text in base64.
fn base64(text: &str) -> Vec<u8> {
    let value = |byte: u8| match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    };
    let (mut bytes, mut held, mut bits) = (Vec::with_capacity(text.len() * 3 / 4), 0u32, 0);
    for six in text.bytes().filter_map(value) {
        (held, bits) = ((held << 6 | u32::from(six)) & 0xff_ffff, bits + 6);
        if bits >= 8 {
            bits -= 8;
            bytes.push(held.wrapping_shr(bits).to_le_bytes()[0]);
        }
    }
    bytes
}
