//! Somebody in front of a browser, or a script: keeps cookies, follows nothing.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use http::{HeaderMap, Method, Request, header};
use http_body_util::{BodyExt, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;

type Http = Client<HttpConnector, Full<Bytes>>;

/// One person. Clones share the cookies, as the tabs of a browser do.
#[derive(Clone)]
pub struct Visitor {
    address: SocketAddr,
    http: Http,
    cookie: Arc<Mutex<Option<String>>>,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("not JSON: {self:?}"))
    }

    /// The code of an error.
    pub fn code(&self) -> String {
        let json = self.json();
        assert!(
            json["message"].is_string(),
            "an error has a message: {json}"
        );
        json["code"].as_str().unwrap_or_default().to_owned()
    }

    /// A header, or nothing.
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .map_or("", |value| value.to_str().unwrap())
    }

    /// A member of the JSON as text.
    pub fn text(&self, member: &str) -> String {
        self.json()[member].as_str().unwrap_or_default().to_owned()
    }
}

impl Visitor {
    pub fn new(address: SocketAddr) -> Self {
        let http = Client::builder(TokioExecutor::new()).build_http();
        Self {
            address,
            http,
            cookie: Arc::default(),
        }
    }

    /// The same person with a cookie of their own.
    pub fn with_cookie(self, cookie: &str) -> Self {
        Self {
            cookie: Arc::new(Mutex::new(Some(cookie.to_owned()))),
            ..self
        }
    }

    /// The same person in front of another process of the same shop.
    pub fn at(self, address: SocketAddr) -> Self {
        Self { address, ..self }
    }

    /// The session cookie as `name=value`.
    pub fn cookie(&self) -> Option<String> {
        self.cookie.lock().unwrap().clone()
    }

    /// Reads an address.
    pub async fn asks(&self, path: &str) -> Answer {
        self.sends(Method::GET, path, Bytes::new(), &[]).await
    }

    /// Posts a form as a script does.
    pub async fn posts(&self, path: &str, form: &[(&str, &str)]) -> Answer {
        self.sends(
            Method::POST,
            path,
            encoded(form),
            &[("accept", "application/json")],
        )
        .await
    }

    /// Submits a form of the page `from`, as a browser without scripts does.
    pub async fn submits(&self, from: &str, path: &str, form: &[(&str, &str)]) -> Answer {
        let origin = format!("http://{}", self.address);
        let referer = format!("{origin}{from}");
        let headers = [
            ("accept", "text/html,application/xhtml+xml,*/*;q=0.8"),
            ("origin", &*origin),
            ("referer", &*referer),
            ("sec-fetch-site", "same-origin"),
        ];
        self.sends(Method::POST, path, encoded(form), &headers)
            .await
    }

    /// Presses the button.
    pub async fn buys(&self, sale: &str) -> Answer {
        self.posts("/api/buy", &[("voucher_id", sale)]).await
    }

    /// Buys, and returns the order that was admitted.
    pub async fn gets(&self, sale: &str) -> String {
        let answer = self.buys(sale).await;
        assert_eq!(
            (answer.status, &*answer.text("outcome")),
            (200, "admitted"),
            "{answer:?}"
        );
        answer.text("order_id")
    }

    /// The state of an order of this buyer.
    pub async fn order_state(&self, order: &str) -> String {
        self.asks(&format!("/api/order?order_id={order}"))
            .await
            .text("state")
    }

    /// Makes an account with a name of its own, and is signed in.
    pub async fn registers(&self) -> String {
        let name = super::unique();
        let answer = self
            .posts(
                "/api/register",
                &[("username", &name), ("password", PASSWORD)],
            )
            .await;
        assert_eq!(answer.status, 200, "{answer:?}");
        name
    }

    /// Sends whatever a test wants to send.
    pub async fn sends(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        headers: &[(&str, &str)],
    ) -> Answer {
        let answer = self.tries(method, path, body, headers).await;
        answer.expect("the server answers")
    }

    /// The same to a server that may die of it: nothing if no answer came.
    pub async fn tries(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        headers: &[(&str, &str)],
    ) -> Option<Answer> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("http://{}{path}", self.address))
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        if let Some(cookie) = self.cookie() {
            request = request.header(header::COOKIE, cookie);
        }
        let response = self
            .http
            .request(request.body(Full::new(body)).unwrap())
            .await
            .ok()?;
        let (parts, body) = response.into_parts();
        let body = body.collect().await.ok()?.to_bytes();
        self.keeps(&parts.headers);
        Some(Answer {
            status: parts.status.as_u16(),
            headers: parts.headers,
            body,
        })
    }

    fn keeps(&self, headers: &HeaderMap) {
        for line in headers.get_all(header::SET_COOKIE) {
            let line = line.to_str().unwrap();
            let pair = line.split(';').next().unwrap();
            if !pair.starts_with("sid=") {
                continue;
            }
            let ended = pair.ends_with('=') || line.contains("Max-Age=0");
            *self.cookie.lock().unwrap() = (!ended).then(|| pair.to_owned());
        }
    }
}

/// A password that every rule accepts.
pub const PASSWORD: &str = "correct horse battery staple";

fn encoded(form: &[(&str, &str)]) -> Bytes {
    let pairs: Vec<_> = form
        .iter()
        .map(|(name, value)| format!("{name}={}", app::routes::escape(value)))
        .collect();
    pairs.join("&").into()
}
