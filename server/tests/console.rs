//! What the console says about the past, and about what needs somebody.

use fred::prelude::*;

use crate::support::{
    Database, Process, Site, Visitor, eventually, flags_for, free_port, redis_that_forgets, unique,
};

const REPORTS: &str = "/api/admin/reports";
const AUDIT: &str = "/api/admin/audit";

#[tokio::test(flavor = "multi_thread")]
async fn reports_and_audit_are_for_viewers_and_up() {
    let site = Site::open().await;
    let (stranger, buyer, admin) = (site.visitor(), site.buyer().await, site.admin().await);
    for path in [REPORTS, AUDIT] {
        let answer = stranger.asks(path).await;
        assert_eq!((answer.status, &*answer.code()), (401, "unauthenticated"));
        let answer = buyer.asks(path).await;
        assert_eq!((answer.status, &*answer.code()), (403, "forbidden"));
        assert_eq!(admin.asks(path).await.status, 200, "{path} for an admin");
    }
    let viewer = site.visitor();
    let name = viewer.registers().await;
    site.database.gives_role(&name, "viewer").await;
    for path in [REPORTS, AUDIT, "/admin/reports", "/admin/audit"] {
        assert_eq!(viewer.asks(path).await.status, 200, "{path} for a viewer");
    }
    for path in [
        "/api/admin/reports?voucher_id=x",
        "/api/admin/reports?after=x",
        "/api/admin/audit?after=x",
        "/api/admin/audit?limit=0",
    ] {
        let answer = viewer.asks(path).await;
        assert_eq!((answer.status, &*answer.code()), (422, "invalid"), "{path}");
    }
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_audit_log_holds_what_an_admin_did_page_by_page() {
    let site = Site::open().await;
    let admin = site.admin().await;
    let sale = site.open_sale(5).await;
    let subject = format!("voucher {sale}");
    for action in ["pause_sale", "resume_sale"] {
        let path = format!("/api/admin/{action}");
        assert_eq!(
            admin.posts(&path, &[("voucher_id", &sale)]).await.status,
            200
        );
    }
    let (mut seen, mut after) = (Vec::new(), String::new());
    loop {
        let page = admin
            .asks(&format!("{AUDIT}?limit=1&after={after}"))
            .await
            .json();
        for entry in page["items"].as_array().unwrap() {
            assert_eq!(entry["subject"], *subject);
            assert!(entry["audit_id"].is_string() && entry["user_id"].is_string());
            seen.push(entry["action"].as_str().unwrap().to_owned());
        }
        match page["next"].as_str() {
            Some(next) => after = next.to_owned(),
            None => break,
        }
    }
    assert_eq!(seen, ["resume", "pause", "create"]);
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_paused_sale_says_who_paused_it() {
    let site = Site::open().await;
    let sale = site.open_sale(5).await;
    let admin = site.visitor();
    let name = admin.registers().await;
    site.database.gives_role(&name, "admin").await;
    let answer = admin
        .posts("/api/admin/pause_sale", &[("voucher_id", &sale)])
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let page = text_of(&admin, "/admin/sales").await;
    assert!(page.contains(&format!("Paused by {name}")), "{page}");
    assert!(!page.contains("then resume"), "{page}");
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sale_that_drifted_says_so_until_it_is_resumed() {
    let site = Site::open().await;
    let (sale, admin) = (site.open_sale(5).await, site.admin().await);
    let redis = site.redis().await;
    let key = site.key(&format!("sale:{sale}"));
    let _: i64 = redis.hincrby(&key, "stock", 1).await.unwrap();
    eventually("the drift closes the sale", || async {
        site.state(&sale).await == "paused"
    })
    .await;
    // It is closed at once, and says why when it is loaded anew.
    eventually("the console says why", || async {
        let page = text_of(&admin, "/admin/sales").await;
        page.contains("(drift)") && page.contains("then resume")
    })
    .await;

    let reports = admin
        .asks(&format!("{REPORTS}?voucher_id={sale}"))
        .await
        .json();
    let closed = reports["items"]
        .as_array()
        .unwrap()
        .iter()
        .find(|report| report["action"] == "closed")
        .unwrap_or_else(|| panic!("no report of the drift: {reports}"));
    assert_eq!(
        (&closed["drift"], &closed["left"], &closed["total"]),
        (&true.into(), &6.into(), &5.into())
    );
    assert_eq!(closed["voucher_id"], *sale);
    let other = admin.asks(&format!("{REPORTS}?voucher_id=999999")).await;
    assert_eq!(other.json()["items"].as_array().map(Vec::len), Some(0));
    let page = text_of(&admin, &format!("/admin/reports?voucher_id={sale}")).await;
    assert!(page.contains("Closed"), "{page}");

    let answer = admin
        .posts("/api/admin/resume_sale", &[("voucher_id", &sale)])
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let answer = admin
        .posts("/api/admin/pause_sale", &[("voucher_id", &sale)])
        .await;
    assert_eq!(answer.status, 200, "{answer:?}");
    let page = text_of(&admin, "/admin/sales").await;
    assert!(
        page.contains("Paused by ") && !page.contains("(drift)"),
        "{page}"
    );
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sale_that_redis_lost_says_so() {
    let site = Site::open().await;
    let (sale, admin) = (site.open_sale(5).await, site.admin().await);
    let redis = site.redis().await;
    let _: i64 = redis.del(site.key(&format!("sale:{sale}"))).await.unwrap();
    eventually("the sale comes back paused", || async {
        let page = text_of(&admin, "/admin/sales").await;
        site.state(&sale).await == "paused" && page.contains("after a loss")
    })
    .await;
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unsafe_ground_that_is_accepted_is_named_on_every_page_of_the_console() {
    let database = Database::create().await;
    let port = free_port();
    let mut redis = redis_that_forgets(port).await;
    let url = format!("redis://127.0.0.1:{port}/0");
    let mut flags = flags_for(&database.url, &url, &unique());
    flags.push("--unsafe".into());
    flags.push("--log=info".into());
    flags.retain(|flag| flag != "--log=warn");
    assert_eq!(Process::starts("migrate", &flags).exit_code().await, 0);
    let mut site = Process::starts("serve", &flags);
    let visitor = Visitor::new(site.address().await);
    eventually("the site is ready", || async {
        visitor.asks("/readyz").await.status == 200
    })
    .await;
    let name = visitor.registers().await;
    assert!(!text_of(&visitor, "/").await.contains("SECKILL_UNSAFE"));
    database.gives_role(&name, "admin").await;
    for path in [
        "/admin",
        "/admin/sales",
        "/admin/queue",
        "/admin/pending",
        "/admin/dead-letters",
        "/admin/reports",
        "/admin/audit",
    ] {
        let page = text_of(&visitor, path).await;
        assert!(
            page.contains("SECKILL_UNSAFE is set") && page.contains("appendonly must be yes"),
            "{path}: {page}"
        );
    }
    assert_eq!(site.stops().await, 0);
    redis.kill().await.unwrap();
    database.remove().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_safe_console_shows_no_alarm() {
    let site = Site::open().await;
    let page = text_of(&site.admin().await, "/admin").await;
    assert!(!page.contains("data-testid=\"alarms\""), "{page}");
    site.closes().await;
}

async fn text_of(visitor: &Visitor, path: &str) -> String {
    let answer = visitor.asks(path).await;
    assert_eq!(answer.status, 200, "{path}");
    String::from_utf8(answer.body.to_vec()).unwrap()
}
