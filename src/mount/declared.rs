//! What a server declares to offer and to tell.

use serde_json::{Value, json};

/// The capabilities of servers that the protocol knows.
const CAPABILITIES: [&str; 6] =
    ["completions", "logging", "prompts", "resources", "tasks", "tools"];

/// What a server declared when it was greeted, of what the protocol knows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DeclaredCapabilities {
    names: Vec<&'static str>,
    news: Vec<ServerNews>,
}

/// What a server may tell by itself, beside changes of its tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ServerNews {
    /// Changes of the resources that it was asked about.
    Updates,
    /// Changes of its list of tools, which the older era tells unasked.
    Tools,
    /// Changes of its list of resources.
    Resources,
    /// Changes of its list of prompts.
    Prompts,
}

impl ServerNews {
    const ALL: [Self; 4] = [Self::Updates, Self::Tools, Self::Resources, Self::Prompts];

    /// The capability of a server, and the member of it that declares this.
    fn member(self) -> (&'static str, &'static str) {
        match self {
            Self::Updates => ("resources", "subscribe"),
            Self::Tools => ("tools", "listChanged"),
            Self::Resources => ("resources", "listChanged"),
            Self::Prompts => ("prompts", "listChanged"),
        }
    }
}

impl DeclaredCapabilities {
    /// Reads the `capabilities` of a greeting.
    pub fn of(capabilities: &Value) -> Self {
        let declares = |name: &&str| capabilities.get(*name).is_some_and(|it| !it.is_null());
        let tells = |news: &ServerNews| {
            let (capability, member) = news.member();
            capabilities.get(capability).and_then(|it| it.get(member)) == Some(&Value::Bool(true))
        };
        Self {
            names: CAPABILITIES.into_iter().filter(declares).collect(),
            news: ServerNews::ALL.into_iter().filter(tells).collect(),
        }
    }

    /// The same as a greeting has it, without what the protocol does not know.
    pub fn to_json(&self) -> Value {
        let mut capabilities = json!({});
        for name in &self.names {
            capabilities[name] = json!({});
        }
        for (capability, member) in self.news.iter().map(|news| news.member()) {
            capabilities[capability][member] = json!(true);
        }
        capabilities
    }

    /// The names of the capabilities.
    pub fn names(&self) -> &[&'static str] {
        &self.names
    }

    pub fn has(&self, name: &str) -> bool {
        self.names.contains(&name)
    }

    /// Whether the server declared to tell this.
    pub fn tells(&self, news: ServerNews) -> bool {
        self.news.contains(&news)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_protocol_knows_is_read_and_written_alike() {
        let said = json!({"tools": {"listChanged": false}, "prompts": {"listChanged": true},
            "resources": {"subscribe": true, "more": 1}, "logging": null, "experimental": {}});
        let declared = DeclaredCapabilities::of(&said);
        assert_eq!(declared.names(), ["prompts", "resources", "tools"]);
        assert!(declared.tells(ServerNews::Prompts) && declared.tells(ServerNews::Updates));
        assert!(!declared.tells(ServerNews::Tools) && !declared.tells(ServerNews::Resources));
        let written = json!({"prompts": {"listChanged": true}, "resources": {"subscribe": true},
            "tools": {}});
        assert_eq!(declared.to_json(), written);
        assert_eq!(DeclaredCapabilities::of(&written), declared);
        for malformed in [json!([]), json!(null), json!(1)] {
            assert_eq!(DeclaredCapabilities::of(&malformed), DeclaredCapabilities::default());
        }
    }
}
