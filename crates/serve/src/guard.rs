//! Decides which HTTP requests are answered, by their method and their `Host` header.

use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Method, StatusCode};
use std::net::IpAddr;

/// Refusal of an HTTP request: the HTTP status, and the reason as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub status: StatusCode,
    pub text: String,
}

/// Refuses every request that is not a GET or HEAD request, or whose `Host` header is not a name of this server.
pub(crate) fn check(method: &Method, headers: &HeaderMap, names: &[String]) -> Result<(), Refusal> {
    if !matches!(*method, Method::GET | Method::HEAD) {
        let text = format!("{method} is refused: these pages can only be read (GET)");
        return Err(Refusal { status: StatusCode::METHOD_NOT_ALLOWED, text });
    }
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else {
        let text = "a request must have exactly one `Host` header".to_owned();
        return Err(Refusal { status: StatusCode::BAD_REQUEST, text });
    };
    if ours(host, names) {
        return Ok(());
    }
    let text = "the `Host` header does not name this server: open the server by its IP address or as `localhost`, or \
                start the server with `--host NAME`";
    Err(Refusal { status: StatusCode::FORBIDDEN, text: text.to_owned() })
}

/// True if a `Host` header contains an IP address, `localhost` or an allowed name. Another web site can make
/// its own name point to this server (DNS rebinding), but the `Host` header of its requests is that name.
fn ours(host: &HeaderValue, names: &[String]) -> bool {
    let Ok(host) = host.to_str() else { return false };
    let name = match host.rsplit_once(':') {
        Some((name, port)) if !port.is_empty() && port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let address = name.strip_prefix('[').and_then(|n| n.strip_suffix(']')).unwrap_or(name);
    address.parse::<IpAddr>().is_ok()
        || name.eq_ignore_ascii_case("localhost")
        || names.iter().any(|n| n.eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_server_are_heard() {
        let heard = |host: &str| ours(&HeaderValue::from_str(host).unwrap(), &["bench.lan".to_owned()]);
        for host in ["127.0.0.1", "127.0.0.1:8077", "[::1]:8077", "localhost", "LOCALHOST:80", "bench.lan:8077"] {
            assert!(heard(host), "{host}");
        }
        for host in [
            "evil.example",
            "localhost.evil.example",
            "127.0.0.1.evil.example:80",
            "",
            ":80",
            "bench.lan.",
            "@localhost",
        ] {
            assert!(!heard(host), "{host}");
        }
    }
}
