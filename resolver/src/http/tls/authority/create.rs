//! Making the authority.
use super::files::{AuthorityFacts, CERT, KEY};
use super::{DOMAINS, read};
use crate::http::tls::LoadError;
use jiff::{SignedDuration, Timestamp};
use rcgen::{
    BasicConstraints, CertificateParams, CidrSubnet, DnType, DnValue, ExtendedKeyUsagePurpose, GeneralSubtree, IsCa,
    KeyPair, KeyUsagePurpose, NameConstraints,
};
use stado_fleet::disk;
use std::path::Path;
use time::OffsetDateTime;

/// Ten years: its end would mean to trust a new one in every browser.
const LIFE: SignedDuration = SignedDuration::from_hours(24 * 3650);
/// Other machines' clocks may be behind.
const BACK: SignedDuration = SignedDuration::from_hours(24);

/// Makes an authority in `folder` (0700), its key 0600, named after `whose` (a person on a machine). What was there is
/// replaced: ask [`read`] before.
pub fn create(folder: &Path, whose: &str, now: Timestamp) -> Result<AuthorityFacts, LoadError> {
    let fail = |error: rcgen::Error| LoadError::new(folder, format!("cannot make an authority: {error}"));
    let key = KeyPair::generate().map_err(fail)?;
    let certificate = params(whose, now).and_then(|params| params.self_signed(&key)).map_err(fail)?;
    let write = |name: &str, text: String| {
        let path = folder.join(name);
        disk::replace(&path, text.as_bytes()).map_err(|error| LoadError::new(&path, error.source.to_string()))
    };
    // The key first: a certificate without its key would be trusted for nothing.
    write(KEY, key.serialize_pem())?;
    write(CERT, certificate.pem())?;
    read(folder)?.ok_or_else(|| LoadError::new(folder, "the authority that was just written is gone"))
}

fn params(whose: &str, now: Timestamp) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::default();
    params.not_before = time(now - BACK)?;
    params.not_after = time(now + LIFE)?;
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(DnType::OrganizationName, "Stado local authority");
    params.distinguished_name.push(DnType::CommonName, DnValue::Utf8String(short(&format!("Stado: {whose}"))));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let names = DOMAINS.map(|domain| GeneralSubtree::DnsName(domain.to_owned()));
    let addresses = [
        CidrSubnet::from_v4_prefix([127, 0, 0, 0], 8),
        CidrSubnet::from_v6_prefix(std::net::Ipv6Addr::LOCALHOST.octets(), 128),
    ];
    let permitted_subtrees = names.into_iter().chain(addresses.map(GeneralSubtree::IpAddress)).collect();
    params.name_constraints = Some(NameConstraints { permitted_subtrees, excluded_subtrees: Vec::new() });
    Ok(params)
}

/// A common name has at most 64 characters.
fn short(text: &str) -> String {
    text.chars().take(64).collect()
}

pub(super) fn time(at: Timestamp) -> Result<OffsetDateTime, rcgen::Error> {
    OffsetDateTime::from_unix_timestamp(at.as_second()).map_err(|_| rcgen::Error::Time)
}
