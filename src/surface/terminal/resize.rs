//! `resize`: changes the size of a terminal.

use schemars::JsonSchema;
use serde::Deserialize;

use crate::core::policy::PermittedAct;
use crate::session::command::ResizeOrder;
use crate::surface::call::Call;
use crate::surface::error::SurfaceError;
use crate::surface::terminal::create_session::size;
use crate::surface::terminal::writing::presented;
use crate::surface::tool::{Answer, Tool, ToolAccess};
use crate::wire::session::Resized;

#[derive(Debug, Deserialize, JsonSchema)]
pub struct Resize {
    /// Id, prefix or name
    #[allow(dead_code)] // Read by the gateway, which settles the right to the session.
    session: Option<String>,
    cols: u64,
    rows: u64,
    /// Default: the lease you hold
    lease_id: Option<String>,
}

impl Tool for Resize {
    const NAME: &'static str = "resize";
    const TITLE: &'static str = "Resize the terminal";
    const DESCRIPTION: &'static str = "Changes rows and columns under your lease; other columns give \
        the screen's rows new numbers.";
    const ACCESS: ToolAccess = ToolAccess::WriteSession(PermittedAct::Resize);
    const IDEMPOTENT: bool = true;

    type Result = Resized;

    async fn call(self, mut call: Call) -> Result<Answer<Resized>, SurfaceError> {
        let target = call.take_target()?;
        let size = size(self.rows, self.cols, call.cells_max())?;
        call.touched(&target.session);
        let order = ResizeOrder {
            caller: call.standing.caller.clone(),
            presented: presented(&call, &target.session, self.lease_id.as_deref())?,
            take: call.take_rule(),
            size,
            dry_run: false,
        };
        let watermark = target.session.resize(&target.permit, order, call.accepted).await?;
        let session = target.session.id().to_string();
        let text = format!("{} rows of {} columns, watermark {watermark}", size.rows, size.cols);
        let result = Resized { session, cols: size.cols, rows: size.rows, watermark: watermark.0 };
        Ok(Answer { result, text })
    }
}
