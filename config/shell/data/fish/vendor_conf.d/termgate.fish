# Has a fish inside another shell of a session tell termgate with what code each command ended (docs/SHELL.md).
# fish finds this file by $XDG_DATA_DIRS. The session's own shell has a script of its own.

if status is-interactive; and set -q TERMGATE_NESTED_NONCE; and not set -q TERMGATE_SHELL_NONCE
    # Before the first prompt nothing has ended.
    function __termgate_tell_code --on-event fish_prompt
        set -l code $status
        set -q __termgate_prompted; or set code
        set -g __termgate_prompted
        builtin printf '\e]133;D;%s;nonce=%s\a' "$code" $TERMGATE_NESTED_NONCE >&2
    end
end
