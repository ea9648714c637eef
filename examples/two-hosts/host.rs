//! One host: a home, an identity, a gate and a daemon.
use crate::Held;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;
use std::fs::{self, DirBuilder, File};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// Set for the processes of a host.
pub(crate) const AS_STADO: &str = "TWO_HOSTS_AS_STADO";
/// Far more than any step takes.
const PATIENCE: Duration = Duration::from_secs(30);

pub(crate) struct Host {
    pub(crate) name: &'static str,
    pub(crate) gate: u16,
    pub(crate) api: u16,
    home: PathBuf,
    daemon: Option<Child>,
}

impl Host {
    /// Prepares a home below `dir`. Ports are the first free ones from `from`.
    pub(crate) fn new(dir: &Path, name: &'static str, from: u16) -> Held<Self> {
        let home = dir.join(name);
        let gate = free_port(from)?;
        let host = Self { name, gate, api: free_port(gate + 1)?, home, daemon: None };
        let config = json!({"target": name, "gate": {"bind": format!("127.0.0.1:{gate}")}});
        host.write(".stado/config.json", &config.to_string())?;
        let key = host.file(".stado/resolver-ssh-key");
        output(Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"]).arg(key))?;
        Ok(host)
    }

    pub(crate) fn file(&self, relative: &str) -> PathBuf {
        self.home.join(relative)
    }

    /// Writes an owner-only file with its directories.
    pub(crate) fn write(&self, relative: &str, text: &str) -> Held<PathBuf> {
        let file = self.file(relative);
        DirBuilder::new().recursive(true).mode(0o700).create(file.parent().ok_or("a file has a folder")?)?;
        fs::write(&file, text)?;
        fs::set_permissions(&file, fs::Permissions::from_mode(0o600))?;
        Ok(file)
    }

    /// The public half of the key that this host logs in with.
    pub(crate) fn public_key(&self) -> Held<String> {
        Ok(fs::read_to_string(self.file(".stado/resolver-ssh-key.pub"))?)
    }

    /// The key that this host's gate shows, once the daemon has made it.
    pub(crate) fn gate_key(&self) -> Held<String> {
        let file = self.file(".stado/gate/host_ed25519");
        until("the gate has made its key", || {
            Ok(file.exists() && TcpStream::connect(("127.0.0.1", self.gate)).is_ok())
        })?;
        output(Command::new("ssh-keygen").arg("-y").arg("-f").arg(file))
    }

    /// `stado` as it is typed on this host.
    fn command(&self, args: &[&str]) -> Held<Command> {
        let mut command = Command::new(std::env::current_exe()?);
        command.args(args).env_clear().env("HOME", &self.home).env(AS_STADO, "1").current_dir(&self.home);
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        // The terminal's Ctrl-C is for the example, which then stops its hosts in order.
        command.process_group(0);
        Ok(command)
    }

    /// Runs `stado` to its end; what it printed, or what it complained of.
    pub(crate) fn stado(&self, args: &[&str]) -> Held<String> {
        output(&mut self.command(args)?)
    }

    /// What `resolver status` prints, whatever the verdict.
    pub(crate) fn status(&self, format: &[&str]) -> Held<String> {
        let mut command = self.command(&[&["resolver", "status"], format].concat())?;
        Ok(String::from_utf8(command.stdin(Stdio::null()).output()?.stdout)?)
    }

    pub(crate) fn serve(&mut self) -> Held {
        let log = File::options().create(true).append(true).open(self.file("daemon.log"))?;
        let mut command = self.command(&["resolver", "serve"])?;
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        self.daemon = Some(command.spawn()?);
        Ok(())
    }

    /// Waits for the verdict `ready`, with the directory at `generation`.
    pub(crate) fn ready(&self, generation: u64) -> Held {
        let mut last = String::new();
        let waited = until(&format!("the {} is ready with generation {generation}", self.name), || {
            last = self.status(&["--json"])?;
            let status: serde_json::Value = serde_json::from_str(&last).unwrap_or_default();
            let held = |key: &str| status.get(key).cloned().unwrap_or_default();
            Ok(held("verdict") == "ready" && held("generation") == generation)
        });
        waited.map_err(|error| format!("{error}; status: {last}\n{}", self.log()).into())
    }

    fn log(&self) -> String {
        fs::read_to_string(self.file("daemon.log")).unwrap_or_default()
    }

    /// SIGTERM; the daemon must end well.
    pub(crate) fn stop(&mut self) -> Held {
        let status = self.end(Signal::TERM)?;
        if status.success() { Ok(()) } else { Err(format!("the {} ended with {status}", self.name).into()) }
    }

    /// Ends the daemon as a crash would.
    pub(crate) fn kill9(&mut self) -> Held {
        self.end(Signal::KILL).map(drop)
    }

    fn end(&mut self, signal: Signal) -> Held<ExitStatus> {
        let mut daemon = self.daemon.take().ok_or("the daemon runs")?;
        kill_process(Pid::from_child(&daemon), signal)?;
        let mut status = None;
        let ended = until(&format!("the {}'s daemon has ended", self.name), || {
            status = daemon.try_wait()?;
            Ok(status.is_some())
        });
        if ended.is_err() {
            let _ = daemon.kill();
        }
        ended?;
        status.ok_or_else(|| "no status".into())
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        if let Some(mut daemon) = self.daemon.take() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

/// Polls until `holds` does.
pub(crate) fn until(what: &str, mut holds: impl FnMut() -> Held<bool>) -> Held {
    let end = Instant::now() + PATIENCE;
    while !holds()? {
        if Instant::now() > end {
            return Err(format!("not within {PATIENCE:?}: {what}").into());
        }
        sleep(Duration::from_millis(50));
    }
    Ok(())
}

fn free_port(from: u16) -> Held<u16> {
    let free = |port: &u16| TcpListener::bind(("127.0.0.1", *port)).is_ok();
    (from..from.saturating_add(500)).find(free).ok_or_else(|| format!("no free port from {from} on").into())
}

fn output(command: &mut Command) -> Held<String> {
    let output = command.stdin(Stdio::null()).output().map_err(|e| format!("{:?}: {e}", command.get_program()))?;
    if output.status.success() {
        Ok(String::from_utf8(output.stdout)?)
    } else {
        Err(format!("{command:?}: {}\n{}", output.status, String::from_utf8_lossy(&output.stderr)).into())
    }
}
