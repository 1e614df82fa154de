//! The operators' texts.

/// The console.
pub(crate) struct ConsoleWords {
    pub(crate) title: &'static str,
    pub(crate) nav: &'static str,
    pub(crate) overview: &'static str,
    pub(crate) sales: &'static str,
    pub(crate) queue: &'static str,
    pub(crate) pending: &'static str,
    pub(crate) dead_letters: &'static str,
    pub(crate) reports: &'static str,
    pub(crate) audit_log: &'static str,
    pub(crate) overview_lead: &'static str,
    pub(crate) queue_lead: &'static str,
    pub(crate) pending_lead: &'static str,
    pub(crate) dead_lead: &'static str,
    pub(crate) panel: PanelWords,
    pub(crate) sale: ConsoleSaleWords,
    pub(crate) dead: DeadWords,
    pub(crate) report: ReportWords,
    pub(crate) audit: AuditWords,
    pub(crate) alarm: AlarmWords,
}

/// What the live panels say; copied into their properties.
pub(crate) struct PanelWords {
    pub(crate) as_of: &'static str,
    pub(crate) pause: &'static str,
    pub(crate) resume: &'static str,
    pub(crate) stale: &'static str,
    pub(crate) answers: &'static str,
    pub(crate) away: &'static str,
    pub(crate) unknown: &'static str,
    pub(crate) lanes: &'static str,
    pub(crate) workers: &'static str,
    pub(crate) sales: &'static str,
    pub(crate) lane: &'static str,
    pub(crate) stream_length: &'static str,
    pub(crate) lag: &'static str,
    pub(crate) in_flight: &'static str,
    pub(crate) pending: &'static str,
    pub(crate) dead: &'static str,
    pub(crate) oldest_pending: &'static str,
    pub(crate) worker: &'static str,
    pub(crate) idle: &'static str,
    pub(crate) alive: &'static str,
    pub(crate) gone: &'static str,
    pub(crate) voucher: &'static str,
    pub(crate) state: &'static str,
    pub(crate) total: &'static str,
    pub(crate) left: &'static str,
    pub(crate) confirmed: &'static str,
    pub(crate) conservation: &'static str,
    pub(crate) balanced: &'static str,
    pub(crate) drift: &'static str,
    pub(crate) entry: &'static str,
    pub(crate) order: &'static str,
    pub(crate) user: &'static str,
    pub(crate) deliveries: &'static str,
    pub(crate) no_lanes: &'static str,
    pub(crate) no_workers: &'static str,
    pub(crate) no_sales: &'static str,
    pub(crate) no_pending: &'static str,
    pub(crate) more: &'static str,
    pub(crate) first: &'static str,
    pub(crate) no_more: &'static str,
    pub(crate) filter_lane: &'static str,
    pub(crate) filter: &'static str,
    pub(crate) everything: &'static str,
}

/// Sales as an operator handles them.
pub(crate) struct ConsoleSaleWords {
    pub(crate) loaded: &'static str,
    pub(crate) yes: &'static str,
    pub(crate) no: &'static str,
    pub(crate) window: &'static str,
    pub(crate) price: &'static str,
    pub(crate) actions: &'static str,
    pub(crate) manage: &'static str,
    pub(crate) pause: &'static str,
    pub(crate) pause_hint: &'static str,
    pub(crate) resume: &'static str,
    pub(crate) resume_hint: &'static str,
    pub(crate) add_stock: &'static str,
    pub(crate) amount: &'static str,
    pub(crate) end: &'static str,
    pub(crate) end_hint: &'static str,
    pub(crate) end_confirm: &'static str,
    pub(crate) empty: &'static str,
    pub(crate) new_title: &'static str,
    pub(crate) new_lead: &'static str,
    pub(crate) title: &'static str,
    pub(crate) subtitle: &'static str,
    pub(crate) rules: &'static str,
    /// Beside the empty field, when what was entered is too long to travel in an address.
    pub(crate) rules_left_out: &'static str,
    pub(crate) pay_cents: &'static str,
    pub(crate) value_cents: &'static str,
    pub(crate) cents_hint: &'static str,
    pub(crate) stock: &'static str,
    pub(crate) begin: &'static str,
    pub(crate) end_time: &'static str,
    pub(crate) zone: &'static str,
    pub(crate) zone_hint: &'static str,
    pub(crate) create: &'static str,
    pub(crate) not_created: &'static str,
    pub(crate) not_done: &'static str,
    pub(crate) done_created: &'static str,
    pub(crate) done_paused: &'static str,
    pub(crate) done_resumed: &'static str,
    pub(crate) done_stock: &'static str,
    pub(crate) done_ended: &'static str,
    pub(crate) paused_by: fn(&str) -> String,
    pub(crate) came_back_drift: &'static str,
    pub(crate) came_back_lost: &'static str,
    pub(crate) came_back_behind: &'static str,
    pub(crate) look_then_resume: &'static str,
    pub(crate) not_loaded: &'static str,
}

