//! Operators' actions on sales. Roles are checked here, in the function: the menu only
//! hides what would be refused.

#![expect(
    clippy::too_many_arguments,
    reason = "a form's fields are the function's arguments"
)]
#![expect(
    missing_docs,
    reason = "`#[server]` makes a struct of the arguments that each function describes"
)]

use leptos::{
    prelude::server,
    server_fn::codec::{Json, PostUrl},
};

use super::{ApiError, sale::Sale};

/// Creates a voucher and loads its sale. For admins.
///
/// `begin` and `end` are RFC 3339 with an offset, or local times in `zone`.
#[server(prefix = "/api", endpoint = "admin/create_voucher", input = PostUrl, output = Json)]
pub async fn create_voucher(
    #[server(default)] title: String,
    #[server(default)] subtitle: String,
    #[server(default)] rules: String,
    #[server(default)] pay_cents: String,
    #[server(default)] value_cents: String,
    #[server(default)] stock: String,
    #[server(default)] begin: String,
    #[server(default)] end: String,
    #[server(default)] zone: Option<String>,
) -> Result<Sale, ApiError> {
    let zone = zone.unwrap_or_default();
    let form = seckill::VoucherForm {
        title: &title,
        subtitle: &subtitle,
        rules: &rules,
        pay_cents: &pay_cents,
        value_cents: &value_cents,
        stock: &stock,
        begin: &begin,
        end: &end,
        zone: &zone,
    };
    super::answered(
        ssr::create(&form).await,
        |sale| {
            format!(
                "{}?done=created&sale={}",
                crate::routes::ADMIN_SALES,
                sale.voucher_id
            )
        },
        |error| ssr::form_again(error, &form),
    )
}

/// Adds to a running sale's stock. For admins. A repeat with the same `request_id`
/// changes nothing.
#[server(prefix = "/api", endpoint = "admin/add_stock", input = PostUrl, output = Json)]
pub async fn add_stock(
    #[server(default)] voucher_id: String,
    #[server(default)] amount: String,
    #[server(default)] request_id: Option<String>,
) -> Result<Sale, ApiError> {
    ssr::shown(
        "stock_added",
        ssr::add_stock(&voucher_id, &amount, request_id.as_deref()).await,
    )
}

/// Stops a sale for now. For operators.
#[server(prefix = "/api", endpoint = "admin/pause_sale", input = PostUrl, output = Json)]
pub async fn pause_sale(#[server(default)] voucher_id: String) -> Result<Sale, ApiError> {
    ssr::shown("paused", ssr::change(ssr::Change::Pause, &voucher_id).await)
}

/// Lets a paused sale go on. For operators.
#[server(prefix = "/api", endpoint = "admin/resume_sale", input = PostUrl, output = Json)]
pub async fn resume_sale(#[server(default)] voucher_id: String) -> Result<Sale, ApiError> {
    ssr::shown(
        "resumed",
        ssr::change(ssr::Change::Resume, &voucher_id).await,
    )
}

/// Ends a sale for good. For admins.
#[server(prefix = "/api", endpoint = "admin/end_sale", input = PostUrl, output = Json)]
pub async fn end_sale(#[server(default)] voucher_id: String) -> Result<Sale, ApiError> {
    ssr::shown("ended", ssr::change(ssr::Change::End, &voucher_id).await)
}

#[cfg(feature = "ssr")]
mod ssr {
    use std::time::{SystemTime, UNIX_EPOCH};

    use seckill::{NewVoucher, Role, VoucherForm, ids::VoucherId};

    use super::Sale;
    use crate::{
        api::{ApiError, Code, answered, refusal_page},
        caller::{Caller, parse_id},
        routes::{ADMIN_SALES, escape},
    };

    /// How much of the rules travels back into a refused form: addresses have an end.
    const RULES_KEPT: usize = 1_000;

    #[derive(Clone, Copy)]
    pub(super) enum Change {
        Pause,
        Resume,
        End,
    }

