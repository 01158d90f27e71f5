//! The person in front of a client, who can be asked about the call that the client makes.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

/// What the person says about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PersonAnswer {
    Granted,
    Denied,
    /// Nobody answered, or the client cannot ask.
    Nothing,
}

/// Asks the person in front of a client while its call waits.
pub trait AsksPerson: fmt::Debug + Send + Sync {
    /// Asks with this text. Dropping the future takes the question back.
    fn ask(&self, question: String) -> Pin<Box<dyn Future<Output = PersonAnswer> + Send + '_>>;
}

/// How the person in front of a call's client is asked.
#[derive(Clone, Debug, Default)]
pub enum ClientPerson {
    /// The client cannot ask.
    #[default]
    Absent,
    /// The client asks while its call waits.
    Present(Arc<dyn AsksPerson>),
    /// The client asks when its call has ended with the question, and makes the call again with the answer.
    Later(Option<ReturnedAnswer>),
}

/// An answer that a client brings back.
#[derive(Clone, Debug)]
pub struct ReturnedAnswer {
    /// What the question came with, as the client says.
    pub state: String,
    pub answer: PersonAnswer,
}

/// A question that a client is to ask.
#[derive(Clone, Debug)]
pub struct PersonQuestion {
    pub text: String,
    /// What the client brings back with the answer.
    pub state: String,
}
