//! Whether Redis and PostgreSQL can keep the promise: what they would lose, they must not.

use std::collections::HashMap;

use fred::clients::{Client, WithOptions};
use fred::interfaces::{ClientLike, ConfigInterface};
use fred::types::{InfoKind, Value};
use sqlx::Row;

use crate::redis::{list, text};
use crate::{Error, Shop};

/// Something that makes the ground unsafe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    /// One sentence.
    pub what: String,
    /// False: the server forbids asking, so that it can't be verified.
    pub verifiable: bool,
}

impl Finding {
    fn unsafe_because(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            verifiable: true,
        }
    }

    fn unknown(what: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            verifiable: false,
        }
    }
}

impl Shop {
    /// Everything that makes Redis or PostgreSQL unsafe; nothing when both can keep the promise.
    ///
    /// # Errors
    /// `Unavailable` when one of them can't be asked now.
    pub async fn ground(&self) -> Result<Vec<Finding>, Error> {
        let mut findings = self.redis_ground().await?;
        findings.extend(self.postgres_ground().await?);
        Ok(findings)
    }

    /// What makes Redis unsafe; of a cluster, what makes any of its masters so.
    ///
    /// # Errors
    /// `Unavailable` when it can't be asked now.
    pub async fn redis_ground(&self) -> Result<Vec<Finding>, Error> {
        let mut findings: Vec<Finding> = Vec::new();
        for server in self.redis().servers()? {
            for finding in server_ground(&server).await? {
                if !findings.contains(&finding) {
                    findings.push(finding);
                }
            }
        }
        Ok(findings)
    }

    async fn postgres_ground(&self) -> Result<Vec<Finding>, Error> {
        let mut findings = Vec::new();
        let row = sqlx::query(
            "select current_setting('fsync') as fsync, current_setting('synchronous_commit') as synchronous_commit",
        )
        .fetch_one(self.pool())
        .await?;
        for name in ["fsync", "synchronous_commit"] {
            let value: String = row.try_get(name)?;
            if value == "off" {
                findings.push(Finding::unsafe_because(format!(
                    "PostgreSQL: {name} must not be off"
                )));
            }
        }
        Ok(findings)
    }
}

/// What makes one Redis server unsafe.
async fn server_ground(client: &WithOptions<Client>) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    match client.info::<String>(None::<InfoKind>).await {
        Ok(info) => findings.extend(judge_info(&info)),
        Err(error) if is_forbidden(&error) => {
            findings.push(Finding::unknown(
                "cannot verify Redis' version and role: INFO is forbidden",
            ));
        }
        Err(error) => return Err(error.into()),
    }
    let wanted = [
        ("appendonly", "yes"),
        ("appendfsync", "always"),
        ("no-appendfsync-on-rewrite", "no"),
        ("maxmemory-policy", "noeviction"),
    ];
    for (name, right) in wanted {
        match client.config_get::<Value, _>(name).await {
            Ok(reply) => {
                let parts = match reply {
                    Value::Map(map) => map.inner().into_values().collect(),
                    other => list(other)?,
                };
                let value = parts.last().map(text).unwrap_or_default();
                if value != right {
                    findings.push(Finding::unsafe_because(format!(
                        "Redis: {name} must be {right}, it is {value:?}"
                    )));
                }
            }
            Err(error) if is_forbidden(&error) => {
                findings.push(Finding::unknown(format!(
                    "cannot verify Redis' {name}: CONFIG GET is forbidden"
                )));
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(findings)
}

fn judge_info(info: &str) -> Vec<Finding> {
    let fields: HashMap<&str, &str> = info
        .lines()
        .filter_map(|line| line.trim().split_once(':'))
        .collect();
    let mut findings = Vec::new();
    match fields.get("redis_version") {
        Some(version) => {
            let major: u32 = version
                .split('.')
                .next()
                .and_then(|n| n.parse().ok())
                .unwrap_or(0);
            if major < 7 {
                findings.push(Finding::unsafe_because(format!(
                    "Redis: version 7.0 or later is needed, it is {version}"
                )));
            }
        }
        None => findings.push(Finding::unknown("cannot verify Redis' version")),
    }
    match fields.get("role") {
        Some(&"master") => {}
        Some(role) => findings.push(Finding::unsafe_because(format!(
            "Redis: it must not be a replica, its role is {role}"
        ))),
        None => findings.push(Finding::unknown("cannot verify Redis' role")),
    }
    findings
}

fn is_forbidden(error: &fred::error::Error) -> bool {
    let words = error.details();
    words.starts_with("NOPERM") || words.contains("unknown command")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_old_redis_and_a_replica_are_refused() {
        assert_eq!(judge_info("redis_version:7.0.15\r\nrole:master\r\n"), []);
        assert_eq!(judge_info("redis_version:6.2.0\r\nrole:slave\r\n").len(), 2);
        assert!(judge_info("").iter().all(|finding| !finding.verifiable));
    }
}
