//! The same audit after every contender: what clients were told against what the database holds.

use std::collections::{HashMap, HashSet};

use sqlx::PgPool;

use super::RoadError;

/// What the audit found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Found {
    pub(crate) rows: usize,
    /// Rows above the stock.
    pub(crate) oversold: usize,
    /// Rows of users who have one already.
    pub(crate) doubled: usize,
    /// Orders that a client was told of and that have no row.
    pub(crate) lost: usize,
}

/// Rows of a voucher, as (order, user).
pub(crate) async fn rows(
    pool: &PgPool,
    product: bool,
    voucher: i64,
) -> Result<Vec<(i64, i64)>, RoadError> {
    let statement = if product {
        "select order_id, user_id from voucher_order where voucher_id = $1 and state = 'confirmed'"
    } else {
        "select order_id, user_id from voucher_order where voucher_id = $1"
    };
    Ok(sqlx::query_as(statement)
        .bind(voucher)
        .fetch_all(pool)
        .await?)
}

/// Compares.
pub(crate) fn judge(rows: &[(i64, i64)], told: &HashSet<i64>, stock: usize) -> Found {
    let orders: HashSet<i64> = rows.iter().map(|(order, _)| *order).collect();
    Found {
        rows: rows.len(),
        oversold: rows.len().saturating_sub(stock),
        doubled: doubled(rows).values().sum(),
        lost: told.difference(&orders).count(),
    }
}

/// Users with more than one row, and how many more.
pub(crate) fn doubled(rows: &[(i64, i64)]) -> HashMap<i64, usize> {
    let mut of_user: HashMap<i64, usize> = HashMap::new();
    for (_, user) in rows {
        *of_user.entry(*user).or_default() += 1;
    }
    let more = of_user.into_iter().filter(|(_, rows)| *rows > 1);
    more.map(|(user, rows)| (user, rows - 1)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_fault_is_counted_and_a_clean_sale_has_none() {
        let clean = judge(&[(1, 10), (2, 11)], &HashSet::from([1, 2]), 2);
        assert_eq!(
            clean,
            Found {
                rows: 2,
                ..Found::default()
            }
        );
        let broken = judge(&[(1, 10), (2, 10), (3, 10)], &HashSet::from([1, 9]), 2);
        assert_eq!(
            broken,
            Found {
                rows: 3,
                oversold: 1,
                doubled: 2,
                lost: 1
            }
        );
    }
}
