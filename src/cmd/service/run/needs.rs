//! Dependencies: waited for, and named to the program in its environment.
use crate::client::Api;
use crate::cmd::service::resolve::{address, unavailable, until_ready};
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
        all.push((variable(name), address(&service)?));
    }
    Ok(all)
}

/// `checkout.postgres` → `CHECKOUT_POSTGRES_ADDR`.
fn variable(name: &str) -> String {
    let word = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("{}_ADDR", name.chars().map(word).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dependency_has_a_variable_that_every_shell_can_read() {
        assert_eq!(variable("checkout.postgres"), "CHECKOUT_POSTGRES_ADDR");
        assert_eq!(variable("api-v2"), "API_V2_ADDR");
    }
}
