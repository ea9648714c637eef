//! What `doctor` measures: can this engine publish a port on loopback, on a port of its choice (mesh contract §3.2).
use super::client::{self, RealEngine};
use super::engine::{About, Engine as _, EngineError};
use super::locate::Lookup;
use bollard::models::{ContainerCreateBody, HostConfig, PortBinding};
use bollard::query_parameters::{
    CreateContainerOptions, InspectContainerOptions, ListContainersOptionsBuilder, RemoveContainerOptionsBuilder,
    StartContainerOptions,
};
use stado_fleet::link::Link;
use std::collections::{BTreeMap, HashMap};
use std::net::IpAddr;
use std::time::Duration;

/// Images that the probe may use, in this order; none is ever pulled.
pub const IMAGES: [&str; 4] = ["busybox:latest", "alpine:latest", "busybox", "alpine"];
const PORT: &str = "80/tcp";
const LOOKS: u32 = 20;
const BETWEEN: Duration = Duration::from_millis(250);
const OVERALL: Duration = Duration::from_secs(30);
const CALL: Duration = Duration::from_secs(10);
const SUFFIX: &str = "devmesh will not auto-register containers exposed beyond loopback";

/// What the probe found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// It works; what was published where.
    Ok(String),
    /// It could not be tried.
    Skip(String),
    /// It does not work.
    Fail(String),
}

/// What an engine tells of itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Survey {
    /// Where and what it is.
    pub about: About,
    /// Its clock, less ours; `None` when it does not tell.
    pub clock_ahead: Option<jiff::SignedDuration>,
    /// Running containers that opted in, by Compose project; those without Compose under the empty name.
    pub projects: BTreeMap<String, usize>,
    /// Running containers whose opt-in label is neither `true` nor `false`, with what it is: they are not served.
    pub unclear: BTreeMap<String, String>,
}

/// Asks the engine what it is and what runs.
pub async fn survey(lookup: &Lookup, link: Option<Link>) -> Result<Survey, EngineError> {
    let engine = client::connect(lookup.find()?, link, CALL).await?;
    let before = jiff::Timestamp::now();
    let info = engine.within("what it is", engine.docker.info()).await?;
    let after = jiff::Timestamp::now();
    let halfway = before.saturating_add(after.duration_since(before) / 2).unwrap_or(after);
    let theirs = info.system_time.and_then(|text| text.to_string().parse::<jiff::Timestamp>().ok());
    let filters = HashMap::from([("label", vec![super::labels::ENABLE])]);
    let options = ListContainersOptionsBuilder::new().filters(&filters).build();
    let list = engine.within("the list of containers", engine.docker.list_containers(Some(options))).await?;
    let (mut projects, mut unclear) = (BTreeMap::new(), BTreeMap::new());
    for container in list {
        let labels: super::labels::Labels = container.labels.clone().unwrap_or_default().into_iter().collect();
        if !super::labels::enabled(&labels) {
            let value = labels.get(super::labels::ENABLE).filter(|value| !value.trim().eq_ignore_ascii_case("false"));
            unclear.extend(value.cloned().and_then(|value| Some((super::convert::listed(container)?.name, value))));
            continue;
        }
        let project = super::labels::compose(&labels).map(|(project, _)| project.to_owned()).unwrap_or_default();
        *projects.entry(project).or_default() += 1;
    }
    let clock_ahead = theirs.map(|theirs| theirs.duration_since(halfway));
    Ok(Survey { about: engine.about(), clock_ahead, projects, unclear })
}

