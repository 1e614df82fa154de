//! Clients that leave at a random moment of their request.

use std::time::Duration;

use bench::load::Buyer;
use futures::{StreamExt, stream};
use tokio::{io::AsyncWriteExt, net::TcpStream};

use crate::{
    stand::{Stand, figures, scaled},
    support::eventually,
};

/// How many leave at a time.
const AT_ONCE: usize = 16;
/// The longest that one stays.
const LONGEST_MICROS: u64 = 20_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_aborted_requests_leave_no_transaction_open() {
    let stand = Stand::new().await;
    let (web, worker) = (stand.web().await, stand.worker(&[]).await);
    let (times, added) = (scaled(1_000) as usize, 100);
    let buyers = times / 2;
    let crowd = stand.crowd(u32::try_from(buyers).unwrap()).await;
    let sale = stand.sale(u32::try_from(buyers).unwrap()).await;
    let operator = stand.operator(&web).await.cookie().unwrap();
    let address = ([127, 0, 0, 1], web.port).into();
    let aborted = stream::iter(0..times).for_each_concurrent(AT_ONCE, |i| {
        let (stand, operator, buyer) = (&stand, &*operator, &crowd[i / 2]);
        async move {
            match i % 10 {
                0 | 2 | 4 | 6 | 8 => purchase(stand, address, sale, buyer).await,
                1 | 3 => leaves(address, &get("/", operator)).await,
                5 => leaves(address, &get(&format!("/sales/{sale}"), operator)).await,
                7 => leaves(address, &get("/admin", operator)).await,
                _ => {
                    let name = format!("abort-{}", i / 10 % added);
                    leaves(address, &add_stock(sale.get(), &name, operator)).await;
                }
            }
        }
    });
    aborted.await;
    eventually("no connection is left inside a transaction", || async {
        idle_in_transaction(&stand, Duration::ZERO).await == 0
    })
    .await;
    // Who left asks again: the order that was decided, if one was, is the one that is told.
    stand.buy(&web, sale, &crowd, 16).await;
    let visitor = stand.operator(&web).await;
    for i in 0..added {
        let (id, name) = (sale.to_string(), format!("abort-{i}"));
        let form = [
            ("voucher_id", &*id),
            ("amount", "1"),
            ("request_id", &*name),
        ];
        let answer = visitor.posts("/api/admin/add_stock", &form).await;
        assert_eq!(answer.status, 200, "{answer:?}");
    }
    stand.drains().await;
    assert_eq!(
        idle_in_transaction(&stand, Duration::from_millis(500)).await,
        0
    );
    let total = stand.shop.sale(sale).await.unwrap().total;
    assert_eq!(
        total,
        i64::try_from(buyers + added).unwrap(),
        "each unit was added once"
    );
    stand.audit().await;
    assert_eq!(stand.rows(sale).await, i64::try_from(buyers).unwrap());
    figures(
        "client aborts",
        &format!(
            "{times} purchases, pages and admin requests cut off within {} ms: 0 connections in a transaction, {buyers} orders, 0 lost, 0 doubled",
            LONGEST_MICROS / 1_000
        ),
    );
    assert_eq!(web.process.stops().await, 0);
    assert_eq!(worker.stops().await, 0);
    stand.closes().await;
}

async fn purchase(
    stand: &Stand,
    address: std::net::SocketAddr,
    sale: seckill::VoucherId,
    buyer: &Buyer,
) {
    let mut pen = stand.ledger.pen(sale);
    let attempt = pen.sent(buyer.user).unwrap();
    let cookie = buyer.cookie.to_str().unwrap();
    leaves(
        address,
        &post("/api/buy", &format!("voucher_id={sale}"), cookie),
    )
    .await;
    pen.lost(attempt, buyer.user, "left");
    pen.flush().unwrap();
}

/// Sends a request and closes the connection a moment later, without reading.
async fn leaves(address: std::net::SocketAddr, request: &str) {
    let mut stream = TcpStream::connect(address).await.unwrap();
    // Some leave before the request is whole.
    let whole = rand::random_ratio(9, 10);
    let sent = if whole {
        request.len()
    } else {
        rand::random_range(0..request.len())
    };
    stream.write_all(&request.as_bytes()[..sent]).await.unwrap();
    tokio::time::sleep(Duration::from_micros(rand::random_range(0..LONGEST_MICROS))).await;
}

fn get(path: &str, cookie: &str) -> String {
    format!("GET {path} HTTP/1.1\r\nhost: shop.test\r\ncookie: {cookie}\r\n\r\n")
}

fn post(path: &str, form: &str, cookie: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nhost: shop.test\r\ncookie: {cookie}\r\naccept: application/json\r\ncontent-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n{form}",
        form.len()
    )
}

fn add_stock(sale: i64, name: &str, cookie: &str) -> String {
    let form = format!("voucher_id={sale}&amount=1&request_id={name}");
    post("/api/admin/add_stock", &form, cookie)
}

/// Connections that have been inside a transaction without working for this long.
async fn idle_in_transaction(stand: &Stand, longer: Duration) -> i64 {
    sqlx::query_scalar(
        "select count(*) from pg_stat_activity
         where datname = current_database() and state like 'idle in transaction%'
           and state_change <= now() - make_interval(secs => $1)",
    )
    .bind(longer.as_secs_f64())
    .fetch_one(&stand.pool)
    .await
    .unwrap()
}
