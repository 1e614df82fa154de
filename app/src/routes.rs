//! Every address of a page, as a constant or a function that fills it in.
//!
//! The constants are axum patterns; `server` mounts them, pages and islands link to
//! them. Server functions live below [`API`] and name their own endpoints.

/// Prefix of every server function.
pub const API: &str = "/api";
/// List of sales.
pub const HOME: &str = "/";
/// One sale.
pub const SALE: &str = "/sales/{voucher_id}";
/// The signed-in buyer's orders.
pub const ORDERS: &str = "/orders";
/// One order.
pub const ORDER: &str = "/orders/{order_id}";
/// Sign in.
pub const LOGIN: &str = "/login";
/// Make an account.
pub const REGISTER: &str = "/register";
/// POST: language and theme.
pub const PREFERENCES: &str = "/preferences";
/// The road to this design: every earlier way, measured.
pub const ROAD: &str = "/road";
/// A refusal that belongs to no page of its own, `?code=`.
pub const PROBLEM: &str = "/problem";
/// The console's overview.
pub const ADMIN: &str = "/admin";
/// Sales: list, state, a form for a new one.
pub const ADMIN_SALES: &str = "/admin/sales";
/// Lanes and workers.
pub const ADMIN_QUEUE: &str = "/admin/queue";
/// Entries delivered and not yet acknowledged.
pub const ADMIN_PENDING: &str = "/admin/pending";
/// Entries given up on.
pub const ADMIN_DEAD_LETTERS: &str = "/admin/dead-letters";
/// What the reconciler found and did.
pub const ADMIN_REPORTS: &str = "/admin/reports";
/// What operators did.
pub const ADMIN_AUDIT: &str = "/admin/audit";

/// Address of one sale.
pub fn sale(voucher_id: &str) -> String {
    format!("/sales/{voucher_id}")
}

/// Address of one order.
pub fn order(order_id: &str) -> String {
    format!("/orders/{order_id}")
}

/// The reconciler's reports of one sale.
pub fn reports_of(voucher_id: &str) -> String {
    format!("{ADMIN_REPORTS}?voucher_id={}", escape(voucher_id))
}

/// The sign-in page that leads back to `next`, a local path.
pub fn login(next: &str) -> String {
    format!("{LOGIN}?next={}", escape(next))
}

/// The register page that leads back to `next`, a local path.
pub fn register(next: &str) -> String {
    format!("{REGISTER}?next={}", escape(next))
}

/// The page that explains a refusal.
pub fn problem(code: &str) -> String {
    format!("{PROBLEM}?code={}", escape(code))
}

/// Percent-encodes a query value; what RFC 3986 calls unreserved, and `/`, stays.
pub fn escape(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' | b'/' => {
                text.push(char::from(byte));
            }
            _ => {
                const HEX: &[u8; 16] = b"0123456789ABCDEF";
                text.push('%');
                text.push(char::from(HEX[usize::from(byte >> 4)]));
                text.push(char::from(HEX[usize::from(byte & 15)]));
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_value_is_escaped() {
        assert_eq!(login("/sales/5"), "/login?next=/sales/5");
        assert_eq!(escape("a&b=c d%秒"), "a%26b%3Dc%20d%25%E7%A7%92");
    }
}
