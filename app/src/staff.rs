//! Who was seen to be staff, so that any page can link to the console without asking PostgreSQL.
//!
//! It decides nothing: the console looks the role up itself, each time.

use std::{
    collections::HashSet,
    sync::{Arc, PoisonError, RwLock},
};

use seckill::{Role, User, ids::UserId};

/// The accounts that may use the console, as this process last saw them: as many as there are
/// operators. Cloning copies a pointer.
#[derive(Clone, Debug, Default)]
pub struct Staff(Arc<RwLock<HashSet<UserId>>>);

impl Staff {
    /// Remembers, or forgets, what was just read of `user`.
    pub(crate) fn saw(&self, user: &User) {
        let may = user.role != Role::Buyer;
        // A buyer's page takes no turn at writing.
        if may == self.has(user.user_id) {
            return;
        }
        let mut known = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if may {
            known.insert(user.user_id);
        } else {
            known.remove(&user.user_id);
        }
    }

    /// Whether `user` was staff when last looked up.
    pub(crate) fn has(&self, user: UserId) -> bool {
        let known = self.0.read().unwrap_or_else(PoisonError::into_inner);
        known.contains(&user)
    }
}
