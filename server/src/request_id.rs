//! The name of one request: 32 hexadecimal digits.
//!
//! It is answered as `x-request-id`, stands in the span of every log line, and
//! travels as the trace id of a W3C `traceparent` through the stream entry to
//! the consumer. One that comes with the request is taken only from a trusted
//! proxy: otherwise a client could write another request's name into the logs.

use http::{HeaderMap, HeaderName};

/// The header that carries the id in both directions.
pub const HEADER: HeaderName = HeaderName::from_static("x-request-id");

const TRACEPARENT: &str = "traceparent";

/// The id of a request: the proxy's if it is `trusted` and valid, else `fresh`.
pub fn of(headers: &HeaderMap, trusted: bool, fresh: impl FnOnce() -> u128) -> String {
    let incoming = || incoming(headers);
    trusted
        .then(incoming)
        .flatten()
        .unwrap_or_else(|| format!("{:032x}", fresh()))
}

fn incoming(headers: &HeaderMap) -> Option<String> {
    let text = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    let trace = text(TRACEPARENT).and_then(|value| {
        // version "-" trace-id "-" parent-id "-" flags, https://www.w3.org/TR/trace-context/
        let mut parts = value.split('-');
        let (version, trace) = (parts.next()?, parts.next()?);
        (version.len() == 2 && version != "ff" && parts.next()?.len() == 16).then_some(trace)
    });
    trace
        .or_else(|| text(HEADER.as_str()))
        .filter(|id| valid(id))
        .map(str::to_owned)
}

fn valid(id: &str) -> bool {
    id.len() == 32
        && id
            .bytes()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && id.bytes().any(|byte| byte != b'0')
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "0af7651916cd43dd8448eb211c80319c";

    fn with(name: &'static str, value: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert(name, value.parse().unwrap());
        headers
    }

    #[test]
    fn a_trusted_proxy_names_the_request() {
        let trace = format!("00-{ID}-b7ad6b7169203331-01");
        assert_eq!(of(&with("traceparent", &trace), true, || 1), ID);
        assert_eq!(of(&with("x-request-id", ID), true, || 1), ID);
    }

    #[test]
    fn a_stranger_does_not() {
        let fresh = format!("{:032x}", 1);
        assert_eq!(of(&with("x-request-id", ID), false, || 1), fresh);
        assert_eq!(of(&with("x-request-id", "../../etc"), true, || 1), fresh);
        assert_eq!(
            of(&with("x-request-id", &"0".repeat(32)), true, || 1),
            fresh
        );
    }
}
