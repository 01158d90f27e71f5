//! What of a command line is not known, in words.

/// A part of a command line whose effect is not known before it runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum UnknownPart {
    #[error("it is not valid shell syntax")]
    Syntax,
    #[error("it is too long")]
    Length,
    #[error("it has too many brackets, loops and conditions, or lines inside of lines")]
    Nesting,
    #[error("it has control characters")]
    ControlCharacter,
    #[error("the shell may replace a part by its history, or not take `#` for a comment")]
    History,
    #[error("the name of a program is computed")]
    Program,
    #[error("it has arithmetic, patterns or expansions that are not followed")]
    Expansion,
    #[error("it defines a function")]
    Definition,
    #[error("a builtin may change the shell, or evaluate its arguments")]
    Builtin,
    #[error("it evaluates text that is not known")]
    Evaluation,
    #[error("a program runs others in a way that is not followed")]
    Wrapper,
    #[error("it runs a file of commands in the shell")]
    Sourced,
    #[error("a shell or interpreter reads its commands from another input than the terminal")]
    ShellInput,
    #[error("an interpreter reads a program from a here-document")]
    Foreign,
    #[error("it sets a variable that may change which programs run")]
    Variable,
    #[error("it sets a configuration that may change which programs run")]
    Configuration,
    #[error("a program takes it that is not known to be a shell")]
    OtherProgram,
    #[error("a shell of another syntax may read it in another way")]
    OtherShell,
    #[error("it is typed in a way, or behind something, that is not known")]
    Typing,
    #[error("what takes it shows nothing of it")]
    Unshown,
}

impl UnknownPart {
    /// Whether a command may be hidden in it. What a file or another language says is none of the line's commands.
    pub fn hides_commands(self) -> bool {
        match self {
            Self::Sourced | Self::Foreign | Self::Unshown => false,
            Self::Syntax
            | Self::Length
            | Self::Nesting
            | Self::ControlCharacter
            | Self::History
            | Self::Program
            | Self::Expansion
            | Self::Definition
            | Self::Builtin
            | Self::Evaluation
            | Self::Wrapper
            | Self::ShellInput
            | Self::Variable
            | Self::Configuration
            | Self::OtherProgram
            | Self::OtherShell
            | Self::Typing => true,
        }
    }

    /// The word for it, stable over releases.
    pub fn code(self) -> &'static str {
        match self {
            Self::Syntax => "syntax",
            Self::Length => "length",
            Self::Nesting => "nesting",
            Self::ControlCharacter => "control_character",
            Self::History => "history",
            Self::Program => "program",
            Self::Expansion => "expansion",
            Self::Definition => "definition",
            Self::Builtin => "builtin",
            Self::Evaluation => "evaluation",
            Self::Wrapper => "wrapper",
            Self::Sourced => "sourced",
            Self::ShellInput => "shell_input",
            Self::Foreign => "foreign",
            Self::Variable => "variable",
            Self::Configuration => "configuration",
            Self::OtherProgram => "other_program",
            Self::OtherShell => "other_shell",
            Self::Typing => "typing",
            Self::Unshown => "unshown",
        }
    }
}
