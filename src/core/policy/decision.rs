//! Decisions: what the rules said of single calls, kept for those who ask why.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, OnceLock};

use uuid::Uuid;

use crate::core::caller::PrincipalName;
use crate::core::ids::{SessionId, TenantId};
use crate::core::policy::rules::RuleVerdict;

/// How many decisions are kept.
const DECISIONS_MAX: usize = 512;

/// The id of a decision: eight hexadecimal digits. It is a name and gives no right.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DecisionId(u32);

impl DecisionId {
    /// Makes an id of the first 32 bits of a random UUID.
    pub fn from_random(source: Uuid) -> Self {
        let [a, b, c, d, ..] = *source.as_bytes();
        Self(u32::from_be_bytes([a, b, c, d]))
    }
}

impl fmt::Display for DecisionId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:08x}", self.0)
    }
}

/// The error for a text that is not a decision's id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a decision has an id of eight hexadecimal digits")]
pub struct NotADecisionId;

impl FromStr for DecisionId {
    type Err = NotADecisionId;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let id = u32::from_str_radix(text, 16).map(Self).map_err(|_| NotADecisionId)?;
        // An id has one spelling.
        if id.to_string() == text { Ok(id) } else { Err(NotADecisionId) }
    }
}

/// What the rules said of one call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub id: DecisionId,
    pub by: PrincipalName,
    pub tenant: TenantId,
    pub session: Option<SessionId>,
    pub tool: Arc<str>,
    /// What the call does, for operators; empty for a call that passes, and for what may be a secret.
    pub what: OnceLock<Arc<str>>,
    pub verdict: RuleVerdict,
}

/// The last decisions of a daemon. Where there are too many, the tenant with the most gives up its oldest, so that none
/// drives out those of another.
#[derive(Debug, Default)]
pub struct DecisionLog {
    /// Of each tenant that has some, the oldest first.
    last: BTreeMap<TenantId, VecDeque<Arc<Decision>>>,
}

impl DecisionLog {
    /// Keeps a decision.
    pub fn add(&mut self, decision: Arc<Decision>) {
        self.last.entry(decision.tenant.clone()).or_default().push_back(decision);
        let kept: usize = self.last.values().map(VecDeque::len).sum();
        if kept > DECISIONS_MAX
            && let Some(most) = self.last.values_mut().max_by_key(|own| own.len())
        {
            most.pop_front();
        }
        self.last.retain(|_, own| !own.is_empty());
    }

    pub fn find(&self, id: DecisionId) -> Option<Arc<Decision>> {
        self.last.values().flatten().find(|decision| decision.id == id).cloned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::ids::PrincipalId;
    use crate::core::policy::rules::PolicyRules;
    use crate::core::policy::rules::facts::CallFacts;

    fn decision(number: u32) -> Arc<Decision> {
        decision_of(1, number)
    }

    fn decision_of(uid: u32, number: u32) -> Arc<Decision> {
        Arc::new(Decision {
            id: DecisionId(number),
            by: PrincipalName { label: "a".into(), principal: PrincipalId::Connection(1) },
            tenant: TenantId::of_uid(uid),
            session: None,
            tool: "run".into(),
            what: OnceLock::new(),
            verdict: PolicyRules::default().judge(&CallFacts::default()),
        })
    }

    #[test]
    fn an_id_reads_back_and_has_one_spelling() {
        let id = DecisionId(0xab);
        assert_eq!(id.to_string(), "000000ab");
        assert_eq!("000000ab".parse(), Ok(id));
        for text in ["ab", "000000AB", "+00000ab", "", "0000000ab"] {
            assert_eq!(text.parse::<DecisionId>(), Err(NotADecisionId), "{text}");
        }
    }

    #[test]
    fn the_oldest_decision_makes_room() {
        let mut log = DecisionLog::default();
        (0..=DECISIONS_MAX as u32).for_each(|number| log.add(decision(number)));
        assert_eq!(log.find(DecisionId(0)), None);
        assert_eq!(log.find(DecisionId(1)), Some(decision(1)));
        assert_eq!(log.find(DecisionId(DECISIONS_MAX as u32)).map(|it| it.id.0), Some(512));
    }

    #[test]
    fn no_tenant_drives_out_the_decisions_of_another() {
        let mut log = DecisionLog::default();
        log.add(decision_of(1, 0));
        (1..=2 * DECISIONS_MAX as u32).for_each(|number| log.add(decision_of(2, number)));
        assert_eq!(log.find(DecisionId(0)), Some(decision_of(1, 0)));
        // Of 512, the second one has 511.
        assert_eq!(log.find(DecisionId(513)), None);
        assert_eq!(log.find(DecisionId(514)), Some(decision_of(2, 514)));
    }
}
