//! A person's account on one host: a home of its own and nothing inherited.
use super::ports::{self, Lease};
use super::process::{self, Process, Run};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The built binaries.
pub const STADO: &str = env!("CARGO_BIN_EXE_stado");
pub const DEVMESH: &str = env!("CARGO_BIN_EXE_devmesh");
pub const DEVMESHD: &str = env!("CARGO_BIN_EXE_devmeshd");

/// A temporary home; commands run in it with an empty environment but for what is set here.
pub struct Home {
    dir: tempfile::TempDir,
    frontends: Lease,
    env: Vec<(String, String)>,
    namespace: Option<String>,
}

impl Default for Home {
    fn default() -> Self {
        Self::new()
    }
}

impl Home {
    /// An empty home whose daemon allocates from a few ports of its own.
    pub fn new() -> Self {
        let frontends = ports::block(12);
        let range = [("MIN", frontends.port()), ("MAX", frontends.last())];
        let mut env: Vec<_> = range.map(|(end, port)| (format!("DEVMESH_TCP_FRONTEND_{end}"), port.to_string())).into();
        // Containers of other tests, or of a person, are none of this home's business.
        env.push(("DEVMESH_DOCKER_ENABLED".into(), "false".into()));
        // Short, since a socket's path has an end at about a hundred bytes.
        let dir = tempfile::Builder::new().prefix("st").tempdir().unwrap();
        Self { dir, frontends, env, namespace: None }
    }

    pub fn path(&self) -> &Path {
        self.dir.path()
    }

    /// A file below the home.
    pub fn file(&self, relative: &str) -> PathBuf {
        self.path().join(relative)
    }

    /// Reads a file below the home; empty when it is absent.
    pub fn read(&self, relative: &str) -> String {
        std::fs::read_to_string(self.file(relative)).unwrap_or_default()
    }

    /// Writes a file below the home, owner-only, with its directories.
    pub fn write(&self, relative: &str, content: impl AsRef<[u8]>) -> PathBuf {
        use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
        let file = self.file(relative);
        std::fs::DirBuilder::new().recursive(true).mode(0o700).create(file.parent().unwrap()).unwrap();
        std::fs::write(&file, content).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
        file
    }

    /// Writes a program below the home; its path.
    pub fn program(&self, relative: &str, text: &str) -> String {
        use std::os::unix::fs::PermissionsExt;
        let file = self.write(relative, text);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        file.to_str().unwrap().to_owned()
    }

    /// First and last port that this home's daemon allocates from.
    pub fn frontends(&self) -> (u16, u16) {
        (self.frontends.port(), self.frontends.last())
    }

    /// Sets a variable for every command of this home.
    pub fn set(&mut self, name: &str, value: impl ToString) {
        self.unset(name);
        self.env.push((name.into(), value.to_string()));
    }

    pub fn unset(&mut self, name: &str) {
        self.env.retain(|(n, _)| n != name);
    }

    /// Runs every command of this home in a network namespace.
    pub fn enter(&mut self, namespace: &str) {
        self.namespace = Some(namespace.into());
    }

    /// Variables that are set for commands of this home.
    pub fn env(&self) -> impl Iterator<Item = (&str, &str)> {
        let fixed = [("HOME", self.path().to_str().unwrap()), ("PATH", "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin")];
        fixed.into_iter().chain(self.env.iter().map(|(n, v)| (n.as_str(), v.as_str())))
    }

    /// A command as this person would run it.
    pub fn command(&self, program: impl AsRef<Path>, args: &[&str]) -> Command {
        let program = program.as_ref();
        let mut command = match &self.namespace {
            None => Command::new(program),
            Some(namespace) => {
                let mut command = Command::new("ip");
                command.args(["netns", "exec", namespace]).arg(program);
                command
            }
        };
        command.args(args).env_clear().envs(self.env()).env("RUST_BACKTRACE", "1").current_dir(self.path());
        command
    }

    /// Runs `stado` with these arguments to its end.
    pub fn stado(&self, args: &[&str]) -> Run {
        process::run(&mut self.command(STADO, args))
    }

    /// Runs `devmesh` with these arguments to its end.
    pub fn devmesh(&self, args: &[&str]) -> Run {
        process::run(&mut self.command(DEVMESH, args))
    }

    /// Starts a process that outlives the call; its output goes to `<name>.log` in the home.
    pub fn start(&self, name: &str, program: impl AsRef<Path>, args: &[&str]) -> Process {
        Process::start(&mut self.command(program, args), &self.file(&format!("{name}.log")))
    }

    /// Serves what is stored here, as the namespace `probierz`, to whoever has `token`; with the address.
    pub fn serve_objects(&self, token: &str) -> (Process, String) {
        self.write(".stado/object-token", token);
        let policies = json!([{"prefix": "", "actions": ["get", "put", "stat"]}]);
        let namespace = json!({"token_file": "~/.stado/object-token", "prefix_policies": policies});
        let api = json!({"bind": "127.0.0.1:0", "namespaces": {"probierz": namespace}});
        self.write(".stado/config.json", json!({ "object_api": api }).to_string());
        let server = self.start("storage", STADO, &["storage", "serve"]);
        let url = server.object_api();
        (server, url)
    }
}
