//! Requests that every server refuses.
//!
//! A page of another site can be at a name that its owner lets point to this machine: then a browser holds the server here for that site, and shows the page its answers (DNS rebinding). But the browser says by which name it came.
//! Where TLS ends here there is no such thing: the certificate is of no such name. Where it ends at a proxy, people come by names that only the operator knows: they are held against those that he gave, if he gave any.

use std::net::{IpAddr, Ipv6Addr};

use axum::extract::Request;
use axum::http::{HeaderValue, StatusCode, Version, header};

use crate::problem::Problem;

/// Why a request is refused before a handler reads it. With `names` its host must be one of them, or a name of this machine.
#[must_use]
pub fn refusal(request: &Request, names: Option<&[String]>) -> Option<Problem> {
    if !is_utf8(request.uri().path()) {
        return Some(Problem::bad("the path must be UTF-8"));
    }
    let mut hosts = request.headers().get_all(header::HOST).iter();
    let (first, second) = (hosts.next(), hosts.next());
    if second.is_some() || first.is_none() && request.version() >= Version::HTTP_11 {
        return Some(Problem::bad("a request must have one Host"));
    }
    // What stands in the request's own line counts more.
    let in_line = request.uri().authority().map(|authority| Ok(authority.as_str()));
    let host = in_line.or(first.map(HeaderValue::to_str))?;
    let Some(name) = host.ok().and_then(name_of) else {
        return Some(Problem::bad("the Host must be a name or an address, and perhaps a port"));
    };
    let misdirected =
        || Problem::of(StatusCode::MISDIRECTED_REQUEST, "this server does not have that host name");
    let is_ours = names.is_none_or(|names| is_of_here(name, names));
    (!is_ours).then(|| misdirected().reason("other-host"))
}

/// The name or address of a host, without brackets; `None` if what stands behind it is no port.
fn name_of(host: &str) -> Option<&str> {
    let (name, behind) = match host.strip_prefix('[') {
        Some(rest) => rest.split_once(']').filter(|(address, _)| address.parse::<Ipv6Addr>().is_ok())?,
        None => host.split_at(host.find(':').unwrap_or(host.len())),
    };
    let is_digits = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let is_port = |port: &str| port.is_empty() || is_digits(port) && port.parse::<u16>().is_ok();
    (behind.is_empty() || behind.strip_prefix(':').is_some_and(is_port)).then_some(name)
}

/// Whether a host is this machine, or one of these names.
fn is_of_here(name: &str, names: &[String]) -> bool {
    let is_loopback = name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    is_loopback
        || name.eq_ignore_ascii_case("localhost")
        || names.iter().any(|known| known.eq_ignore_ascii_case(name))
}

/// Whether a path is text once its `%xx` are bytes.
fn is_utf8(path: &str) -> bool {
    let (mut bytes, mut rest) = (Vec::with_capacity(path.len()), path.as_bytes());
    while let [first, behind @ ..] = rest {
        let byte = behind.get(..2).filter(|_| *first == b'%');
        let byte = byte.and_then(|digits| u8::from_str_radix(str::from_utf8(digits).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &behind[2..] } else { behind };
    }
    str::from_utf8(&bytes).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_this_machine_or_a_name_that_was_given() {
        let names = ["pares.example".to_owned()];
        for host in [
            "127.0.0.1",
            "127.0.0.1:80",
            "localhost:4700",
            "LocalHost",
            "[::1]",
            "[::1]:1",
            "pares.example:1",
            "localhost:",
            "localhost:65535",
        ] {
            assert!(name_of(host).is_some_and(|name| is_of_here(name, &names)), "{host}");
        }
        for host in
            ["evil.example", "evil.example:4700", "127.0.0.1.evil.example", "10.0.0.1", "", ":", "[::2]:1"]
        {
            assert!(name_of(host).is_some_and(|name| !is_of_here(name, &names)), "{host}");
        }
    }

    #[test]
    fn what_stands_behind_a_host_is_a_port() {
        for host in [
            "localhost:evil.example",
            "localhost:80:80",
            "localhost:+80",
            "localhost:65536",
            "127.0.0.1:80x",
            "::1",
            "::1:80",
            "[::1",
            "[::1]80",
            "[::1]:80x",
            "[::1]evil.example",
            "[::1].evil.example:80",
            "[127.0.0.1]",
            "[localhost]:80",
        ] {
            assert_eq!(name_of(host), None, "{host}");
        }
        assert_eq!((name_of("[::1]:80"), name_of("a.b:8")), (Some("::1"), Some("a.b")));
    }

    #[test]
    fn a_request_names_one_host_and_that_of_its_line_counts() {
        let refused = |uri: &str, hosts: &[&str]| {
            let begun = Request::builder().uri(uri);
            let asked = hosts.iter().fold(begun, |asked, host| asked.header(header::HOST, *host));
            refusal(&asked.body(axum::body::Body::empty()).unwrap(), Some(&[]))
                .map(|problem| problem.status())
        };
        assert_eq!(refused("/", &["127.0.0.1"]), None);
        assert_eq!(refused("/", &[]), Some(400));
        assert_eq!(refused("/", &["127.0.0.1", "evil"]), Some(400));
        assert_eq!(refused("/", &["localhost:evil.example"]), Some(400));
        assert_eq!(refused("/", &["evil.example:80"]), Some(421));
        assert_eq!(refused("http://evil/", &["127.0.0.1"]), Some(421));
        assert_eq!(refused("http://localhost/", &["127.0.0.1"]), None);
    }

    #[test]
    fn a_path_is_text() {
        for path in ["/", "/a%20b", "/%c3%a4", "/%", "/%4", "/%zz"] {
            assert!(is_utf8(path), "{path}");
        }
        assert!(!is_utf8("/%ff") && !is_utf8("/%c3x"));
    }
}
