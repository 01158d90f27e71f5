# Has an interactive fish mark its prompts and commands for termgate (docs/SHELL.md). fish runs this
# after its user's own files, which find the nonce in their environment.
#
# The mark that ends a prompt is a part of what fish_prompt prints. While commands run that function is
# the user's again, so that nobody saves ours. Nothing here starts a process.

if set -q TERMGATE_SHELL_NONCE
    # It comes by a descriptor, which fish cannot close: other programs can read the environment that this
    # one began with.
    read -g __termgate_nonce </dev/fd/$TERMGATE_SHELL_NONCE
    set __termgate_nonce ";nonce=$__termgate_nonce"
    set -e TERMGATE_SHELL_NONCE

    function __termgate_write
        builtin printf '\e]%s\e\\' $argv
    end

    function __termgate_encode
        builtin string escape --style=url -- $argv
    end

    function __termgate_prompt
        __termgate_user_prompt
        __termgate_write 133\;B$__termgate_nonce
    end

    function __termgate_first --on-event fish_prompt --on-event fish_posterror --on-event fish_cancel
        __termgate_write 7\;file://(__termgate_encode $hostname$PWD) 133\;A\;bound=1$__termgate_nonce
        if not set -q __termgate_wrapped; and builtin functions -q fish_prompt
            set -g __termgate_wrapped
            builtin functions -e __termgate_user_prompt
            builtin functions -c fish_prompt __termgate_user_prompt
            builtin functions -e fish_prompt
            builtin functions -c __termgate_prompt fish_prompt
        end
    end

    # A key that nobody presses begins an empty line, whatever the line editor is doing: what is
    # searched for is given up, and text is taken as at the beginning of the line.
    function __termgate_note_mode --on-event fish_prompt
        set -g __termgate_mode $fish_bind_mode
    end

    function __termgate_empty_line
        commandline -f cancel
        commandline -r ''
        set -g fish_bind_mode $__termgate_mode
    end

    for mode in default insert visual replace replace_one
        bind -M $mode \e\[24\;8~ __termgate_empty_line
    end

    function __termgate_begin --on-event fish_preexec
        if set -q __termgate_wrapped
            set -e __termgate_wrapped
            builtin functions -e fish_prompt
            builtin functions -c __termgate_user_prompt fish_prompt
        end
        # Cut, but not inside of an escape.
        set -l text (__termgate_encode "$argv" | builtin string sub -l 1000 | builtin string replace -r '%.?$' '')
        __termgate_write 133\;C$__termgate_nonce\;cmdline_url=$text
    end

    function __termgate_end --on-event fish_postexec
        set -l code $status
        # It tells the end of `exit` before it ends, or asks whether to.
        if builtin string match -qr '^\s*exit(\s|;|$)' -- "$argv"
            return
        end
        __termgate_write 133\;D\;$code$__termgate_nonce
    end
end
