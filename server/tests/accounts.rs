//! Registering, signing in and out, and what the cookie is like.

use fred::prelude::*;
use http::Method;

use crate::support::{PASSWORD, Site, Visitor, services, unique};

#[tokio::test(flavor = "multi_thread")]
async fn whoever_registers_is_signed_in_until_the_log_out() {
    let site = Site::open().await;
    let visitor = site.visitor();
    assert!(visitor.asks("/api/me").await.json().is_null());
    let name = visitor.registers().await;
    let me = visitor.asks("/api/me").await;
    assert_eq!(
        (me.text("username"), me.text("role")),
        (name, "buyer".into())
    );
    assert!(me.text("user_id").parse::<i64>().unwrap() > 0);

    let cookie = visitor.cookie().unwrap();
    assert_eq!(visitor.posts("/api/logout", &[]).await.status, 200);
    assert_eq!(
        visitor.cookie(),
        None,
        "the browser is told to forget the cookie"
    );
    let thief = site.visitor().with_cookie(&cookie);
    assert!(
        thief.asks("/api/me").await.json().is_null(),
        "the session is gone on the server too"
    );
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_cookie_is_closed_to_scripts_and_other_sites() {
    let site = Site::open().await;
    let form = [("username", &*unique()), ("password", PASSWORD)]
        .map(|(n, v)| format!("{n}={v}"))
        .join("&")
        .replace(' ', "+");
    let answer = site
        .visitor()
        .sends(Method::POST, "/api/register", form.into(), &[])
        .await;
    let cookie = answer.header("set-cookie");
    assert!(cookie.starts_with("sid="), "{cookie}");
    for flag in ["HttpOnly", "SameSite=Lax", "Path=/", "Max-Age="] {
        assert!(cookie.contains(flag), "{flag} is missing: {cookie}");
    }
    assert!(
        !cookie.contains("Secure"),
        "plain HTTP on loopback: {cookie}"
    );
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn behind_tls_the_cookie_belongs_to_this_host_alone() {
    let site = Site::open_with(server::Role::Web, &["--secure-cookie=on"]).await;
    let name = unique();
    let visitor = site.visitor();
    let answer = visitor
        .posts(
            "/api/register",
            &[("username", &name), ("password", PASSWORD)],
        )
        .await;
    let cookie = answer.header("set-cookie").to_owned();
    assert!(
        cookie.starts_with("__Host-sid=") && cookie.contains("Secure"),
        "{cookie}"
    );
    assert!(!answer.header("strict-transport-security").is_empty());

    let session = cookie.split(';').next().unwrap();
    let answer = site
        .visitor()
        .with_cookie(session)
        .posts("/api/logout", &[])
        .await;
    let removal = answer.header("set-cookie");
    assert!(
        removal.starts_with("__Host-sid=;") && removal.contains("Secure"),
        "{removal}"
    );
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_session_id_changes_at_the_log_in() {
    let site = Site::open().await;
    let visitor = site.visitor();
    let name = visitor.registers().await;
    let before = visitor.cookie().unwrap();
    let answer = visitor
        .posts("/api/login", &[("username", &name), ("password", PASSWORD)])
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    assert_ne!(visitor.cookie().unwrap(), before);
    assert!(
        site.visitor()
            .with_cookie(&before)
            .asks("/api/me")
            .await
            .json()
            .is_null()
    );
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_password_and_an_unknown_name_get_the_same_answer() {
    let site = Site::open().await;
    let name = site.visitor().registers().await;
    let wrong = site
        .visitor()
        .posts(
            "/api/login",
            &[("username", &name), ("password", "something else 1")],
        )
        .await;
    let unknown = site
        .visitor()
        .posts(
            "/api/login",
            &[("username", &unique()), ("password", PASSWORD)],
        )
        .await;
    assert_eq!((wrong.status, &wrong.body), (401, &unknown.body));
    assert_eq!(unknown.status, 401);
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn guessing_is_slowed_down_for_the_guesser_only() {
    let site = Site::open_with(server::Role::Web, &["--trusted-proxies=127.0.0.1"]).await;
    let name = site.visitor().registers().await;
    let tries = async |from: &'static str, password: &str| {
        let form = format!("username={name}&password={}", password.replace(' ', "+"));
        site.visitor()
            .sends(
                Method::POST,
                "/api/login",
                form.into(),
                &[("x-forwarded-for", from)],
            )
            .await
    };
    let mut refused = None;
    for _ in 0..50 {
        let answer = tries("192.0.2.1", "not this one, sorry").await;
        if answer.status == 429 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("a guesser is told to wait");
    assert_eq!(refused.code(), "too_many");
    assert!(refused.header("retry-after").parse::<u64>().unwrap() > 0);
    assert_eq!(tries("192.0.2.1", PASSWORD).await.status, 429);
    assert_eq!(
        tries("192.0.2.2", PASSWORD).await.status,
        200,
        "the owner is not locked out"
    );
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_that_has_expired_is_nobody() {
    let site = Site::open().await;
    let sale = site.open_sale(1).await;
    let buyer = site.buyer().await;
    forget(&buyer).await;
    let answer = buyer.buys(&sale).await;
    assert_eq!((answer.status, &*answer.code()), (401, "unauthenticated"));
    assert_eq!(site.stock(&sale).await, 1);
    site.closes().await;
}

/// Deletes a session as its expiry does.
async fn forget(visitor: &Visitor) {
    let mut config = Config::from_url(&services().1).unwrap();
    config.database = Some(config.database.unwrap_or(0) + 1);
    let redis = Client::new(config, None, None, None);
    redis.init().await.unwrap();
    // The store names a session by the number that the cookie spells.
    let cookie = visitor.cookie().unwrap();
    let deleted: u64 = redis
        .del(cookie.strip_prefix("sid=").unwrap())
        .await
        .unwrap();
    assert_eq!(deleted, 1);
}
