//! The browser's files: bundles and style, below `/pkg/<hash>/`.
//!
//! The hash is that of their content, so a file never changes under its address
//! and may be kept for ever. Folders of earlier builds stay where they are: a
//! page that was loaded before a deployment still finds its bundle. Each file
//! lies beside its compressed forms, which were made once, at build time.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use app::Bundles;
use axum::{
    extract::{Path as Segments, State},
    response::{IntoResponse, Response},
};
use http::{HeaderMap, HeaderValue, header};
use tracing::warn;

use crate::refusal;

const FOR_EVER: HeaderValue = HeaderValue::from_static("public, max-age=31536000, immutable");

/// Encodings in order of preference, with the ending of the file that has it.
const ENCODINGS: [(&str, &str); 2] = [("br", ".br"), ("gzip", ".gz")];

/// The folder of all builds, and the one that pages point to.
#[derive(Debug, Clone)]
pub struct Assets {
    folder: Arc<PathBuf>,
    current: Arc<str>,
}

impl Assets {
    /// Reads which build is the current one. None at all is a warning: pages are
    /// HTML and work without bundles, only nothing on them moves.
    pub fn open(folder: &Path) -> Self {
        let current = current(folder).unwrap_or_else(|error| {
            warn!(folder = %folder.display(), %error, "there are no browser bundles: pages work, but nothing on them moves");
            "none".into()
        });
        Self {
            folder: Arc::new(folder.join("pkg")),
            current: current.into(),
        }
    }

    /// Where pages find the current build.
    pub fn bundles(&self) -> Bundles {
        let folder = format!("pkg/{}", self.current);
        Bundles {
            shop: folder.clone(),
            console: folder.clone(),
            style: format!("/{folder}/style.css"),
        }
    }
}

/// Serves a file in the best encoding that the caller takes.
pub async fn file(
    State(assets): State<Assets>,
    Segments((hash, file)): Segments<(String, String)>,
    headers: HeaderMap,
) -> Response {
    // Plain names only, so that no path leads out of the folder.
    if !plain(&hash) || !file.split('/').all(plain) {
        return refusal::no_endpoint();
    }
    let path = assets.folder.join(&hash).join(&file);
    for (encoding, ending) in ENCODINGS
        .iter()
        .filter(|(encoding, _)| accepts(&headers, encoding))
    {
        let mut compressed = path.clone().into_os_string();
        compressed.push(ending);
        if let Ok(bytes) = tokio::fs::read(compressed).await {
            return answer(&file, bytes, Some(encoding));
        }
    }
    match tokio::fs::read(path).await {
        Ok(bytes) => answer(&file, bytes, None),
        Err(_) => refusal::no_endpoint(),
    }
}

fn answer(file: &str, bytes: Vec<u8>, encoding: Option<&'static str>) -> Response {
    let mut response = bytes.into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(content_type(file)),
    );
    headers.insert(header::CACHE_CONTROL, FOR_EVER);
    headers.insert(header::VARY, HeaderValue::from_static("accept-encoding"));
    if let Some(encoding) = encoding {
        headers.insert(header::CONTENT_ENCODING, HeaderValue::from_static(encoding));
    }
    response
}

fn current(folder: &Path) -> io::Result<String> {
    let name = fs::read_to_string(folder.join("current"))?
        .trim()
        .to_owned();
    if !plain(&name) || !folder.join("pkg").join(&name).is_dir() {
        return Err(io::Error::other(format!(
            "`current` names {name:?}, which is no folder here"
        )));
    }
    Ok(name)
}

fn plain(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn accepts(headers: &HeaderMap, encoding: &str) -> bool {
    headers
        .get_all(header::ACCEPT_ENCODING)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|value| {
            value.split(',').any(|part| {
                let mut words = part.split(';').map(str::trim);
                words.next() == Some(encoding)
                    && !words.any(|word| matches!(word, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"))
            })
        })
}

fn content_type(file: &str) -> &'static str {
    match file.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("wasm") => "application/wasm",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        Some("json" | "map") => "application/json",
        _ => "application/octet-stream",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_leads_out_of_the_folder() {
        assert!(plain("shop_bg.wasm") && plain("a1b2"));
        for name in ["", ".", "..", ".env", "a/b", "a\\b", "a\0", "%2e%2e"] {
            assert!(!plain(name), "{name}");
        }
    }

    #[test]
    fn an_encoding_is_used_only_where_it_is_taken() {
        let mut headers = HeaderMap::new();
        headers.insert(
            header::ACCEPT_ENCODING,
            HeaderValue::from_static("gzip, br;q=0"),
        );
        assert!(accepts(&headers, "gzip") && !accepts(&headers, "br"));
    }
}
