-- The record of the shop: who may sign in, what is sold, how it was changed, and
-- every order in its terminal state. Times are milliseconds since the Unix epoch,
-- as they are over HTTP and in Redis, so that no conversion can round them.

create table user_account (
    user_id bigint generated always as identity primary key,
    username text not null,
    -- The username folded for comparison: two accounts never differ in case only.
    username_key text not null,
    -- Null: nobody can log in with a password (buyers made for load tests).
    password_hash text,
    role text not null default 'buyer',
    created_at timestamptz not null default now(),
    constraint user_account_username_key unique (username_key),
    constraint user_account_role check (role in ('buyer', 'viewer', 'operator', 'admin'))
);

create table voucher (
    voucher_id bigint generated always as identity primary key,
    -- The lane whose keys and stream serve this voucher; it never changes.
    lane integer not null,
    title text not null,
    subtitle text not null,
    rules text not null,
    pay_cents bigint not null,
    value_cents bigint not null,
    total bigint not null,
    -- total minus live orders: the last fence against an oversell.
    stock bigint not null,
    begin_ms bigint not null,
    end_ms bigint not null,
    -- The newest load attempt, and the last one that was completed (0: never).
    epoch bigint not null default 0,
    loaded_epoch bigint not null default 0,
    -- The newest change in voucher_change.
    rev bigint not null default 0,
    paused boolean not null default false,
    created_by bigint references user_account,
    created_at timestamptz not null default now(),
    constraint voucher_lane check (lane >= 0),
    constraint voucher_price check (pay_cents >= 0 and value_cents > 0),
    constraint voucher_total check (total > 0),
    constraint voucher_stock check (stock >= 0),
    -- An operator may end a sale before it has begun.
    constraint voucher_window check (end_ms > begin_ms or rev > 0)
);

-- Every change of a running sale, applied to Redis strictly in the order of rev.
create table voucher_change (
    voucher_id bigint not null references voucher,
    rev bigint not null,
    kind text not null,
    -- stock: the units added; end: the new end in milliseconds; otherwise 0.
    value bigint not null default 0,
    -- What the caller named its request, so that a repeat changes nothing.
    request_id text,
    changed_by bigint references user_account,
    changed_at timestamptz not null default now(),
    primary key (voucher_id, rev),
    constraint voucher_change_request unique (voucher_id, request_id),
    constraint voucher_change_kind check (kind in ('stock', 'pause', 'resume', 'end'))
);

create table voucher_order (
    order_id bigint primary key,
    user_id bigint not null references user_account,
    voucher_id bigint not null references voucher,
    state text not null,
    reason text,
    admitted_ms bigint not null,
    -- When the row was written.
    settled_ms bigint not null,
    traceparent text not null default '',
    constraint voucher_order_state check (state in ('confirmed', 'failed')),
    constraint voucher_order_id check (order_id > 0)
);

-- One live order per user and voucher; a failed order is not live.
create unique index voucher_order_one_per_user on voucher_order (voucher_id, user_id) where state = 'confirmed';
create index voucher_order_of_user on voucher_order (user_id, order_id desc);
