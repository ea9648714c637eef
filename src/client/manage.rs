//! What a person does to a service: forget it, give it a port, give it another name. Additions of Stado; an older daemon
//! answers them with 404 or 405.
use super::api::{Api, decode, segment};
use super::error::Error;
use super::http::Request;
use serde_json::json;
use stado_fleet::wire::{Frontend, Service};

impl Api {
    /// Forgets a service and frees its port. With `force` also one that has a backend.
    pub async fn forget(&self, name: &str, force: bool) -> Result<(), Error> {
        let force = if force { "?force=true" } else { "" };
        let path = format!("/v1/services/{}{force}", segment(name));
        self.send(Request { method: "DELETE", path, headers: Vec::new(), body: None }).await?;
        Ok(())
    }

    /// Gives a service a chosen port.
    pub async fn pin(&self, name: &str, port: u16) -> Result<Service, Error> {
        self.post(format!("/v1/services/{}/pin", segment(name)), &json!({ "port": port })).await
    }

    /// Gives a service another name; its port goes with it.
    pub async fn rename(&self, name: &str, new_name: &str) -> Result<Service, Error> {
        self.post(format!("/v1/services/{}/rename", segment(name)), &json!({ "name": new_name })).await
    }

    /// The address of this host at which others of a fleet may reach a service: the port of a tcp service, and one of its own
    /// for an http service, beside its hostname.
    pub async fn expose(&self, name: &str) -> Result<Frontend, Error> {
        let path = format!("/v1/services/{}/expose", segment(name));
        decode(self.send(Request { method: "POST", path, headers: Vec::new(), body: None }).await?)
    }

    /// Takes the port of an http service back; its hostname stays.
    pub async fn conceal(&self, name: &str) -> Result<(), Error> {
        let path = format!("/v1/services/{}/expose", segment(name));
        self.send(Request { method: "DELETE", path, headers: Vec::new(), body: None }).await?;
        Ok(())
    }

    async fn post(&self, path: String, body: &serde_json::Value) -> Result<Service, Error> {
        let body = body.to_string().into_bytes();
        decode(self.send(Request { method: "POST", path, headers: Vec::new(), body: Some(&body) }).await?)
    }
}
