//! A vault for others (fleet contract §7.2): `POST /v1/items/read` and `POST /v1/items/list`, for consumers that show the
//! token of their grant. On loopback, or over TLS. Each read is recorded before it is answered.
mod answer;
mod serve;
#[cfg(test)]
mod tests;

pub use serve::VaultServer;
