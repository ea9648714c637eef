use super::*;
use proptest::prelude::*;

fn at(seconds: u64) -> Now {
    Now { tick: Duration::from_secs(seconds), wall: jiff::Timestamp::UNIX_EPOCH }
}

fn lease(id: &str, ttl: u64, now: u64, key: Option<&str>) -> Lease {
    Lease {
        id: id.into(),
        name: "x".parse().unwrap(),
        token: format!("token-{id}"),
        ttl: Duration::from_secs(ttl),
        expires: Duration::from_secs(now + ttl),
        key: key.map(str::to_owned),
    }
}

fn grant(leases: &mut Leases, lease: Lease) {
    leases.grant(lease, &RegisterRequest::default(), &RegisterResponse::default());
}

#[test]
fn a_lease_is_over_at_its_expiry_and_stays_over() {
    let mut leases = Leases::default();
    grant(&mut leases, lease("A", 5, 0, None));
    assert_eq!(leases.renew("A", Some("token-A"), at(4)).unwrap(), Duration::from_secs(5));
    assert_eq!(leases.renew("A", Some("token-A"), at(9)).unwrap_err().to_string(), "registration A is unknown");
    assert!(leases.surrender("A", Some("token-A"), at(9)).is_err());
    assert_eq!(leases.expire(at(9)).len(), 1);
    assert_eq!(leases.count(), 0);
}

#[test]
fn the_token_decides_and_an_unknown_id_is_told_first() {
    let mut leases = Leases::default();
    grant(&mut leases, lease("A", 5, 0, None));
    for token in [None, Some(""), Some("token-"), Some("token-B")] {
        assert_eq!(leases.renew("A", token, at(1)).unwrap_err().to_string(), "invalid lease token");
        assert_eq!(leases.surrender("A", token, at(1)).unwrap_err().to_string(), "invalid lease token");
    }
    assert_eq!(leases.renew("NOPE", None, at(1)).unwrap_err().to_string(), "registration NOPE is unknown");
    assert!(leases.surrender("A", Some("token-A"), at(1)).is_ok());
}

#[test]
fn a_key_repeats_its_answer_while_the_lease_lives() {
    let mut leases = Leases::default();
    let request = RegisterRequest { name: "x".into(), ..RegisterRequest::default() };
    let answer = RegisterResponse { lease_token: "secret".into(), ..RegisterResponse::default() };
    leases.grant(lease("A", 5, 0, Some("k")), &request, &answer);
    assert_eq!(leases.repeat("k", &request, at(4)).unwrap(), Some(answer.clone()));
    assert!(leases.repeat("other", &request, at(4)).unwrap().is_none());
    let changed = RegisterRequest { ttl_seconds: 9, ..request.clone() };
    assert!(matches!(leases.repeat("k", &changed, at(4)), Err(Refusal::KeyReused(_))));
    assert!(leases.repeat("k", &request, at(5)).unwrap().is_none(), "the lease is over");
    leases.grant(lease("B", 5, 6, Some("k")), &request, &answer);
    leases.end("A");
    assert!(leases.repeat("k", &request, at(7)).unwrap().is_some(), "the old lease does not take the new answer along");
}

#[test]
fn debug_shows_no_token() {
    let shown = format!("{:?}", lease("A", 5, 0, None));
    assert!(shown.contains('A') && !shown.contains("token-A"), "{shown}");
}

#[derive(Debug, Clone)]
enum Step {
    Grant(u8, u64),
    Renew(u8, bool),
    Surrender(u8, bool),
    Sweep,
    Wait(u64),
}

proptest! {
    /// Against the simplest model: a table of expiries. A lease never comes back, and each renewal counts its own length.
    #[test]
    fn leases_follow_the_model(steps in proptest::collection::vec(prop_oneof![
        (0u8..4, 3u64..9).prop_map(|(id, ttl)| Step::Grant(id, ttl)),
        (0u8..4, any::<bool>()).prop_map(|(id, right)| Step::Renew(id, right)),
        (0u8..4, any::<bool>()).prop_map(|(id, right)| Step::Surrender(id, right)),
        Just(Step::Sweep),
        (1u64..5).prop_map(Step::Wait),
    ], 1..80)) {
        let (mut leases, mut model) = (Leases::default(), std::collections::HashMap::<u8, (u64, u64)>::new());
        let mut now = 0;
        for step in steps {
            let token = |id: u8, right: bool| if right { format!("token-{id}") } else { "wrong".to_owned() };
            let live = |model: &std::collections::HashMap<u8, (u64, u64)>, id: u8| model.get(&id).is_some_and(|(end, _)| *end > now);
            match step {
                Step::Grant(id, ttl) => {
                    grant(&mut leases, lease(&id.to_string(), ttl, now, None));
                    model.insert(id, (now + ttl, ttl));
                }
                Step::Renew(id, right) => {
                    let done = leases.renew(&id.to_string(), Some(&token(id, right)), at(now)).is_ok();
                    prop_assert_eq!(done, right && live(&model, id));
                    if let Some((end, ttl)) = model.get_mut(&id).filter(|_| done) {
                        *end = now + *ttl;
                    }
                }
                Step::Surrender(id, right) => {
                    let done = leases.surrender(&id.to_string(), Some(&token(id, right)), at(now)).is_ok();
                    prop_assert_eq!(done, right && live(&model, id));
                    if done {
                        model.remove(&id);
                    }
                }
                Step::Sweep => {
                    let over = model.values().filter(|(end, _)| *end <= now).count();
                    prop_assert_eq!(leases.expire(at(now)).len(), over);
                    model.retain(|_, (end, _)| *end > now);
                }
                Step::Wait(seconds) => now += seconds,
            }
        }
    }
}
