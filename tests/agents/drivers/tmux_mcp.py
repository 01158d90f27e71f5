"""Drives tmux-mcp of PyPI: `tmux_send_keys`, then `tmux_read_pane`."""

from drivers.guest import Gone, Guest


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
        return self.read({"target": "case"})

    def look_back(self) -> str:
        # tmux keeps 2,000 rows unless it is configured otherwise.
        return self.read({"target": "case", "start_line": -2000})

    def read(self, arguments: dict) -> str:
        text = self.ask("tmux_read_pane", arguments).text
        if text.startswith("Error: "):
            raise Gone
        return text.rstrip("\n")