/// Dead letters.
pub(crate) struct DeadWords {
    pub(crate) reason: &'static str,
    pub(crate) at: &'static str,
    pub(crate) payload: &'static str,
    pub(crate) replay: &'static str,
    pub(crate) replay_hint: &'static str,
    pub(crate) discard: &'static str,
    pub(crate) discard_hint: &'static str,
    pub(crate) discard_confirm: &'static str,
    pub(crate) settle: &'static str,
    pub(crate) empty: &'static str,
    pub(crate) done_replayed: &'static str,
    pub(crate) done_discarded: &'static str,
    pub(crate) done_confirmed: &'static str,
    pub(crate) done_removed: &'static str,
}

/// The reconciler's reports.
pub(crate) struct ReportWords {
    pub(crate) lead: &'static str,
    pub(crate) at: &'static str,
    pub(crate) verdict: &'static str,
    pub(crate) action: &'static str,
    pub(crate) rows: &'static str,
    pub(crate) epoch: &'static str,
    pub(crate) empty: &'static str,
    pub(crate) empty_voucher: &'static str,
    /// What was done, and what that means: loaded, finished, applied, closed.
    pub(crate) actions: [(&'static str, &'static str); 4],
}

impl ReportWords {
    /// The words for an action, if it is one that has any.
    pub(crate) fn action_named(&self, name: &str) -> Option<(&'static str, &'static str)> {
        let names = ["loaded", "finished", "applied", "closed"];
        word_of(name, names, self.actions)
    }
}

/// The audit log.
pub(crate) struct AuditWords {
    pub(crate) lead: &'static str,
    pub(crate) at: &'static str,
    pub(crate) who: &'static str,
    pub(crate) what: &'static str,
    pub(crate) subject: &'static str,
    pub(crate) detail: &'static str,
    pub(crate) dead_letter: &'static str,
    pub(crate) units: fn(&str) -> String,
    pub(crate) empty: &'static str,
    /// create, stock, pause, resume, end, replay, discard
    pub(crate) actions: [&'static str; 7],
    /// requested, replayed, discarded, confirmed, removed
    pub(crate) results: [&'static str; 5],
}

impl AuditWords {
    /// The word for an action, if it has one.
    pub(crate) fn action_named(&self, name: &str) -> Option<&'static str> {
        let names = [
            "create", "stock", "pause", "resume", "end", "replay", "discard",
        ];
        word_of(name, names, self.actions)
    }

    /// The word for the way a dead letter was settled, if it has one.
    pub(crate) fn result_named(&self, name: &str) -> Option<&'static str> {
        let names = ["requested", "replayed", "discarded", "confirmed", "removed"];
        word_of(name, names, self.results)
    }
}

/// What nobody may overlook.
pub(crate) struct AlarmWords {
    pub(crate) title: &'static str,
    pub(crate) accepted: &'static str,
    pub(crate) accepted_nothing: &'static str,
    pub(crate) not_selling: &'static str,
    pub(crate) behind: fn(u64) -> String,
}

fn word_of<T: Copy, const N: usize>(name: &str, names: [&str; N], words: [T; N]) -> Option<T> {
    let index = names.iter().position(|known| *known == name)?;
    words.get(index).copied()
}
