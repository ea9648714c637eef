//! What Stado needs to know of a certificate: its names, and from when until when it holds.
use super::names::CertNames;
use jiff::Timestamp;
use std::net::IpAddr;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;

/// The facts of one certificate.
#[derive(Debug, Clone)]
pub(super) struct Facts {
    pub(super) names: CertNames,
    pub(super) not_before: Timestamp,
    pub(super) not_after: Timestamp,
    pub(super) subject: String,
}

/// Reads them; the error is what is wrong with the certificate.
pub(super) fn facts(der: &[u8]) -> Result<Facts, String> {
    let (_, certificate) =
        X509Certificate::from_der(der).map_err(|e| format!("it is not an X.509 certificate: {e}"))?;
    let validity = certificate.validity();
    let time = |seconds: i64| Timestamp::from_second(seconds).map_err(|e| format!("its validity is unreadable: {e}"));
    Ok(Facts {
        names: names(&certificate),
        not_before: time(validity.not_before.timestamp())?,
        not_after: time(validity.not_after.timestamp())?,
        subject: certificate.subject().to_string(),
    })
}

fn names(certificate: &X509Certificate<'_>) -> CertNames {
    let mut names = CertNames::default();
    for name in certificate.subject_alternative_name().ok().flatten().iter().flat_map(|san| &san.value.general_names) {
        match name {
            GeneralName::DNSName(name) => names.add_name(name),
            GeneralName::IPAddress(bytes) => names.extend_address(bytes),
            _ => {}
        }
    }
    // Certificates made by hand often have no alternative names. No client accepts one by verification, but people who
    // turned that off mean the name in the subject.
    if names.is_empty() {
        for name in certificate.subject().iter_common_name().filter_map(|cn| cn.as_str().ok()) {
            match name.parse() {
                Ok(address) => names.add_address(address),
                Err(_) => names.add_name(name),
            }
        }
    }
    names
}

impl CertNames {
    fn extend_address(&mut self, bytes: &[u8]) {
        let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
        if let Ok(address) = v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)) {
            self.add_address(address);
        }
    }
}
