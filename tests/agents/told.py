"""What an answer told, in words that every driver shares."""

from dataclasses import dataclass, field


class Hung(Exception):
    """No answer came within the bound of a call."""


@dataclass
class Told:
    """One answer. What a driver's server does not tell stays `None`."""

    # What a command printed, without the last line end.
    output: str | None = None
    code: int | None = None
    # How a command or a wait ended, in the words of `run` and `wait_for`.
    status: str | None = None
    # What the terminal does: prompt, running, needs_input, ...
    state: str | None = None
    mode: str | None = None
    # The code of an error, if the call failed.
    error: str | None = None
    # What a model reads.
    text: str = ""
    # Rows of the terminal that the answer shows.
    shown: str = ""
    # How many calls it took.
    calls: int = 1
    # The whole answer, for checks of single members.
    whole: dict = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many bytes a model reads."""
        return len(self.text.encode())