    pub(super) async fn create(form: &VoucherForm<'_>) -> Result<Sale, ApiError> {
        let caller = Caller::from_context()?;
        let admin = caller.require_role(Role::Admin).await?;
        // "In the future" is judged by the clock that sales run on. A Redis that is away
        // does not stop an admin from preparing a sale: the reconciler loads it later.
        let now_ms = match caller.state.shop.clock(None).await {
            Ok(now_ms) => now_ms,
            Err(seckill::Error::Unavailable(_)) => wall_clock_ms(),
            Err(error) => return Err(error.into()),
        };
        let new = NewVoucher::parse(form, now_ms)?;
        let sale = caller.state.shop.create_voucher(admin.user_id, new).await?;
        Ok(Sale::shown(sale, true))
    }

    pub(super) async fn add_stock(
        voucher_id: &str,
        amount: &str,
        request_id: Option<&str>,
    ) -> Result<Sale, ApiError> {
        let caller = Caller::from_context()?;
        let admin = caller.require_role(Role::Admin).await?;
        let id: VoucherId = parse_id("voucher_id", voucher_id)?;
        let amount: i64 = amount
            .trim()
            .parse()
            .ok()
            .filter(|amount| *amount > 0)
            .ok_or_else(|| {
                ApiError::new(
                    Code::Invalid,
                    "amount must be a whole number greater than 0.",
                )
            })?;
        let request_id = request_id.map(str::trim).filter(|id| !id.is_empty());
        let sale = caller
            .state
            .shop
            .add_stock(admin.user_id, id, amount, request_id)
            .await?;
        Ok(Sale::shown(sale, true))
    }

    pub(super) async fn change(change: Change, voucher_id: &str) -> Result<Sale, ApiError> {
        let caller = Caller::from_context()?;
        let role = match change {
            Change::Pause | Change::Resume => Role::Operator,
            Change::End => Role::Admin,
        };
        let operator = caller.require_role(role).await?;
        let id: VoucherId = parse_id("voucher_id", voucher_id)?;
        let shop = &caller.state.shop;
        let sale = match change {
            Change::Pause => shop.pause(operator.user_id, id).await?,
            Change::Resume => shop.resume(operator.user_id, id).await?,
            Change::End => shop.end(operator.user_id, id).await?,
        };
        // Operators decide about the sale: they see what there is.
        Ok(Sale::shown(sale, true))
    }

    /// Back to the list, with what was done or why not.
    pub(super) fn shown(done: &str, result: Result<Sale, ApiError>) -> Result<Sale, ApiError> {
        answered(
            result,
            |sale| format!("{ADMIN_SALES}?done={done}&sale={}", sale.voucher_id),
            |error| refusal_page(error, ADMIN_SALES),
        )
    }

    /// The form again with what was entered. The page parses the values once more and so
    /// finds the same complaint: no text of an address is ever shown as ours.
    pub(super) fn form_again(error: &ApiError, form: &VoucherForm<'_>) -> String {
        let mut page = refusal_page(error, ADMIN_SALES);
        if error.code == Code::Invalid {
            // Cut rules could be saved without anybody noticing: they go whole or not at all.
            let fits = form.rules.chars().count() <= RULES_KEPT;
            let rules = if fits { form.rules } else { "" };
            if !fits {
                page.push_str("&cut=rules");
            }
            for (name, value) in [
                ("title", form.title),
                ("subtitle", form.subtitle),
                ("rules", rules),
                ("pay_cents", form.pay_cents),
                ("value_cents", form.value_cents),
                ("stock", form.stock),
                ("begin", form.begin),
                ("end", form.end),
                ("zone", form.zone),
            ] {
                let value: String = value.chars().take(RULES_KEPT).collect();
                page.push_str(&format!("&{name}={}", escape(&value)));
            }
        }
        page
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "stands in for Redis' clock while Redis is away"
    )]
    fn wall_clock_ms() -> i64 {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .ok()
            .and_then(|age| i64::try_from(age.as_millis()).ok())
            .unwrap_or_default()
    }
}
