//! What the read-only verbs look at: the directory block, one service of it, and the host that asks.
use crate::cmd::fleet::Fleet;
use crate::config::Env;
use crate::exit::Failure;
use serde_json::{Map, Value};
use stado_fleet::authority::Answer;
use stado_fleet::document::{DirectoryService, Registry, ServiceDirectory};
use stado_fleet::edit::listed;
use stado_fleet::name::{LogicalName, TargetName};

/// A registry that was read, and what this host is.
pub(crate) struct Look {
    pub(crate) fleet: Fleet,
    pub(crate) answer: Answer,
}

impl Look {
    /// Reads. `copy_may_answer`: not for verbs that write what they read.
    pub(crate) async fn read(env: &Env, copy_may_answer: bool) -> Result<Self, Failure> {
        let fleet = Fleet::open(env)?;
        let answer = fleet.read(copy_may_answer).await?;
        Ok(Self { fleet, answer })
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.answer.snapshot.valid.registry
    }

    /// The directory's raw block.
    pub(crate) fn block(&self) -> Result<&Map<String, Value>, Failure> {
        let block = self.answer.snapshot.valid.document.section("service_directory").and_then(Value::as_object);
        block.ok_or_else(|| self.no_directory())
    }

    pub(crate) fn directory(&self) -> Result<&ServiceDirectory, Failure> {
        self.registry().directory.as_ref().ok_or_else(|| self.no_directory())
    }

    fn no_directory(&self) -> Failure {
        Failure::not_found(format!("the registry at {} carries no service_directory", self.answer.source.location()))
    }

    /// One service, by the name that a person typed.
    pub(crate) fn service(&self, name: &str) -> Result<(&LogicalName, &DirectoryService), Failure> {
        let services = &self.directory()?.services;
        let found = name.parse::<LogicalName>().ok().and_then(|name| services.get_key_value(&name));
        found.ok_or_else(|| {
            let names = listed(services.keys().map(LogicalName::as_str));
            Failure::not_found(format!("no service \"{name}\" in service_directory; it declares {names}"))
        })
    }

    /// The host that asks.
    pub(crate) fn target(&self, asked: Option<&str>) -> Result<TargetName, Failure> {
        self.fleet.target(self.registry(), asked)
    }

    /// This host's name as the registry has it, else its hostname.
    pub(crate) fn here(&self) -> String {
        let me = self.fleet.me(self.registry()).ok().flatten();
        me.map_or_else(|| self.fleet.host.hostname.clone(), |me| me.to_string())
    }
}
