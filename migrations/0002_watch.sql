-- What the running system says about itself, and what people did to it.

-- Set when Redis no longer holds the ended sale.
alter table voucher add column released boolean not null default false;

-- A round of the reconciler about one sale: written when it found or did something, and once
-- a minute for a sale that is in balance.
create table reconcile_report (
    report_id bigint generated always as identity primary key,
    at_ms bigint not null,
    voucher_id bigint not null references voucher,
    epoch bigint not null,
    -- Live rows in PostgreSQL, counted between two readings of the counters.
    rows_counted bigint not null,
    total bigint not null,
    remaining bigint not null,
    in_flight bigint not null,
    dead bigint not null,
    acked bigint not null,
    drift boolean not null,
    -- What was done: loaded, finished, applied, restored, closed; empty when nothing was.
    action text not null default ''
);
create index reconcile_report_of_voucher on reconcile_report (voucher_id, report_id desc);

-- Every act of an operator. Rows are only ever added.
create table audit_log (
    audit_id bigint generated always as identity primary key,
    at_ms bigint not null,
    user_id bigint not null references user_account,
    action text not null,
    -- What it was done to: a voucher, a dead letter, a user.
    subject text not null,
    detail text not null default ''
);
