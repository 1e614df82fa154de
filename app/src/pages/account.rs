//! Sign in and register: plain forms.

use axum::response::{IntoResponse, Redirect, Response};
use http::StatusCode;
use leptos::prelude::*;

use super::{
    shell::{Head, notice, page},
    visit::Visit,
};
use crate::{api::Code, next, routes};

/// Which of the two forms.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Login,
    Register,
}

/// `GET /login`
pub async fn login(visit: Visit) -> Response {
    view_of(&visit, Form::Login)
}

/// `GET /register`
pub async fn register(visit: Visit) -> Response {
    view_of(&visit, Form::Register)
}

fn view_of(visit: &Visit, form: Form) -> Response {
    let next = next::or_home(visit.query("next"));
    // Who is signed in already has nothing to do here.
    if visit.signed_in().is_some() {
        return Redirect::to(next).into_response();
    }
    let words = &visit.words.account;
    let (title, lead, action, other, other_label, password_kind) = match form {
        Form::Login => (
            words.login_title,
            words.login_lead,
            "/api/login",
            routes::register(next),
            words.to_register,
            "current-password",
        ),
        Form::Register => (
            words.register_title,
            words.register_lead,
            "/api/register",
            routes::login(next),
            words.to_login,
            "new-password",
        ),
    };
    let code = visit.query("error").and_then(Code::parse);
    let message = code.map(|code| match (form, code) {
        (Form::Login, Code::Unauthenticated | Code::Invalid) => words.wrong,
        (Form::Register, Code::Conflict) => words.taken,
        (Form::Register, Code::Invalid) => words.invalid,
        (_, code) => visit.words.problem.of(code).1,
    });
    page(visit, StatusCode::OK, Head::plain(title), || {
        let hints = (form == Form::Register).then_some((words.username_hint, words.password_hint));
        let username = visit.query("username").unwrap_or_default().to_owned();
        view! {
            <div class="form-page">
                <h1>{title}</h1>
                <p class="lead">{lead}</p>
                {message.map(|message| notice("bad", "warning", message))}
                <form method="post" action=action class="form">
                    <input type="hidden" name="next" value=next.to_owned()/>
                    <div class="field">
                        <label for="username">{words.username}</label>
                        <input id="username" name="username" value=username required=true maxlength="32"
                            autocomplete="username" autocapitalize="none" spellcheck="false"
                            aria-describedby=hints.map(|_| "username-hint")/>
                        {hints.map(|(hint, _)| view! { <p class="hint" id="username-hint">{hint}</p> })}
                    </div>
                    <div class="field">
                        <label for="password">{words.password}</label>
                        <input id="password" name="password" type="password" required=true
                            minlength=hints.map(|_| "8") maxlength="128" autocomplete=password_kind
                            aria-describedby=hints.map(|_| "password-hint")/>
                        {hints.map(|(_, hint)| view! { <p class="hint" id="password-hint">{hint}</p> })}
                    </div>
                    <button type="submit" class="button primary wide">{title}</button>
                </form>
                <p class="center"><a href=other>{other_label}</a></p>
            </div>
        }
    })
}
