//! Plain forms of a browser without scripts: each ends on the page that shows what came of it.

use http::Method;

use crate::support::{PASSWORD, Site, unique};

#[tokio::test(flavor = "multi_thread")]
async fn a_purchase_by_form_ends_on_the_orders_page() {
    let site = Site::open().await;
    let sale = site.open_sale(1).await;
    let buyer = site.buyer().await;
    let page = format!("/sales/{sale}");
    let answer = buyer
        .submits(&page, "/api/buy", &[("voucher_id", &sale)])
        .await;
    assert_eq!(answer.status, 303, "{answer:?}");
    let order = answer
        .header("location")
        .strip_prefix("/orders/")
        .expect("the order's page")
        .to_owned();
    assert!(["queued", "confirmed"].contains(&&*buyer.order_state(&order).await));
    assert!(answer.header("x-seckill-page").is_empty());

    let late = site
        .buyer()
        .await
        .submits(&page, "/api/buy", &[("voucher_id", &sale)])
        .await;
    assert_eq!(late.status, 303);
    assert!(
        late.header("location").starts_with(&page),
        "{}",
        late.header("location")
    );
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stranger_is_led_to_the_log_in_and_back() {
    let site = Site::open().await;
    let sale = site.open_sale(1).await;
    let page = format!("/sales/{sale}");
    let visitor = site.visitor();
    let answer = visitor
        .submits(&page, "/api/buy", &[("voucher_id", &sale)])
        .await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, &*format!("/login?next={page}"))
    );

    let name = unique();
    let form = [
        ("username", &*name),
        ("password", PASSWORD),
        ("next", &*page),
    ];
    let answer = visitor.submits("/register", "/api/register", &form).await;
    assert_eq!((answer.status, answer.header("location")), (303, &*page));
    assert!(
        visitor.cookie().is_some(),
        "the redirect carries the cookie"
    );
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_never_leads_to_another_site() {
    let site = Site::open().await;
    for next in [
        "https://evil.example/",
        "//evil.example",
        "/\\evil.example",
        "/\t/evil.example",
    ] {
        let form = [
            ("username", &*unique()),
            ("password", PASSWORD),
            ("next", next),
        ];
        let answer = site
            .visitor()
            .submits("/register", "/api/register", &form)
            .await;
        assert_eq!(
            (answer.status, answer.header("location")),
            (303, "/"),
            "{next:?}"
        );
    }
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_form_with_a_mistake_comes_back_with_its_code() {
    let site = Site::open().await;
    let answer = site
        .visitor()
        .submits(
            "/login",
            "/api/login",
            &[("username", "nobody"), ("password", "x")],
        )
        .await;
    assert_eq!(answer.status, 303);
    let location = answer.header("location");
    assert!(
        location.starts_with("/login?") && location.contains("error=unauthenticated"),
        "{location}"
    );

    let body = bytes::Bytes::from(vec![b'x'; 70_000]);
    let headers = [("accept", "text/html"), ("sec-fetch-site", "same-origin")];
    let answer = site
        .visitor()
        .sends(Method::POST, "/api/login", body, &headers)
        .await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (303, "/problem?code=too_large")
    );
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn programs_get_json_and_no_hint_for_forms() {
    let site = Site::open().await;
    let sale = site.open_sale(1).await;
    let answer = site.buyer().await.buys(&sale).await;
    assert_eq!((answer.status, answer.header("x-seckill-page")), (200, ""));
    assert_eq!(answer.header("content-type"), "application/json");
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_or_a_form_that_cannot_be_read_is_answered_with_a_page() {
    let site = Site::open().await;
    let visitor = site.buyer().await;
    for path in ["/sales/%ff", "/orders/%ff", "/sales/999999"] {
        let answer = visitor.asks(path).await;
        assert_eq!(answer.status, 404, "{path}: {answer:?}");
        let kind = answer.header("content-type");
        assert!(kind.starts_with("text/html"), "{path}: {kind}");
    }
    let overlong = "x".repeat(3_000_000);
    let answer = visitor
        .submits("/", "/preferences", &[("lang", &overlong)])
        .await;
    assert_eq!(answer.status, 422, "{answer:?}");
    let kind = answer.header("content-type");
    assert!(kind.starts_with("text/html"), "{kind}");
    site.closes().await;
}
