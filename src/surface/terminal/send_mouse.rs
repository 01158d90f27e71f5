//! `send_mouse`: clicks, moves and scrolls, where the program on the screen takes mouse events.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::core::keys::mouse::{MouseAction, MouseButton, MouseEvent};
use crate::core::policy::PermittedAct;
use crate::session::command::Content;
use crate::surface::argument::within;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::terminal::send_keys::Modifier;
use crate::surface::terminal::writing::{WriteOptions, write};
use crate::surface::tool::{Access, Answer, Tool};
use crate::wire::write::WriteResult;

/// The tool.
#[derive(Debug)]
pub struct SendMouse;

/// What the mouse does.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    Click,
    Press,
    Release,
    Move,
    ScrollUp,
    ScrollDown,
}

/// Which button.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Button {
    #[default]
    Left,
    Middle,
    Right,
}

/// The parameters of `send_mouse`.
#[derive(Debug, Deserialize, JsonSchema)]
pub struct Parameters {
    /// Id, prefix or name
    #[allow(dead_code)] // Read by the gateway, which settles the right to the session.
    session: Option<String>,
    action: Action,
    /// Screen row, from 0
    #[schemars(range(max = 999))]
    row: u16,
    /// Screen column, from 0
    #[schemars(range(max = 999))]
    col: u16,
    #[serde(default)]
    button: Button,
    #[serde(default)]
    modifiers: Vec<Modifier>,
    #[serde(flatten)]
    options: WriteOptions,
}

impl Tool for SendMouse {
    const NAME: &'static str = "send_mouse";
    const TITLE: &'static str = "Use the mouse";
    const DESCRIPTION: &'static str = "Sends a mouse event under your lease; not_supported unless \
        the program asked for the mouse.";
    const ACCESS: Access = Access::WriteSession(PermittedAct::Type);

    type Parameters = Parameters;
    type Result = WriteResult;

    async fn call(call: Call, parameters: Parameters) -> Result<Answer<WriteResult>, SurfaceError> {
        if let Some(target) = &call.target {
            let size = target.session.frame().size.value;
            within("row", parameters.row.into(), 0..=u64::from(size.rows - 1))?;
            within("col", parameters.col.into(), 0..=u64::from(size.cols - 1))?;
        }
        let event = parameters.event();
        write(call, Content::Mouse(event), parameters.options).await
    }
}

impl Parameters {
    fn event(&self) -> MouseEvent {
        let modifiers = Modifier::all_of(&self.modifiers);
        let action = match self.action {
            Action::Click => MouseAction::Click,
            Action::Press => MouseAction::Press,
            Action::Release => MouseAction::Release,
            Action::Move => MouseAction::Move,
            Action::ScrollUp => MouseAction::ScrollUp,
            Action::ScrollDown => MouseAction::ScrollDown,
        };
        let button = match self.button {
            Button::Left => MouseButton::Left,
            Button::Middle => MouseButton::Middle,
            Button::Right => MouseButton::Right,
        };
        MouseEvent { action, row: self.row, col: self.col, button, modifiers }
    }
}
