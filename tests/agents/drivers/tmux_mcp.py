"""Drives tmux-mcp of PyPI: `tmux_send_keys`, then `tmux_read_pane`."""

from drivers.guest import Guest


class TmuxMcp(Guest):
    command = ["venv-tmux/bin/tmux-mcp"]

    def open(self, place: str, shell: str) -> None:
        self.ask("tmux_create_session", {"name": "case", "command": f"cd {place}; exec {shell}"})

    def type_text(self, text: str) -> None:
        lines = text.split("\n")
        for number, line in enumerate(lines):
            if line:
                self.ask("tmux_send_keys", {"target": "case", "keys": line, "literal": True})
            if number < len(lines) - 1:
                self.ask("tmux_send_keys", {"target": "case", "keys": "Enter"})

    def type_keys(self, keys: list[str]) -> None:
        for key in keys:
            self.ask("tmux_send_keys", {"target": "case", "keys": key})

    def look(self) -> str:
        return self.ask("tmux_read_pane", {"target": "case"}).text.rstrip("\n")
