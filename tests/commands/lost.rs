//! Output that was lost while no daemon read it: people are told that it is missing.

use crate::commands::blocking::until;
use crate::commands::run::{run, text};
use crate::harness::home::Home;

#[test]
fn who_reads_where_output_is_missing_is_told_so_beside_what_is_there() {
    let home = Home::new();
    home.configure("[sessions]\nring_bytes = 65536\noverwrite_unread = true\n");
    let daemon = home.daemon();
    for name in ["s", "whole"] {
        home.printed(&format!("new --name {name} -- bash"));
    }
    let (go, written) = (home.path("go"), home.path("written"));
    let line = format!(
        "until [ -e {} ]; do sleep 0.05; done; head -c 300000 /dev/zero | tr '\\0' '\\r'; \
         echo after; echo > {}",
        go.display(),
        written.display()
    );
    let sent = run(&home, "--timeout 500ms", "s", &line).output().unwrap();
    assert_eq!(sent.status.code(), Some(124), "{sent:?}");
    daemon.killed();
    std::fs::write(&go, "").unwrap();
    until("the command to end", || written.exists());
    let _next = home.daemon();
    assert!(home.run("wait s --until-text after --since 0").status.success());
    for line in ["read s", "history s --from 0", "commands s 1"] {
        let told = home.run(line);
        assert!(told.status.success(), "{line}: {told:?}");
        let said = text(&told.stderr);
        assert_eq!(said.matches("bytes of output are lost").count(), 1, "{line}: {said}");
    }
    assert!(home.printed("read s").contains("after"), "what is there is printed");
    for line in ["read whole", "history whole --from 0"] {
        assert_eq!(text(&home.run(line).stderr), "", "{line}");
    }
    let listed = home.printed("ls");
    let row = |name: &str| listed.lines().find(|row| row.contains(&format!(" {name} "))).unwrap();
    assert!(row("s").contains(", output lost"), "{listed}");
    assert!(!row("whole").contains("lost"), "{listed}");
}
