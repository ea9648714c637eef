//! How a service that a host's mesh publishes is told from others (docs/decisions/bridge.md).

/// The consumer that a publication is for when nobody is named: every host of the fleet may use it.
pub const SHARED_CONSUMER: &str = "fleet";
/// Kind of the units that stand for a service of a mesh.
pub const MESH_UNIT: &str = "mesh";

/// The unit that stands for a published service on its hosts.
pub fn published_unit(service: &str) -> String {
    format!("{MESH_UNIT}:{service}")
}
