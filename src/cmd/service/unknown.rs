//! What is told beside the daemon's own word of a name that it does not know: one that was probably meant, and where else to look.
use crate::client::{Api, Error};
use crate::config::nearest;
use crate::exit::Failure;

/// The answer; a refusal for want of the name says what to do next.
pub(crate) async fn known<T>(api: &Api, name: &str, answer: Result<T, Error>) -> Result<T, Failure> {
    let error = match answer {
        Ok(value) => return Ok(value),
        Err(error) => error,
    };
    let absent = error.code() == Some("service_not_found");
    let mut failure = Failure::from(error);
    if absent {
        let here = api.list().await.unwrap_or_default();
        failure.message.push_str(&elsewhere(name, here.iter().map(|service| service.name.as_str())));
    }
    Err(failure)
}

/// What follows the daemon's sentence.
fn elsewhere<'n>(name: &str, here: impl Iterator<Item = &'n str> + Clone) -> String {
    let part = |known: &&str| name.chars().count() > 2 && known.contains(name);
    let meant = nearest(name, here.clone()).or_else(|| here.clone().find(part));
    let meant = meant.map(|known| format!("did you mean {known}? ")).unwrap_or_default();
    format!(
        "; {meant}`stado service list` names the services of this host, `stado service directory connect {name}` finds one of \
         the fleet"
    )
}

#[cfg(test)]
mod tests {
    use super::elsewhere;

    fn meant(name: &str) -> Option<String> {
        let told = elsewhere(name, ["checkout.postgres", "shop", "shop.api"].into_iter());
        let (_, rest) = told.split_once("did you mean ")?;
        Some(rest.split_once('?')?.0.to_owned())
    }

    #[test]
    fn a_name_with_a_slip_or_only_a_part_of_it_is_recognised_and_another_is_not() {
        assert_eq!(meant("chekout.postgres").as_deref(), Some("checkout.postgres"));
        assert_eq!(meant("postgres").as_deref(), Some("checkout.postgres"));
        assert_eq!(meant("shpo.api").as_deref(), Some("shop.api"));
        assert_eq!(meant("ledger"), None);
        assert_eq!(meant("o"), None);
        assert!(elsewhere("ledger", [].into_iter()).contains("`stado service directory connect ledger`"));
    }
}
