//! One keep-alive HTTP/1.1 connection, as a browser's tab holds it.
//!
//! It is made again after it broke. A call that was lost on the way may have been decided all
//! the same: that is the caller's to find out, by asking again.

use std::fmt;
use std::io;
use std::str::FromStr;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, StatusCode, Uri, header};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

/// How long an answer is waited for; above the server's own limit for a request.
const PATIENCE: Duration = Duration::from_secs(20);

/// Where a server is: `http://host:port`.
#[derive(Debug, Clone)]
pub struct Origin {
    authority: String,
    host: HeaderValue,
}

impl Origin {
    /// The origin with this `host:port`.
    ///
    /// # Errors
    /// When it is no authority.
    pub fn of(authority: &str) -> Result<Self, String> {
        format!("http://{authority}").parse()
    }

    /// Where nothing listens: a server that is not started yet.
    pub fn nowhere() -> Self {
        Self {
            authority: "127.0.0.1:0".into(),
            host: HeaderValue::from_static("127.0.0.1:0"),
        }
    }
}

impl FromStr for Origin {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let uri: Uri = text.parse().map_err(|_| "not a URL".to_owned())?;
        if uri.scheme_str() != Some("http") {
            return Err("an address begins with http:// (TLS would be measured too)".into());
        }
        if uri.path() != "/" || uri.query().is_some() {
            return Err("an address has no path".into());
        }
        let host = uri
            .host()
            .filter(|host| !host.is_empty())
            .ok_or("an address names a host")?;
        let authority = format!("{host}:{}", uri.port_u16().unwrap_or(80));
        let host = HeaderValue::try_from(&authority).map_err(|_| "not a host")?;
        Ok(Self { authority, host })
    }
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}", self.authority)
    }
}

/// A request to be sent, as often as needed.
#[derive(Debug, Clone)]
pub struct Call {
    uri: Uri,
    form: Option<Bytes>,
    cookie: Option<HeaderValue>,
}

impl Call {
    /// Asks for a path with its query. The path is this program's own, and so is a valid one.
    pub fn get(path: &str) -> Self {
        Self {
            uri: path.parse().expect("a path of this program"),
            form: None,
            cookie: None,
        }
    }

    /// Posts a form to a path.
    pub fn post(path: &str, fields: &[(&str, &str)]) -> Self {
        let pairs: Vec<String> = fields
            .iter()
            .map(|(name, value)| format!("{name}={}", escape(value)))
            .collect();
        Self {
            form: Some(pairs.join("&").into()),
            ..Self::get(path)
        }
    }

    /// The same, sent by whom this session cookie (`name=value`) belongs to.
    pub fn by(&self, cookie: &HeaderValue) -> Self {
        Self {
            cookie: Some(cookie.clone()),
            ..self.clone()
        }
    }

    fn request(&self, origin: &Origin) -> Request<Full<Bytes>> {
        let mut request = Request::new(Full::new(self.form.clone().unwrap_or_default()));
        *request.uri_mut() = self.uri.clone();
        if self.form.is_some() {
            *request.method_mut() = http::Method::POST;
        }
        let headers = request.headers_mut();
        headers.insert(header::HOST, origin.host.clone());
        headers.insert(header::ACCEPT, HeaderValue::from_static("application/json"));
        if self.form.is_some() {
            let form = HeaderValue::from_static("application/x-www-form-urlencoded");
            headers.insert(header::CONTENT_TYPE, form);
        }
        if let Some(cookie) = &self.cookie {
            headers.insert(header::COOKIE, cookie.clone());
        }
        request
    }
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    /// The status.
    pub status: StatusCode,
    /// The headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

/// No answer came.
#[derive(Debug, thiserror::Error)]
pub enum Lost {
    /// Nobody took the connection.
    #[error("no connection: {0}")]
    Connect(#[source] io::Error),
    /// It broke before the answer was whole.
    #[error("the connection broke: {0}")]
    Broken(#[from] hyper::Error),
    /// Nothing came in time.
    #[error("no answer in {} s", PATIENCE.as_secs())]
    Late,
}

/// A connection that lives as long as the server lets it.
pub struct Connection {
    origin: Origin,
    sender: Option<SendRequest<Full<Bytes>>>,
}

impl Connection {
    /// A connection to be made when it is needed.
    pub fn to(origin: &Origin) -> Self {
        Self {
            origin: origin.clone(),
            sender: None,
        }
    }

    /// Makes the connection now, unless it stands.
    ///
    /// # Errors
    /// When nobody takes it.
    pub async fn connect(&mut self) -> Result<&mut SendRequest<Full<Bytes>>, Lost> {
        let stands = match &mut self.sender {
            // An idle connection that the server closed is found out here, before anything is sent.
            Some(sender) => sender.ready().await.is_ok(),
            None => false,
        };
        if !stands {
            let stream = TcpStream::connect(&self.origin.authority)
                .await
                .map_err(Lost::Connect)?;
            stream.set_nodelay(true).map_err(Lost::Connect)?;
            let (sender, connection) = handshake(TokioIo::new(stream)).await?;
            // It ends with the sender; its fault is the sender's too.
            tokio::spawn(connection);
            self.sender = Some(sender);
        }
        Ok(self.sender.as_mut().expect("it was just made, or stands"))
    }

    /// Sends a call and reads the whole answer.
    ///
    /// # Errors
    /// When no answer came; the next call makes a new connection.
    pub async fn send(&mut self, call: &Call) -> Result<Answer, Lost> {
        let answer = tokio::time::timeout(PATIENCE, self.exchange(call))
            .await
            .unwrap_or(Err(Lost::Late));
        if answer.is_err() {
            self.sender = None;
        }
        answer
    }

    async fn exchange(&mut self, call: &Call) -> Result<Answer, Lost> {
        let request = call.request(&self.origin);
        let response = self.connect().await?.send_request(request).await?;
        let (head, body) = response.into_parts();
        Ok(Answer {
            status: head.status,
            headers: head.headers,
            body: body.collect().await?.to_bytes(),
        })
    }
}

/// A value as it stands in a form.
fn escape(value: &str) -> String {
    let mut text = String::with_capacity(value.len());
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                text.push(char::from(byte))
            }
            _ => text.push_str(&format!("%{byte:02X}")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_plain_http_without_a_path() {
        assert_eq!(
            "http://shop.test".parse::<Origin>().unwrap().to_string(),
            "http://shop.test:80"
        );
        assert_eq!(
            "http://[::1]:3000/".parse::<Origin>().unwrap().to_string(),
            "http://[::1]:3000"
        );
        for wrong in [
            "shop.test",
            "https://shop.test",
            "http://shop.test/sales",
            "http://shop.test/?a",
            "",
        ] {
            assert!(wrong.parse::<Origin>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_form_keeps_every_character() {
        let call = Call::post("/x", &[("a", "1+1 & é"), ("b", "")]);
        assert_eq!(call.form.unwrap(), "a=1%2B1%20%26%20%C3%A9&b=");
    }
}
