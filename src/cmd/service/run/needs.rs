//! Dependencies: waited for, and named to the program in its environment.
use crate::client::Api;
use crate::cmd::service::resolve::{address, unavailable, until_ready};
use crate::cmd::service::variables;
use crate::exit::Failure;
use crate::ui;
use std::time::Duration;

/// `<NAME>_ADDR` and the stable address of every dependency, each waited for in turn within `patience` for all.
pub(super) async fn addresses(
    api: &Api,
    names: &[String],
    patience: Duration,
) -> Result<Vec<(String, String)>, Failure> {
    let deadline = tokio::time::Instant::now() + patience;
    let mut all = Vec::new();
    for name in names {
        let left = deadline.saturating_duration_since(tokio::time::Instant::now());
        if !api.resolve(name).await.is_ok_and(|service| service.status == "ready") {
            ui::note(format_args!("waiting for {name}, at most {}s", left.as_secs()));
        }
        let service = until_ready(api, name, Some(left)).await?;
        if service.status != "ready" {
            return Err(unavailable(&service));
        }
        all.push((variables::address(name), address(&service)?));
    }
    Ok(all)
}
