//! Where a request comes from.
//!
//! The client writes `X-Forwarded-For` itself, and each proxy appends whom it
//! saw. So the header counts only when the peer is a trusted proxy, and then it
//! is read from the right: the first entry that is not a trusted proxy is the
//! client, and everything to the left of it is hearsay.

use std::net::IpAddr;

use http::HeaderMap;
use ipnet::IpNet;

const FORWARDED: &str = "x-forwarded-for";

/// The networks whose forwarded headers are believed.
#[derive(Debug, Clone, Default)]
pub struct TrustedProxies(Vec<IpNet>);

impl TrustedProxies {
    /// Trusts the given networks.
    pub fn new(networks: Vec<IpNet>) -> Self {
        Self(networks)
    }

    /// Whether the address belongs to a trusted proxy.
    pub fn holds(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(&address))
    }

    /// The client's address: the peer, or whom trusted proxies say they saw.
    pub fn client(&self, peer: IpAddr, headers: &HeaderMap) -> IpAddr {
        let mut client = peer.to_canonical();
        let entries = headers
            .get_all(FORWARDED)
            .iter()
            .rev()
            .flat_map(|line| line.to_str().unwrap_or("?").rsplit(',').map(str::trim));
        for entry in entries {
            // An entry that is no address was not written by a proxy of ours.
            let (true, Some(next)) = (self.holds(client), parsed(entry)) else {
                break;
            };
            client = next;
        }
        client
    }
}

/// Reads `1.2.3.4`, `1.2.3.4:80`, `2001:db8::1` and `[2001:db8::1]:80`.
fn parsed(entry: &str) -> Option<IpAddr> {
    let bare = entry
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
        .map(|(inside, _)| inside);
    bare.unwrap_or(entry)
        .parse::<IpAddr>()
        .or_else(|_| {
            entry
                .parse::<std::net::SocketAddr>()
                .map(|socket| socket.ip())
        })
        .map(|address| address.to_canonical())
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(peer: &str, forwarded: &[&str]) -> String {
        let proxies = TrustedProxies::new(vec!["10.0.0.0/8".parse().unwrap()]);
        let mut headers = HeaderMap::new();
        for line in forwarded {
            headers.append(FORWARDED, line.parse().unwrap());
        }
        proxies.client(peer.parse().unwrap(), &headers).to_string()
    }

    #[test]
    fn a_stranger_cannot_choose_an_address() {
        assert_eq!(client("9.9.9.9", &["1.1.1.1"]), "9.9.9.9");
    }

    #[test]
    fn the_right_most_entry_that_is_no_proxy_counts() {
        assert_eq!(
            client("10.0.0.1", &["6.6.6.6, 1.1.1.1, 10.0.0.2"]),
            "1.1.1.1"
        );
        assert_eq!(client("10.0.0.1", &["6.6.6.6", "1.1.1.1:99"]), "1.1.1.1");
    }

    #[test]
    fn what_is_no_address_ends_the_reading() {
        assert_eq!(client("10.0.0.1", &["1.1.1.1, unknown"]), "10.0.0.1");
        assert_eq!(
            client("::ffff:10.0.0.1", &["[2001:db8::1]:80"]),
            "2001:db8::1"
        );
    }
}
