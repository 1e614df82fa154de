//! What outside programs rely on: codes, statuses, headers, rights.

use bytes::Bytes;
use http::Method;

use crate::support::{Site, unique};

const FOREIGN: [(&str, &str); 2] = [
    ("origin", "https://evil.example"),
    ("sec-fetch-site", "cross-site"),
];

#[tokio::test(flavor = "multi_thread")]
async fn another_site_cannot_act_in_a_buyers_name() {
    let site = Site::open().await;
    let sale = site.open_sale(3).await;
    let buyer = site.buyer().await;
    let form = Bytes::from(format!("voucher_id={sale}"));
    for headers in [&FOREIGN[..], &FOREIGN[..1], &FOREIGN[1..]] {
        let answer = buyer
            .sends(Method::POST, "/api/buy", form.clone(), headers)
            .await;
        assert_eq!(
            (answer.status, &*answer.code()),
            (403, "cross_site"),
            "{headers:?}"
        );
    }
    assert_eq!(site.stock(&sale).await, 3);
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_over_the_limit_is_refused() {
    let site = Site::open().await;
    let body = Bytes::from(format!("voucher_id={}", "1".repeat(70_000)));
    let answer = site
        .buyer()
        .await
        .sends(Method::POST, "/api/buy", body, &[])
        .await;
    assert_eq!((answer.status, &*answer.code()), (413, "too_large"));
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_malformed_id_is_invalid_and_an_unknown_one_is_not_found() {
    let site = Site::open().await;
    let buyer = site.buyer().await;
    for id in [
        "",
        "abc",
        "-1",
        "0",
        "1.5",
        "9223372036854775808",
        "１",
        "1;drop",
    ] {
        let answer = buyer.buys(id).await;
        assert_eq!(
            (answer.status, &*answer.code()),
            (422, "invalid"),
            "buying {id:?}"
        );
        let id = app::routes::escape(id);
        for path in [
            format!("/api/sale?voucher_id={id}"),
            format!("/api/order?order_id={id}"),
        ] {
            let answer = buyer.asks(&path).await;
            assert_eq!((answer.status, &*answer.code()), (422, "invalid"), "{path}");
        }
    }
    let missing = buyer.posts("/api/buy", &[]).await;
    assert_eq!((missing.status, &*missing.code()), (422, "invalid"));
    assert_eq!(
        (
            buyer.buys("999999").await.status,
            &*buyer.buys("999999").await.code()
        ),
        (404, "not_found")
    );
    assert_eq!(buyer.asks("/api/sale?voucher_id=999999").await.status, 404);
    assert_eq!(buyer.asks("/api/order?order_id=999999").await.status, 404);
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_no_endpoint_says_so_in_json() {
    let site = Site::open().await;
    let visitor = site.visitor();
    for path in ["/api/nonsense", "/api/admin/nonsense", "/api/", "/api"] {
        let answer = visitor.asks(path).await;
        assert_eq!(
            (answer.status, &*answer.code()),
            (404, "not_found"),
            "{path}"
        );
    }
    let wrong = visitor.asks("/api/buy").await;
    assert_eq!((wrong.status, wrong.header("allow")), (405, "POST"));
    assert_eq!(wrong.code(), "invalid");
    assert_eq!(visitor.asks("/pkg/none/../../Cargo.toml").await.status, 404);
    assert_eq!(visitor.asks("/pkg/none/%2e%2e%2fcurrent").await.status, 404);
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_console_is_closed_to_strangers_and_buyers() {
    let site = Site::open().await;
    let (stranger, buyer, admin) = (site.visitor(), site.buyer().await, site.admin().await);
    for (method, path) in server::router::FOR_OPERATORS {
        let send = |who: crate::support::Visitor| {
            let method = method.clone();
            async move { who.sends(method, path, Bytes::new(), &[]).await }
        };
        let answer = send(stranger.clone()).await;
        assert_eq!(
            (answer.status, &*answer.code()),
            (401, "unauthenticated"),
            "{path}"
        );
        let answer = send(buyer.clone()).await;
        assert_eq!(
            (answer.status, &*answer.code()),
            (403, "forbidden"),
            "{path}"
        );
        let status = send(admin.clone()).await.status;
        assert!(
            matches!(status, 200 | 422),
            "{path} answers an admin {status}"
        );
    }
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_asked_to_sign_in() {
    let site = Site::open().await;
    let sale = site.open_sale(1).await;
    for answer in [
        site.visitor().buys(&sale).await,
        site.visitor().asks("/api/orders").await,
    ] {
        assert_eq!((answer.status, &*answer.code()), (401, "unauthenticated"));
    }
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_answer_has_an_id_and_closed_doors() {
    let site = Site::open().await;
    let visitor = site.visitor();
    for path in ["/", "/api/me", "/nonsense", "/livez", "/api/nonsense"] {
        let answer = visitor.asks(path).await;
        let id = answer.header("x-request-id");
        assert!(
            id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit()),
            "{path}: {id}"
        );
        assert_eq!(answer.header("x-content-type-options"), "nosniff", "{path}");
        assert_eq!(answer.header("x-frame-options"), "DENY", "{path}");
        // A page may stay in the browser that loaded it, for its back button; nothing else may.
        let page = !path.starts_with("/api") && path != "/livez";
        let kept = if page {
            "private, no-cache"
        } else {
            "no-store"
        };
        assert_eq!(answer.header("cache-control"), kept, "{path}");
        assert!(
            answer
                .header("content-security-policy")
                .contains("frame-ancestors 'none'"),
            "{path}"
        );
    }
    let stranger = visitor
        .sends(
            Method::GET,
            "/livez",
            Bytes::new(),
            &[("x-request-id", &"a".repeat(32))],
        )
        .await;
    assert_ne!(
        stranger.header("x-request-id"),
        "a".repeat(32),
        "a stranger does not name requests"
    );
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pages_scripts_carry_the_nonce_of_its_policy() {
    let site = Site::open().await;
    let answer = site.visitor().asks("/").await;
    assert_eq!(answer.status, 200);
    let policy = answer.header("content-security-policy");
    let nonce = policy
        .split("'nonce-")
        .nth(1)
        .and_then(|rest| rest.split('\'').next())
        .expect("the policy has a nonce");
    let html = String::from_utf8_lossy(&answer.body);
    for script in html
        .match_indices("<script")
        .map(|(at, _)| html[at..].split('>').next().unwrap())
    {
        assert!(script.contains(nonce), "{script} lacks {nonce}");
    }
    assert_ne!(
        site.visitor()
            .asks("/")
            .await
            .header("content-security-policy"),
        policy
    );
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_server_refuses_at_once_and_stays_healthy() {
    let site = Site::open_with(server::Role::Web, &["--max-concurrent=1"]).await;
    let visitors: Vec<_> = (0..40).map(|_| site.visitor()).collect();
    let work: Vec<_> = visitors
        .into_iter()
        .map(|visitor| async move {
            let form = [
                ("username", &*unique()),
                ("password", "correct horse battery"),
            ];
            visitor.posts("/api/register", &form).await
        })
        .collect();
    let answers = crate::support::all_at_once(40, work).await;
    assert!(answers.iter().any(|answer| answer.status == 200));
    let refused: Vec<_> = answers
        .iter()
        .filter(|answer| answer.status != 200)
        .collect();
    assert!(!refused.is_empty());
    for answer in refused {
        assert_eq!((answer.status, &*answer.code()), (503, "unavailable"));
        assert!(!answer.header("retry-after").is_empty());
    }
    assert_eq!(site.visitor().asks("/livez").await.status, 200);
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metrics_hold_every_promised_name() {
    let site = Site::open().await;
    let sale = site.open_sale(1).await;
    site.buyer().await.gets(&sale).await;
    site.persists(&sale, 1).await;
    crate::support::eventually("the snapshot has been taken", || async {
        String::from_utf8_lossy(&site.visitor().asks("/metrics").await.body)
            .contains("seckill_in_flight{")
    })
    .await;
    let text = String::from_utf8(site.visitor().asks("/metrics").await.body.to_vec()).unwrap();
    for name in [
        "seckill_admissions_total{outcome=\"admitted\"} 1",
        "seckill_admission_seconds_count 1",
        "seckill_orders_persisted_total 1",
        "seckill_confirm_seconds_count 1",
        "seckill_in_flight{lane=\"0\"}",
        "seckill_pending{lane=\"0\"}",
        "seckill_pending_oldest_seconds{lane=\"0\"}",
        "seckill_dead{lane=\"0\"}",
        "seckill_claims_total 0",
        "seckill_drift 0",
        "http_requests_total{route=\"/api/buy\",status=\"2xx\"} 1",
        "process_resident_memory_bytes",
        "process_open_fds",
    ] {
        assert!(text.contains(name), "{name} is missing in\n{text}");
    }
    site.closes().await;
}
