//! The router: HTTP and HTTPS services of this host by hostname.

pub mod tls;
