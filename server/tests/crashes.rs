//! Workers that die or stop while orders are on their way.

use server::Role;

use crate::support::{Process, Site, eventually};

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_workers_orders_are_persisted_once_by_the_next() {
    let site = Site::open_with(Role::Web, &[]).await;
    let mut worker = Process::starts("worker", &loud(&site));
    let sale = site.open_sale_by(&mut worker, 50).await;
    // The worker reads the entries and then waits inside its transaction.
    let held = site.database.held(&sale).await;
    let buyers = site.buyers(50).await;
    for buyer in &buyers {
        buyer.gets(&sale).await;
    }
    eventually("a batch is being written", || {
        site.database.somebody_waits()
    })
    .await;
    worker.dies().await;
    held.rollback().await.unwrap();
    assert!(site.under_way().await > 0);

    let next = Process::starts("worker", &loud(&site));
    site.persists(&sale, 50).await;
    assert_eq!(site.database.distinct_buyers(&sale).await, 50);
    assert_eq!(next.stops().await, 0);
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_told_to_stop_leaves_nothing_pending() {
    let site = Site::open_with(Role::Web, &[]).await;
    let mut worker = Process::starts("worker", &loud(&site));
    let sale = site.open_sale_by(&mut worker, 300).await;
    let buyers = site.buyers(300).await;
    let load = tokio::spawn({
        let sale = sale.clone();
        async move {
            for buyer in buyers {
                buyer.gets(&sale).await;
            }
        }
    });
    eventually("orders are being persisted", || async {
        site.rows(&sale).await > 20
    })
    .await;
    assert_eq!(worker.stops().await, 0);
    let pending: u64 = site
        .shop
        .overview()
        .await
        .lanes
        .iter()
        .map(|lane| lane.pending)
        .sum();
    assert_eq!(
        pending, 0,
        "what was delivered was finished and acknowledged"
    );
    load.await.unwrap();

    let next = Process::starts("worker", &loud(&site));
    site.persists(&sale, 300).await;
    assert_eq!(next.stops().await, 0);
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_requests_id_reaches_the_log_of_the_consumer() {
    let site = Site::open_with(Role::Web, &[]).await;
    let mut worker = Process::starts("worker", &loud(&site));
    let sale = site.open_sale_by(&mut worker, 1).await;
    let answer = site.buyer().await.buys(&sale).await;
    let line = worker.says("an order was persisted").await;
    assert!(line.contains(answer.header("x-request-id")), "{line}");
    assert!(line.contains(&answer.text("order_id")), "{line}");
    assert_eq!(worker.stops().await, 0);
    site.closes().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_under_way_is_answered_before_the_process_ends() {
    let site = Site::open().await;
    let sale = site.open_sale(1).await;
    let mut web = Process::starts("web", &loud(&site));
    let address = web.address().await;
    let admin = site.admin().await.at(address);
    let held = site.database.held(&sale).await;
    let asked = tokio::spawn({
        let sale = sale.clone();
        async move {
            let form = [("voucher_id", &*sale), ("amount", "5")];
            admin.posts("/api/admin/add_stock", &form).await
        }
    });
    eventually("the request waits for the sale", || {
        site.database.somebody_waits()
    })
    .await;
    let ends = tokio::spawn(web.stops());
    eventually("nobody is let in any more", || async {
        tokio::net::TcpStream::connect(address).await.is_err()
    })
    .await;
    held.rollback().await.unwrap();
    assert_eq!(asked.await.unwrap().status, 200);
    assert_eq!(ends.await.unwrap(), 0);
    assert_eq!(site.stock(&sale).await, 6);
    site.closes().await;
}

fn loud(site: &Site) -> Vec<String> {
    let mut flags = site.flags();
    flags.retain(|flag| !flag.starts_with("--log"));
    flags.push("--log=info,server=debug".into());
    flags
}

impl Site {
    /// Waits for a worker that is another process, then opens a sale.
    async fn open_sale_by(&self, worker: &mut Process, stock: u32) -> String {
        worker.says("a consumer is reading").await;
        self.open_sale(stock).await
    }
}
