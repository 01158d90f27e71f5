//! Unique names of the people at a session: the login name, with a number if it is taken.
//!
//! A name is for display and gives no right.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::core::ids::SessionId;

#[derive(Clone, Debug, Default)]
pub struct Names(Arc<Mutex<HashSet<Taken>>>);

type Taken = (SessionId, Arc<str>);

impl Names {
    /// Reserves a name at a session, such as `anna`, or `anna (2)` if `anna` is taken.
    pub fn call(&self, session: SessionId, login: &str) -> Name {
        let mut taken = self.lock();
        let mut number = 1_u32;
        loop {
            let label: Arc<str> = match number {
                1 => Arc::from(login),
                _ => Arc::from(format!("{login} ({number})")),
            };
            if taken.insert((session, Arc::clone(&label))) {
                return Name { names: self.clone(), session, label };
            }
            number += 1;
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashSet<Taken>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A name at a session, released on drop.
#[derive(Debug)]
pub struct Name {
    names: Names,
    session: SessionId,
    label: Arc<str>,
}

impl Name {
    pub fn label(&self) -> &Arc<str> {
        &self.label
    }
}

impl Drop for Name {
    fn drop(&mut self) {
        self.names.lock().remove(&(self.session, Arc::clone(&self.label)));
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;

    #[test]
    fn people_of_one_name_at_one_session_get_numbers() {
        let names = Names::default();
        let session = |number| SessionId::from_random(Uuid::from_u128(number));
        let (here, there) = (session(1 << 100 | 1), session(2 << 100 | 2));
        let first = names.call(here, "anna");
        let second = names.call(here, "anna");
        assert_eq!((&**first.label(), &**second.label()), ("anna", "anna (2)"));
        assert_eq!(&**names.call(there, "anna").label(), "anna");
        assert_eq!(&**names.call(here, "ben").label(), "ben");
        drop(first);
        assert_eq!(&**names.call(here, "anna").label(), "anna");
    }
}
