//! A registration, in the check order of mesh contract §1.5, and the port that comes with it.
use super::error::Refusal;
use super::hold::Port;
use super::lease::Lease;
use super::record::{Kind, Publication, Source};
use super::{Mesh, backend, ids, names, view};
use stado_fleet::name::ServiceName;
use stado_fleet::wire::{self, RegisterRequest, RegisterResponse};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// What a publication wants besides the name.
#[derive(Debug, Clone, Default)]
struct Terms {
    preferred_port: i64,
    lease: Option<LeaseTerms>,
    /// Why it is entered without a backend for now.
    held: Option<String>,
}

#[derive(Debug, Clone)]
struct LeaseTerms {
    ttl: Duration,
    key: Option<String>,
    request: RegisterRequest,
}

impl Mesh {
    /// `POST /v1/registrations`. `key`: the `Idempotency-Key`; while the lease lives, the same key and request get the
    /// same answer. Runs to its end even if the caller goes away, so that no half registration stays.
    pub async fn register(
        self: &Arc<Self>,
        request: RegisterRequest,
        key: Option<String>,
    ) -> Result<RegisterResponse, Refusal> {
        let mesh = self.clone();
        let turn = self.changes.join();
        let work = async move {
            let _turn = turn;
            mesh.register_now(request, key).await
        };
        let answer = tokio::spawn(work).await.unwrap_or(Err(Refusal::Internal));
        self.metrics.registration(answer.as_ref().err().map(Refusal::code));
        answer
    }

    /// Publishes a backend without a lease, under an owner key that survives it: what the container adapter does.
    /// The publication ends with [`Mesh::withdraw`].
    pub async fn publish(self: &Arc<Self>, claim: Publication, preferred_port: i64) -> Result<wire::Frontend, Refusal> {
        self.enter_unleased(claim, Terms { preferred_port, lease: None, held: None }).await
    }

    /// As [`Mesh::publish`], but the service stays without a backend for `reason`: it has its name, its owner and its
    /// port, and answers that it is unavailable.
    pub async fn hold(
        self: &Arc<Self>,
        claim: Publication,
        preferred_port: i64,
        reason: &str,
    ) -> Result<wire::Frontend, Refusal> {
        self.enter_unleased(claim, Terms { preferred_port, lease: None, held: Some(reason.to_owned()) }).await
    }

    async fn enter_unleased(self: &Arc<Self>, claim: Publication, terms: Terms) -> Result<wire::Frontend, Refusal> {
        let mesh = self.clone();
        let turn = self.changes.enter().await.map_err(|_| Refusal::HandedOver)?;
        let work = async move {
            let _turn = turn;
            mesh.refuse_loop(&claim.backend)?;
            mesh.enter(claim, terms).await.map(|answer| answer.frontend)
        };
        tokio::spawn(work).await.unwrap_or(Err(Refusal::Internal))
    }

    async fn register_now(
        self: &Arc<Self>,
        request: RegisterRequest,
        key: Option<String>,
    ) -> Result<RegisterResponse, Refusal> {
        let mut _turn = Vec::new();
        if let Some(key) = &key {
            _turn = self.keys.lock(key).await;
            if let Some(answer) = self.read().leases.repeat(key, &request, self.clock.now())? {
                return Ok(answer);
            }
        }
        let (claim, ttl) = self.claim(&request).await?;
        let terms =
            Terms { preferred_port: request.preferred_port, lease: Some(LeaseTerms { ttl, key, request }), held: None };
        self.enter(claim, terms).await
    }

    /// Steps 2 to 7: everything that can be judged without looking at other registrations.
    async fn claim(&self, request: &RegisterRequest) -> Result<(Publication, Duration), Refusal> {
        let source = source(&request.source)?;
        let name = names::service_name(&request.name)?;
        let kind = kind(&request.kind)?;
        let backend = backend::check(&request.backend.host, request.backend.port).await?;
        self.refuse_loop(&backend)?;
        let ttl = self.ttl(request.ttl_seconds)?;
        let hostname = match kind {
            Kind::Tcp => None,
            Kind::Http => Some(self.hostname(&name, &request.http_host)?),
        };
        let id = ids::registration_id(self.clock.now().wall);
        let claim = Publication {
            name,
            kind,
            app_protocol: request.app_protocol.clone(),
            source,
            owner_key: format!("{}:{id}", source.as_str()),
            producer_id: id,
            container_id: String::new(),
            backend,
            hostname,
            publish: false,
        };
        Ok((claim, ttl))
    }

