//! The daemon, and its successors.
use super::watch::Sample;
use crate::process::{Tree, signal};
use rustix::process::Signal;
use stado::client::Api;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(60);

pub struct Daemons {
    home: tempfile::TempDir,
    /// The last one serves; the others wait for their last streams.
    running: Vec<Tree>,
}

impl Daemons {
    pub async fn start() -> Self {
        let home = tempfile::Builder::new().prefix("soak").tempdir().unwrap();
        let mut daemons = Self { home, running: Vec::new() };
        daemons.spawn(&[]);
        let (end, socket) = (Instant::now() + PATIENCE, daemons.socket());
        while Api::new(&socket).health().await.is_err() {
            assert!(Instant::now() < end, "the daemon does not answer: {}", daemons.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        daemons
    }

    pub fn socket(&self) -> PathBuf {
        self.home.path().join(".devmesh/run/devmesh.sock")
    }

    pub fn can_hand_over(&self) -> bool {
        let help = Command::new(env!("CARGO_BIN_EXE_stado")).args(["resolver", "serve", "--help"]).output().unwrap();
        String::from_utf8_lossy(&help.stdout).contains("--take-over")
    }

    /// Starts a successor and waits until it has taken over: the former one then ends by itself, or waits for its streams.
    pub async fn hand_over(&mut self) {
        let marker = self.log().matches("handed_over").count();
        self.spawn(&["--take-over"]);
        let end = Instant::now() + PATIENCE;
        loop {
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert!(!self.running.last_mut().unwrap().has_ended(), "the successor ended: {}", self.log());
            let former = self.running.len() - 2;
            if self.log().matches("handed_over").count() > marker || self.running[former].has_ended() {
                break;
            }
            assert!(Instant::now() < end, "the successor did not take over: {}", self.log());
        }
        self.bury();
    }

    fn bury(&mut self) {
        self.running.retain_mut(|tree| !tree.has_ended());
    }

    /// Waits for the former ones to end, and for the serving one to have nothing left.
    pub async fn settle(&mut self) {
        let end = Instant::now() + PATIENCE;
        while self.running.len() > 1 && Instant::now() < end {
            tokio::time::sleep(Duration::from_millis(200)).await;
            self.bury();
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
    }

    pub fn sample(&mut self) -> Sample {
        self.bury();
        Sample {
            processes: self.running.len(),
            descriptors: self.running.iter().map(Tree::descriptors).sum(),
            memory: self.running.iter().map(Tree::memory).sum(),
        }
    }

    fn spawn(&mut self, more: &[&str]) {
        let log = std::fs::File::options().create(true).append(true).open(self.home.path().join("log")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_stado"));
        command.args(["resolver", "serve"]).args(more).env_clear().env("HOME", self.home.path());
        command.envs([("DEVMESH_DOCKER_ENABLED", "false"), ("PATH", "/usr/bin:/bin")]);
        command.stdin(Stdio::null()).stdout(log.try_clone().unwrap()).stderr(log);
        self.running.push(Tree::new(command.spawn().unwrap()));
    }

    fn log(&self) -> String {
        let log = std::fs::read_to_string(self.home.path().join("log")).unwrap_or_default();
        let tail = log.len().saturating_sub(1 << 20);
        log.get(tail..).unwrap_or(&log).to_owned()
    }
}

impl Drop for Daemons {
    fn drop(&mut self) {
        for tree in &self.running {
            signal(tree.id(), Signal::TERM);
        }
    }
}
