//! Where to go after signing in: only ever a page of this site.

/// `text` if it is a local path, else `None`.
///
/// Browsers read `//host` and `/\host` as another site, and drop tabs and line breaks
/// before they look, so `/<tab>/host` is one too: anything but printable ASCII without
/// backslashes is refused (our own paths are percent-encoded where needed).
pub(crate) fn local_path(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('/')?;
    let harmless = text.len() <= 512
        && !rest.starts_with('/')
        && text.bytes().all(|b| b.is_ascii_graphic() && b != b'\\');
    harmless.then_some(text)
}

/// `text` if it is a local path that is worth returning to, else the start page.
pub(crate) fn or_home(text: Option<&str>) -> &str {
    text.and_then(local_path)
        .filter(|path| {
            !path.starts_with("/api/")
                && !path.starts_with("/login")
                && !path.starts_with("/register")
        })
        .unwrap_or(crate::routes::HOME)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_local_path_is_kept() {
        for path in [
            "/",
            "/sales/5",
            "/orders?after=3",
            "/sales/5?outcome=sold_out#top",
        ] {
            assert_eq!(local_path(path), Some(path));
        }
    }

    #[test]
    fn another_site_is_refused_however_it_is_written() {
        for path in [
            "",
            "sales",
            "//evil.example",
            "/\\evil.example",
            "\\/evil.example",
            "/\t/evil.example",
            "/\n/evil.example",
            "/\r\nset-cookie: a=b",
            "https://evil.example",
            "javascript:alert(1)",
            " /sales",
            "/sa les",
            "/秒",
            "/a\\b",
            "/\u{0}",
        ] {
            assert_eq!(local_path(path), None, "{path:?}");
        }
        assert_eq!(local_path(&format!("/{}", "a".repeat(600))), None);
    }

    #[test]
    fn nobody_is_sent_back_to_the_form_or_to_a_function() {
        assert_eq!(or_home(Some("/login?next=/login")), "/");
        assert_eq!(or_home(Some("/api/me")), "/");
        assert_eq!(or_home(Some("//evil")), "/");
        assert_eq!(or_home(None), "/");
        assert_eq!(or_home(Some("/orders")), "/orders");
    }
}