    fn ttl(&self, seconds: i64) -> Result<Duration, Refusal> {
        match seconds {
            ..=0 => Ok(self.tuning().lease_ttl),
            seconds if super::config::TTL_BOUNDS.contains(&seconds) => Ok(Duration::from_secs(seconds.unsigned_abs())),
            _ => Err(Refusal::Request("ttl_seconds must be between 3 and 3600".into())),
        }
    }

    /// Proxy rule 4: a connection must not come back to where it left from.
    fn refuse_loop(&self, backend: &backend::Backend) -> Result<(), Refusal> {
        if backend.via.is_some() {
            return Ok(());
        }
        let Some((addr, purpose)) = self.frontends.loop_of(&backend.addr) else { return Ok(()) };
        Err(Refusal::Backend(format!(
            "backend {addr} is where this daemon itself listens for {purpose}, so connections would go in circles; register the address that the producer listens on"
        )))
    }

    /// Steps 8 to 12, one change of a name at a time.
    async fn enter(self: &Arc<Self>, claim: Publication, terms: Terms) -> Result<RegisterResponse, Refusal> {
        let _turn = self.names.lock(claim.name.as_str()).await;
        self.end_lapsed(&claim.name);
        self.read().registry.check(&claim)?;
        let port = match claim.kind {
            Kind::Tcp => {
                self.adopt_exposed(&claim.name).await?;
                Some(self.hold_port(&claim, terms.preferred_port).await?)
            }
            Kind::Http => None,
        };
        let name = claim.name.clone();
        let hostname = claim.hostname.clone();
        let answer = self.commit(claim, port.as_ref().map(|port| port.addr), terms)?;
        match port {
            Some(Port { fresh: Some(bound), .. }) => {
                let backend = self.current_backend(&name);
                self.frontends.start(&name, bound, backend);
            }
            Some(_) => {}
            None if self.is_exposed(&name) => {}
            // A name that was tcp in an earlier run gives its listener up; its port stays reserved.
            None => self.retire(self.frontends.take(&name)).await,
        }
        self.settle(&name);
        self.remember_hostname(&name, hostname).await;
        Ok(answer)
    }

    fn commit(
        &self,
        claim: Publication,
        frontend: Option<SocketAddr>,
        terms: Terms,
    ) -> Result<RegisterResponse, Refusal> {
        let now = self.clock.now();
        let (name, id, backend) = (claim.name.clone(), claim.producer_id.clone(), claim.backend.addr);
        let mut core = self.write();
        core.registry.publish(claim, frontend, now)?;
        if let Some(reason) = &terms.held {
            core.registry.withdraw(&name, &id, reason, now);
        }
        let shown =
            core.registry.get(&name).map(|record| view::frontend(record, &self.router.load())).unwrap_or_default();
        let mut answer = RegisterResponse { name: name.to_string(), frontend: shown, ..RegisterResponse::default() };
        if let Some(LeaseTerms { ttl, key, request }) = terms.lease {
            let token = ids::lease_token();
            answer.registration_id = id.clone();
            answer.lease_token = token.clone();
            answer.expires_at = now.text_after(ttl);
            answer.ttl_seconds = i64::try_from(ttl.as_secs()).unwrap_or(i64::MAX);
            let expires = now.tick.saturating_add(ttl);
            let lease = Lease { id: id.clone(), name: name.clone(), token, ttl, expires, key };
            core.leases.grant(lease, &request, &answer);
        }
        drop(core);
        let frontend = answer.frontend.endpoint();
        match terms.held {
            None => {
                tracing::info!(target: "stado::mesh", service = %name, frontend, backend = %backend, registration_id = id, "service_registered");
            }
            Some(reason) => {
                tracing::info!(target: "stado::mesh", service = %name, frontend, reason, registration_id = id, "service_held");
            }
        }
        Ok(answer)
    }

    /// Hostnames are remembered so that after a restart they are still their service's, and the router says 503 instead of
    /// 404. A disk that takes no more costs a warning and not the registration: it is saved with the next change.
    async fn remember_hostname(&self, name: &ServiceName, hostname: Option<String>) {
        if self.hosts.get(name.as_str()) == hostname {
            return;
        }
        let change = self.hosts.set(name.as_str(), hostname);
        if let Err(error) = self.hosts.persist(change).await {
            self.save_failed(&error);
        }
    }
}

fn source(text: &str) -> Result<Source, Refusal> {
    match text {
        "" | "process" => Ok(Source::Process),
        "manual" => Ok(Source::Manual),
        other => {
            let other = names::quoted(other);
            Err(Refusal::Request(format!("source {other} is not supported; use process or manual")))
        }
    }
}

fn kind(text: &str) -> Result<Kind, Refusal> {
    match text {
        "" | "tcp" => Ok(Kind::Tcp),
        "http" => Ok(Kind::Http),
        other => Err(Refusal::Kind(names::quoted(other))),
    }
}
