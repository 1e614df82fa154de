//! How a panel of the console keeps its figures fresh.

use leptos::{
    prelude::{GetUntracked, Set},
    server_fn::ServerFn,
};
use serde::de::DeserializeOwned;

use super::{
    http::{self, Failure},
    is_visible, sleep,
};
use crate::{
    api::{ApiError, Code},
    islands::Refresh,
};

/// How often a panel asks again. The server answers from a snapshot.
const EVERY_MS: i32 = 2_000;

/// Asks again and again while somebody looks and wants it; ends with the session.
pub(crate) async fn poll<F>(
    fields: Vec<(&'static str, String)>,
    refresh: Refresh,
    show: impl Fn(F::Output),
) where
    F: ServerFn<Error = ApiError>,
    F::Output: DeserializeOwned,
{
    loop {
        sleep(EVERY_MS).await;
        if refresh.paused.get_untracked() || !is_visible() {
            continue;
        }
        let fields: Vec<_> = fields
            .iter()
            .map(|(name, value)| (*name, value.as_str()))
            .collect();
        match http::get_all::<F>(&fields).await {
            Ok(fresh) => {
                refresh.stale.set(false);
                show(fresh);
            }
            Err(failure) => {
                refresh.stale.set(true);
                match failure {
                    Failure::Wait(_, wait) => sleep(wait).await,
                    Failure::Refused(error, _)
                        if matches!(error.code, Code::Unauthenticated | Code::Forbidden) =>
                    {
                        return;
                    }
                    Failure::Network | Failure::Unreadable | Failure::Refused(..) => {}
                }
            }
        }
    }
}
