//! Accounts and sessions: register, log in, log out, who am I.

#![expect(
    missing_docs,
    reason = "`#[server]` makes a struct of the arguments that each function describes"
)]

use leptos::{
    prelude::server,
    server_fn::codec::{GetUrl, Json, PostUrl},
};
use serde::{Deserialize, Serialize};

use super::ApiError;

/// An account as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct User {
    /// The account's id.
    pub user_id: String,
    /// The name it signs in with.
    pub username: String,
    /// `buyer`, `viewer`, `operator` or `admin`.
    pub role: String,
}

#[cfg(feature = "ssr")]
impl From<seckill::User> for User {
    fn from(user: seckill::User) -> Self {
        Self {
            user_id: user.user_id.to_string(),
            username: user.username,
            role: user.role.as_str().to_owned(),
        }
    }
}

/// Makes an account, a buyer's, and signs it in.
#[server(prefix = "/api", endpoint = "register", input = PostUrl, output = Json)]
pub async fn register(
    #[server(default)] username: String,
    #[server(default)] password: String,
    #[server(default)] next: Option<String>,
) -> Result<User, ApiError> {
    let next = crate::next::or_home(next.as_deref()).to_owned();
    super::answered(
        ssr::register(&username, &password).await,
        |_| next.clone(),
        |error| ssr::form_again(crate::routes::register(&next), error, &username),
    )
}

/// Signs in. Every try is counted before the password is looked at, per account and
/// address and per address, so that guessing is slow and nobody else is locked out.
#[server(prefix = "/api", endpoint = "login", input = PostUrl, output = Json)]
pub async fn login(
    #[server(default)] username: String,
    #[server(default)] password: String,
    #[server(default)] next: Option<String>,
) -> Result<User, ApiError> {
    let next = crate::next::or_home(next.as_deref()).to_owned();
    super::answered(
        ssr::login(&username, &password).await,
        |_| next.clone(),
        |error| ssr::form_again(crate::routes::login(&next), error, &username),
    )
}

/// Signs out.
#[server(prefix = "/api", endpoint = "logout", input = PostUrl, output = Json)]
pub async fn logout() -> Result<(), ApiError> {
    super::answered(
        ssr::logout().await,
        |()| crate::routes::HOME.to_owned(),
        |error| crate::routes::problem(error.code.as_str()),
    )
}

/// The signed-in user, or `null`.
#[server(prefix = "/api", endpoint = "me", input = GetUrl, output = Json)]
pub async fn me() -> Result<Option<User>, ApiError> {
    ssr::me().await
}

#[cfg(feature = "ssr")]
mod ssr {
    use seckill::Login;

    use super::User;
    use crate::{
        api::{ApiError, Code, respond},
        caller::Caller,
        routes::escape,
    };

    pub(super) async fn register(username: &str, password: &str) -> Result<User, ApiError> {
        let caller = Caller::from_context()?;
        let shop = &caller.state.shop;
        let made = shop
            .register_from(caller.address, username, password)
            .await?;
        enter(&caller, made).await
    }

    pub(super) async fn login(username: &str, password: &str) -> Result<User, ApiError> {
        let caller = Caller::from_context()?;
        let shop = &caller.state.shop;
        let checked = shop.login(caller.address, username, password).await?;
        enter(&caller, checked).await
    }

    /// Signs in whom the domain lets in.
    async fn enter(caller: &Caller, answer: Login) -> Result<User, ApiError> {
        match answer {
            Login::Welcome(user) => {
                caller.sign_in(&user).await?;
                tracing::info!(user = %user.user_id, "signed in");
                Ok(user.into())
            }
            // One answer for an unknown name and a wrong password.
            Login::Wrong => Err(ApiError::new(
                Code::Unauthenticated,
                "The name or the password is not right.",
            )),
            Login::Wait { ms } => {
                respond::retry_after_ms(ms);
                Err(ApiError::new(
                    Code::TooMany,
                    "Too many tries. Wait a little before the next.",
                ))
            }
        }
    }

    pub(super) async fn logout() -> Result<(), ApiError> {
        Caller::from_context()?.sign_out().await
    }

    pub(super) async fn me() -> Result<Option<User>, ApiError> {
        let caller = Caller::from_context()?;
        match caller.user().await? {
            Some(user) => Ok(caller.state.shop.user(user.user_id).await?.map(User::from)),
            None => Ok(None),
        }
    }

    /// The form's page again, with what went wrong and the name that was entered.
    pub(super) fn form_again(page: String, error: &ApiError, username: &str) -> String {
        let name: String = username.chars().take(64).collect();
        format!(
            "{page}&error={}&username={}",
            error.code.as_str(),
            escape(&name)
        )
    }
}
