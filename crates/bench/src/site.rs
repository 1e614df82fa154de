//! The site under test: a running one, or one of this run's own that goes when the run ends.
//!
//! Everything that a person would do over the web is done over HTTP here too: the administrator
//! signs in and creates the sale; only accounts are made with the server's own commands.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use fred::prelude::{Builder, Client, ClientLike, Config, KeysInterface};
use futures::TryStreamExt;
use http::{HeaderValue, header};
use seckill::UserId;
use serde::Deserialize;
use tokio::task::JoinSet;

use crate::admin::{self, Admin, refused, sent, told};
use crate::args::{Place, Stores};
use crate::client::{Call, Connection, Lost, Origin};
use crate::load::Buyer;
use crate::server::{Binary, Server, ServerError};
use crate::sql;

/// Connections over which buyers are asked who they are.
const ASKING: usize = 32;

/// Why the site is not ready for a run.
#[derive(Debug, thiserror::Error)]
pub enum SiteError {
    /// The run's folder can't be made.
    #[error("{0}: {1}")]
    Folder(PathBuf, #[source] std::io::Error),
    /// Its own database can't be made.
    #[error("PostgreSQL: {0}")]
    Sql(#[from] sqlx::Error),
    /// The binary failed.
    #[error(transparent)]
    Server(#[from] ServerError),
    /// A call had no answer.
    #[error("{0}: {1}")]
    Lost(&'static str, #[source] Lost),
    /// A call was refused, or its answer can't be read.
    #[error("{what} was answered with {status}: {said}")]
    Refused {
        /// Which call.
        what: &'static str,
        /// The status.
        status: u16,
        /// The beginning of the body.
        said: String,
    },
    /// The administrator's name and password.
    #[error("the administrator has to be given as name:password")]
    Admin,
    /// Redis could not be asked.
    #[error("Redis: {0}")]
    Redis(#[source] fred::error::Error),
    /// It is somebody else's.
    #[error("this measures a server of its own; leave --address out")]
    NotOwn,
    /// The sale did not open.
    #[error("the sale is still {0} after {n} s", n = admin::OPEN.as_secs())]
    NotOpen(String),
}

/// A site to be loaded.
pub struct Site {
    /// Where it is.
    pub origin: Origin,
    /// Its stores.
    pub stores: Stores,
    /// Where the run's files go.
    pub folder: PathBuf,
    binary: Binary,
    own: Option<Own>,
}

/// What has to be cleared away.
struct Own {
    server: Option<Server>,
    /// Whether there is anything to remove.
    made: bool,
    /// The database, and the URL of another by which it is dropped.
    database: (String, String),
    keep: bool,
}

#[derive(Deserialize)]
struct Me {
    user_id: UserId,
}

impl Site {
    /// The site that the options name, or one to be started. Nothing is made yet but a folder.
    ///
    /// # Errors
    /// When the folder can't be made.
    pub fn of(place: &Place) -> Result<Self, SiteError> {
        let name = format!("seckill_bench_{:016x}", rand::random::<u64>());
        let folder = std::env::temp_dir().join(&name);
        std::fs::create_dir_all(&folder)
            .map_err(|error| SiteError::Folder(folder.clone(), error))?;
        let (path, mut stores) = (place.server_bin.as_deref(), place.stores.clone());
        if let Some(origin) = &place.address {
            let (origin, binary) = (origin.clone(), Binary::new(path, &stores, false));
            return Ok(Self {
                origin,
                binary,
                stores,
                folder,
                own: None,
            });
        }
        let given = std::mem::replace(
            &mut stores.database_url,
            sql::database_url(&place.stores.database_url, &name),
        );
        stores.prefix.clone_from(&name);
        let own = Own {
            server: None,
            made: false,
            database: (given, name),
            keep: place.keep,
        };
        let (origin, binary) = (Origin::nowhere(), Binary::new(path, &stores, true));
        Ok(Self {
            origin,
            binary,
            stores,
            folder,
            own: Some(own),
        })
    }

    /// Makes the database and starts the server, unless a running one was named.
    ///
    /// # Errors
    /// When that is not possible; [`Site::close`] clears away what was made of it.
    pub async fn start(&mut self) -> Result<(), SiteError> {
        let Some(own) = &mut self.own else {
            return Ok(());
        };
        let (url, name) = &own.database;
        // Set first: an interruption must not leave the database behind.
        own.made = true;
        if let Err(error) = sql::database_create(url, name).await {
            own.made = false;
            return Err(error.into());
        }
        self.binary.run("migrate", &[], "").await?;
        let server = self.binary.serve(&self.folder.join("server.log")).await?;
        self.origin = server.origin.clone();
        own.server = Some(server);
        Ok(())
    }

    /// Starts the run's own server anew, with these settings.
    ///
    /// # Errors
    /// When it can't be started, or the server is none of this run's.
    pub async fn restart(&mut self, settings: &[(&str, &str)]) -> Result<(), SiteError> {
        let Some(own) = &mut self.own else {
            return Err(SiteError::NotOwn);
        };
        if let Some(server) = own.server.take() {
            server.stop().await;
        }
        self.binary.set(settings);
        let server = self.binary.serve(&self.folder.join("server.log")).await?;
        self.origin = server.origin.clone();
        own.server = Some(server);
        Ok(())
    }

    /// Bytes of memory that the run's own server holds now.
    ///
    /// # Errors
    /// When the system does not tell, or the server is none of this run's.
    pub fn memory(&self) -> Result<u64, SiteError> {
        let server = self.own.as_ref().and_then(|own| own.server.as_ref());
        let id = server.and_then(Server::id).ok_or(SiteError::NotOwn)?;
        let path = PathBuf::from(format!("/proc/{id}/status"));
        let text = std::fs::read_to_string(&path)
            .map_err(|error| SiteError::Folder(path.clone(), error))?;
        let held = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes: Option<u64> =
            held.and_then(|held| held.split_whitespace().next()?.parse().ok());
        kilobytes.map(|kb| kb * 1_024).ok_or(SiteError::NotOwn)
    }

    /// Ends what was started and removes what was made, unless it is to be kept; tells what is left.
    pub async fn close(mut self) -> Option<String> {
        let own = self.own.take()?;
        if let Some(server) = own.server {
            server.stop().await;
        }
        let (url, name) = &own.database;
        if !own.made {
            return None;
        }
        if own.keep {
            return Some(format!(
                "kept: database {name}, prefix {}",
                self.stores.prefix
            ));
        }
        let dropped = sql::database_drop(url, name)
            .await
            .map_err(|error| error.to_string());
        let cleared = clear(&self.stores).await.map_err(|error| error.to_string());
        let faults: Vec<String> = [dropped, cleared]
            .into_iter()
            .filter_map(Result::err)
            .collect();
        (!faults.is_empty()).then(|| {
            format!(
                "not everything of {name} could be removed: {}",
                faults.join("; ")
            )
        })
    }

    /// Signs in the administrator that was named, or one made for this run.
    ///
    /// # Errors
    /// When it can't be made or the site does not take it.
    pub async fn admin(&self, named: Option<&str>) -> Result<Admin, SiteError> {
        let (name, password) = match named.filter(|_| self.own.is_none()) {
            Some(text) => {
                let (name, password) = text.split_once(':').ok_or(SiteError::Admin)?;
                (name.to_owned(), password.to_owned())
            }
            None => {
                let name = format!("bench_{:08x}", rand::random::<u32>());
                let password = format!("{:032x}", rand::random::<u128>());
                self.binary.run("create-admin", &[&name], &password).await?;
                (name, password)
            }
        };
        let mut connection = Connection::to(&self.origin);
        let call = Call::post(
            "/api/login",
            &[("username", &name), ("password", &password)],
        );
        let answer = sent(&mut connection, "/api/login", &call).await?;
        let session = answer
            .headers
            .get(header::SET_COOKIE)
            .and_then(|set| set.to_str().ok()?.split(';').next());
        let cookie = session.and_then(|text| HeaderValue::from_str(text).ok());
        let cookie = cookie.ok_or_else(|| refused("/api/login", &answer))?;
        Ok(Admin { connection, cookie })
    }

    /// Makes signed-in buyers.
    ///
    /// # Errors
    /// When the binary can't make them or the site does not know them: it uses other stores then.
    pub async fn buyers(&self, count: u32) -> Result<Arc<[Buyer]>, SiteError> {
        let printed = self
            .binary
            .run("create-buyers", &["--count", &count.to_string()], "")
            .await?;
        let cookies: Arc<[HeaderValue]> = printed
            .lines()
            .filter_map(|line| HeaderValue::from_str(line.trim()).ok())
            .collect();
        let next = Arc::new(AtomicUsize::new(0));
        let mut asking = JoinSet::new();
        for _ in 0..ASKING {
            asking.spawn(who(
                self.origin.clone(),
                Arc::clone(&cookies),
                Arc::clone(&next),
            ));
        }
        let mut buyers = Vec::with_capacity(cookies.len());
        while let Some(asked) = asking.join_next().await {
            buyers.extend(asked.expect("asking does not panic")?);
        }
        // The same order in every run with the same accounts.
        buyers.sort_unstable_by_key(|buyer: &Buyer| buyer.user);
        Ok(buyers.into())
    }
}

/// Asks whose sessions these are, taking turns with the others.
async fn who(
    origin: Origin,
    cookies: Arc<[HeaderValue]>,
    next: Arc<AtomicUsize>,
) -> Result<Vec<Buyer>, SiteError> {
    let (mut connection, me) = (Connection::to(&origin), Call::get("/api/me"));
    let mut buyers = Vec::new();
    while let Some(cookie) = cookies.get(next.fetch_add(1, Ordering::Relaxed)) {
        let Me { user_id } = told(&mut connection, "/api/me", &me.by(cookie)).await?;
        buyers.push(Buyer {
            user: user_id,
            cookie: cookie.clone(),
        });
    }
    Ok(buyers)
}

/// Removes every key under the run's own prefix.
async fn clear(stores: &Stores) -> Result<(), fred::error::Error> {
    let client = Builder::from_config(Config::from_url(&stores.redis_url)?).build()?;
    client.init().await?;
    let pattern = format!("{}:*", stores.prefix);
    let removed = if client.is_clustered() {
        remove(
            &client,
            client.scan_cluster_buffered(pattern, Some(1_000), None),
        )
        .await
    } else {
        remove(&client, client.scan_buffered(pattern, Some(1_000), None)).await
    };
    client.quit().await?;
    removed
}

async fn remove(
    client: &Client,
    keys: impl futures::Stream<Item = Result<fred::types::Key, fred::error::Error>>,
) -> Result<(), fred::error::Error> {
    // One at a time: on a cluster keys of one command must share a slot, and a run has few.
    keys.try_for_each(|key| async move { client.unlink::<(), _>(key).await })
        .await
}

/// The ledger's file: the one that was named, or one in the run's folder.
pub fn ledger_path(named: Option<&Path>, folder: &Path) -> PathBuf {
    named.map_or_else(|| folder.join("ledger.jsonl"), Path::to_owned)
}
