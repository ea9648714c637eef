//! What a request's head says.
use super::field::{Kind, Options, kind, words};
use super::length::Lengths;
use super::target::Target;
use super::{Hop, Refused, Version};
use crate::http::framing::Framing;
use httparse::Header;

/// One request head that may be passed on.
#[derive(Debug)]
pub(in crate::http) struct Request<'h, 'b> {
    pub(in crate::http) method: &'b [u8],
    pub(in crate::http) target: Target<'b>,
    pub(in crate::http) version: Version,
    /// Host and port as the client wrote them: of the target if it names one, else of `Host`. Empty only in HTTP/1.0.
    pub(in crate::http) authority: &'b [u8],
    pub(in crate::http) framing: Framing,
    /// `Accept`, for pages of our own.
    pub(in crate::http) accept: Option<&'b str>,
    /// It is a call of gRPC, whose clients read no pages.
    pub(in crate::http) grpc: bool,
    /// The client asks for another protocol on this connection.
    pub(in crate::http) upgrade: bool,
    /// The client waits for a 100 before it sends the body.
    pub(in crate::http) expects: bool,
    /// The request came through this router before.
    pub(in crate::http) looped: bool,
    /// The client wants another answer on this connection.
    pub(in crate::http) persists: bool,
    pub(super) trailers: bool,
    pub(super) options: Options,
    pub(super) fields: &'h [Header<'b>],
}

impl<'h, 'b> Request<'h, 'b> {
    /// Reads one whole head. `hop`: our own mark, by which a loop is found.
    pub(in crate::http) fn read(head: &'b [u8], fields: &'h mut [Header<'b>], hop: &Hop) -> Result<Self, Refused> {
        let (method, target, version, rest) = request_line(head)?;
        let fields = super::request::fields(rest, fields)?;
        let target = Target::read(method, target).map_err(Refused::Bad)?;
        let mut request = Self {
            method,
            target,
            version,
            authority: b"",
            framing: Framing::None,
            accept: None,
            grpc: false,
            upgrade: false,
            expects: false,
            looped: false,
            persists: false,
            trailers: false,
            options: Options::default(),
            fields,
        };
        request.read_fields(fields, hop).map_err(Refused::Bad)?;
        Ok(request)
    }

    fn read_fields(&mut self, fields: &[Header<'b>], hop: &Hop) -> Result<(), &'static str> {
        let (mut lengths, mut host, mut upgrade) = (Lengths::default(), None, false);
        for field in fields {
            match kind(field.name) {
                Kind::Host if host.replace(field.value).is_some() => return Err("more than one Host"),
                Kind::Connection => self.options.read(field.value),
                Kind::ContentLength => lengths.content_length(field.value)?,
                Kind::TransferEncoding => lengths.transfer_encoding(field.value)?,
                // HTTP/2 in clear is spoken with prior knowledge, never by an upgrade past this router.
                Kind::Upgrade => upgrade = !words(field.value).any(|word| word.eq_ignore_ascii_case(b"h2c")),
                Kind::Te => self.trailers |= words(field.value).any(|word| word.eq_ignore_ascii_case(b"trailers")),
                Kind::Expect => self.expects |= field.value.eq_ignore_ascii_case(b"100-continue"),
                Kind::Accept => self.accept = std::str::from_utf8(field.value).ok(),
                Kind::ContentType => self.grpc |= is_grpc(field.value),
                Kind::Loop => self.looped |= hop.is_in(field.value),
                Kind::Host | Kind::Hop | Kind::Forwarded | Kind::Other => {}
            }
        }
        lengths.check()?;
        self.framing = self.framing(lengths)?;
        self.authority = match (self.target, host) {
            (_, None | Some([])) if self.version == Version::Http11 => return Err("no Host"),
            (Target::Absolute { authority, .. }, _) => authority,
            (_, host) => host.unwrap_or_default(),
        };
        self.persists = self.options.persists(self.version);
        let http11 = self.version == Version::Http11;
        self.upgrade = upgrade && self.options.upgrade && http11;
        self.expects &= http11 && self.framing != Framing::None;
        Ok(())
    }

    fn framing(&self, lengths: Lengths) -> Result<Framing, &'static str> {
        match lengths {
            Lengths { chunked: true, .. } if self.version == Version::Http10 => Err("Transfer-Encoding in HTTP/1.0"),
            Lengths { chunked: true, .. } => Ok(Framing::Chunked),
            Lengths { length: Some(length), .. } => Ok(Framing::Length(length)),
            Lengths { length: None, .. } => Ok(Framing::None),
        }
    }

    /// All fields, as they came.
    pub(in crate::http) fn fields(&self) -> &'h [Header<'b>] {
        self.fields
    }

    /// Whether sending it twice does what sending it once does (RFC 9110 §9.2.2).
    pub(in crate::http) fn is_idempotent(&self) -> bool {
        matches!(self.method, b"GET" | b"HEAD" | b"OPTIONS" | b"PUT" | b"DELETE" | b"TRACE")
    }
}

/// Whether a `Content-Type` is one of gRPC's.
pub(in crate::http) fn is_grpc(content_type: &[u8]) -> bool {
    const GRPC: &[u8] = b"application/grpc";
    content_type.get(..GRPC.len()).is_some_and(|start| start.eq_ignore_ascii_case(GRPC))
}

type Line<'b> = (&'b [u8], &'b [u8], Version, &'b [u8]);

/// Method, target and version, and what follows the line.
fn request_line(head: &[u8]) -> Result<Line<'_>, Refused> {
    const MALFORMED: Refused = Refused::Bad("the request line is not `METHOD target HTTP/1.1`");
    let end = memchr::memchr(b'\r', head).ok_or(MALFORMED)?;
    let (line, rest) = head.split_at_checked(end).ok_or(MALFORMED)?;
    let rest = rest.strip_prefix(b"\r\n").ok_or(MALFORMED)?;
    let mut words = line.splitn(3, |byte| *byte == b' ');
    let (Some(method), Some(target), Some(version)) = (words.next(), words.next(), words.next()) else {
        return Err(MALFORMED);
    };
    let token = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(byte);
    let visible = |byte: &u8| *byte > b' ' && *byte != 0x7f;
    if method.is_empty() || !method.iter().all(token) || target.is_empty() || !target.iter().all(visible) {
        return Err(MALFORMED);
    }
    let version = match version {
        b"HTTP/1.1" => Version::Http11,
        b"HTTP/1.0" => Version::Http10,
        [b'H', b'T', b'T', b'P', b'/', major, b'.', minor] if major.is_ascii_digit() && minor.is_ascii_digit() => {
            return Err(Refused::Version);
        }
        _ => return Err(MALFORMED),
    };
    Ok((method, target, version, rest))
}

/// The fields of a whole head, `rest` being what follows its first line.
pub(super) fn fields<'h, 'b>(rest: &'b [u8], fields: &'h mut [Header<'b>]) -> Result<&'h [Header<'b>], Refused> {
    match httparse::parse_headers(rest, fields) {
        Ok(httparse::Status::Complete((used, fields))) if used == rest.len() => Ok(fields),
        Err(httparse::Error::TooManyHeaders) => Err(Refused::TooLarge),
        Err(httparse::Error::HeaderName) => Err(Refused::Bad("a field name has a character that no name has")),
        _ => Err(Refused::Bad("a field is malformed, or has a bare carriage return or a control character")),
    }
}