/// Starts a disposable container with a port on an ephemeral loopback port, looks where it is, and removes it.
pub async fn publication(lookup: &Lookup, link: Option<Link>) -> Finding {
    let engine = match lookup.find() {
        Ok(endpoint) => client::connect(endpoint, link, CALL).await,
        Err(error) => Err(error),
    };
    let engine = match engine {
        Ok(engine) => engine,
        Err(error) => return Finding::Fail(error.to_string()),
    };
    let Some(image) = first_image(&engine).await else {
        return Finding::Skip("no local busybox/alpine image available for a disposable publication test".into());
    };
    let id = match create(&engine, image).await {
        Ok(id) => id,
        Err(error) => return Finding::Fail(error),
    };
    let measured = tokio::time::timeout(OVERALL, measure(&engine, &id)).await;
    let removed = remove(&engine, &id).await;
    match (measured, removed) {
        (Err(_), _) => Finding::Fail(format!("the probe did not end within {}s", OVERALL.as_secs())),
        (Ok(Ok(_)), Err(error)) => Finding::Fail(format!("its container {id} could not be removed: {error}")),
        (Ok(Ok(at)), Ok(())) => Finding::Ok(format!("published {PORT} on {at}")),
        (Ok(Err(error)), _) => Finding::Fail(error),
    }
}

async fn first_image(engine: &RealEngine) -> Option<&'static str> {
    for image in IMAGES {
        if engine.docker.inspect_image(image).await.is_ok() {
            return Some(image);
        }
    }
    None
}

async fn create(engine: &RealEngine, image: &str) -> Result<String, String> {
    let binding = PortBinding { host_ip: Some("127.0.0.1".into()), host_port: Some(String::new()) };
    let host = HostConfig {
        port_bindings: Some(HashMap::from([(PORT.to_owned(), Some(vec![binding]))])),
        ..HostConfig::default()
    };
    let body = ContainerCreateBody {
        image: Some(image.to_owned()),
        cmd: Some(vec!["sleep".into(), "30".into()]),
        exposed_ports: Some(vec![PORT.to_owned()]),
        labels: Some(HashMap::from([("io.devmesh.doctor".to_owned(), "publication-probe".to_owned())])),
        host_config: Some(host),
        ..ContainerCreateBody::default()
    };
    let created = engine.docker.create_container(None::<CreateContainerOptions>, body).await;
    created.map(|created| created.id).map_err(|error| client::explain(&engine.endpoint, &error).to_string())
}

async fn measure(engine: &RealEngine, id: &str) -> Result<String, String> {
    let explained = |error: &bollard::errors::Error| client::explain(&engine.endpoint, error).to_string();
    let started = engine.docker.start_container(id, None::<StartContainerOptions>).await;
    started.map_err(|error| explained(&error))?;
    for _ in 0..LOOKS {
        let seen = engine.docker.inspect_container(id, None::<InspectContainerOptions>).await;
        let container = super::convert::container(seen.map_err(|error| explained(&error))?);
        if let Some(found) = verdict(&container) {
            return found;
        }
        tokio::time::sleep(BETWEEN).await;
    }
    Err(format!("published port did not appear before timeout; {SUFFIX}"))
}

/// `None` while nothing is published yet.
fn verdict(container: &super::container::Container) -> Option<Result<String, String>> {
    let bindings = container.ports.get(PORT)?;
    let published: Vec<_> = bindings.iter().filter(|binding| !binding.port.is_empty()).collect();
    let first = published.first()?;
    let at = |ip: &str, port: &str| if ip.contains(':') { format!("[{ip}]:{port}") } else { format!("{ip}:{port}") };
    let exposed = published.iter().find(|b| !b.ip.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback()));
    Some(match exposed {
        None => Ok(at(&first.ip, &first.port)),
        Some(exposed) => Err(format!("asked for 127.0.0.1, published on {}; {SUFFIX}", at(&exposed.ip, &exposed.port))),
    })
}

async fn remove(engine: &RealEngine, id: &str) -> Result<(), String> {
    let options = RemoveContainerOptionsBuilder::new().force(true).v(true).build();
    let removing = engine.docker.remove_container(id, Some(options));
    match tokio::time::timeout(CALL, removing).await {
        Ok(removed) => removed.map_err(|error| client::explain(&engine.endpoint, &error).to_string()),
        Err(_) => Err(format!("no answer within {}s", CALL.as_secs())),
    }
}
