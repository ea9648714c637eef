//! What a field's name means to a proxy (proxy rule 12).

/// What is done with a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Host,
    Connection,
    ContentLength,
    TransferEncoding,
    Upgrade,
    Te,
    Expect,
    Accept,
    ContentType,
    /// Meant for the next hop alone: removed.
    Hop,
    /// Says who the client is, or may be read so: replaced by what is true.
    Forwarded,
    /// Marks of the hops that a request went through.
    Loop,
    /// Everything else: passed as it is.
    Other,
}

/// By the name, whatever its case.
pub(super) fn kind(name: &str) -> Kind {
    if is_twin(name) {
        return Kind::Forwarded;
    }
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    match name.len() {
        2 if is("te") => Kind::Te,
        4 if is("host") => Kind::Host,
        6 if is("expect") => Kind::Expect,
        6 if is("accept") => Kind::Accept,
        7 if is("upgrade") => Kind::Upgrade,
        8 if is("cdn-loop") => Kind::Loop,
        9 if is("forwarded") || is("x-real-ip") => Kind::Forwarded,
        10 if is("connection") => Kind::Connection,
        10 if is("keep-alive") => Kind::Hop,
        12 if is("content-type") => Kind::ContentType,
        14 if is("content-length") => Kind::ContentLength,
        15 if is("x-forwarded-for") => Kind::Forwarded,
        16 if is("x-forwarded-host") || is("x-forwarded-port") => Kind::Forwarded,
        17 if is("transfer-encoding") => Kind::TransferEncoding,
        17 if is("x-forwarded-proto") => Kind::Forwarded,
        6.. if name.get(..6).is_some_and(|start| start.eq_ignore_ascii_case("proxy-")) => Kind::Hop,
        _ => Kind::Other,
    }
}

/// Whether it is a field that a proxy answers for, but for underscores: programs that find fields as variables read
/// `X_Forwarded_For` and `X-Forwarded-For` under one name.
pub(in crate::http) fn is_twin(name: &str) -> bool {
    name.contains('_') && !matches!(kind(&name.replace('_', "-")), Kind::Other | Kind::ContentType)
}

/// Whether a field may stand in a trailer section: nothing that frames, routes or names the client may come late.
pub(in crate::http) fn is_kept_in_trailers(name: &str) -> bool {
    matches!(kind(name), Kind::Other | Kind::Accept | Kind::ContentType)
}

/// The comma-separated words of a field's value.
pub(super) fn words(value: &[u8]) -> impl Iterator<Item = &[u8]> {
    value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii).filter(|word| !word.is_empty())
}

/// What the `Connection` fields of a head say.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Options {
    pub(super) close: bool,
    pub(super) keep_alive: bool,
    pub(super) upgrade: bool,
    /// Other fields are named: they are removed with it.
    pub(super) names_fields: bool,
}
impl Options {
    pub(super) fn read(&mut self, value: &[u8]) {
        for word in words(value) {
            if word.eq_ignore_ascii_case(b"close") {
                self.close = true;
            } else if word.eq_ignore_ascii_case(b"keep-alive") {
                self.keep_alive = true;
            } else if word.eq_ignore_ascii_case(b"upgrade") {
                self.upgrade = true;
            } else {
                self.names_fields = true;
            }
        }
    }
    /// Whether the connection goes on after this message.
    pub(super) fn persists(self, version: super::Version) -> bool {
        !self.close && (version == super::Version::Http11 || self.keep_alive)
    }
}

/// Whether a `Connection` field among `fields` names the field `name`.
pub(super) fn is_named(fields: &[httparse::Header<'_>], name: &str) -> bool {
    let mut connections = fields.iter().filter(|field| kind(field.name) == Kind::Connection);
    connections.any(|field| words(field.value).any(|word| word.eq_ignore_ascii_case(name.as_bytes())))
}
