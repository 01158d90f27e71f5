# Has an interactive zsh mark its prompts and commands for termgate (docs/SHELL.md). zsh finds this
# file by $ZDOTDIR, which is at once what it was before, so that zsh reads all other files as ever.
#
# __termgate_first stays the first and __termgate_last the last of precmd_functions, whatever others
# make of them. Marks go to the terminal by its name, since some prompts keep for themselves what is
# written while they are made. Nothing here starts a process.

# The nonce comes by a descriptor, since other programs can read the environment that this one began with.
typeset -g __termgate_nonce
builtin read -r -u $TERMGATE_SHELL_NONCE __termgate_nonce
exec {TERMGATE_SHELL_NONCE}<&-
__termgate_nonce=";nonce=$__termgate_nonce"
typeset -g __termgate_b=$'\e]133;B'$__termgate_nonce$'\e\\'
# Shells that are started from here have what this says, and tell their codes by it; ours, which has psvar, tells the
# end of output.
typeset -g __termgate_e=$'%{\e]133;%(97V.E.D;%?;line=%i);nonce='$TERMGATE_NESTED_NONCE$'\e\\%}'
typeset -gi __termgate_ran=0     # Whether a command ran since the last prompt.
typeset -gi __termgate_told=0    # Whether this prompt's first marks are written.
typeset -gi __termgate_bound=0   # Whether the line editor knows our key.
typeset -g __termgate_place=     # The host and directory that __termgate_where names.
typeset -g __termgate_where=
builtin unset TERMGATE_SHELL_NONCE
if (( ${+TERMGATE_SHELL_ZDOTDIR} )); then
  builtin export ZDOTDIR=$TERMGATE_SHELL_ZDOTDIR
  builtin unset TERMGATE_SHELL_ZDOTDIR
else
  builtin unset ZDOTDIR
fi

# The first thing at each prompt: ends the last command, and begins a prompt.
__termgate_first() {
  builtin local __termgate_status="$?"
  builtin emulate -L zsh -o no_xtrace -o no_err_exit -o no_err_return
  builtin local REPLY marks place="${(%):-%M}$PWD"
  if (( __termgate_ran )); then
    __termgate_ran=0
    marks=$'\e]133;D;'$__termgate_status$__termgate_nonce$'\e\\'
  fi
  if [[ $place != "$__termgate_place" ]]; then
    __termgate_encode $place
    __termgate_place=$place
    __termgate_where=$'\e]7;file://'$REPLY$'\e\\'
  fi
  if (( ! __termgate_bound )); then
    __termgate_bound=1
    __termgate_bind 2>/dev/null
  fi
  __termgate_write $marks$__termgate_where$'\e]133;A;bound=1'$__termgate_nonce$'\e\\'
  __termgate_told=1
}

# The last thing before the prompt is written: has it end with what is ours.
__termgate_last() {
  builtin local __termgate_status="$?" percent=off
  if [[ -o prompt_percent ]]; then
    percent=on
  fi
  builtin emulate -L zsh -o no_xtrace -o no_err_exit -o no_err_return
  if (( ! __termgate_told )); then
    (){ builtin return $__termgate_status }
    __termgate_first
  fi
  __termgate_told=0
  __termgate_order
  if [[ $percent != on || $PS1 == *% || ${(t)PS1} == *readonly* ]]; then
    # There is no place in it where the mark would take no room.
    __termgate_write $__termgate_b
  else
    PS1=${PS1//"%{$__termgate_b%}"/}%{$__termgate_b%}
  fi
}

# The last thing before a command: no program has the mark in its environment, should the prompt be
# exported.
__termgate_begin() {
  builtin emulate -L zsh -o no_xtrace -o no_err_exit -o no_err_return
  builtin local REPLY command
  if [[ ${(t)PS1} != *readonly* ]]; then
    PS1=${PS1//"%{$__termgate_b%}"/}
  fi
  # zsh's sign for a missing line end is no output.
  if [[ ${PROMPT_EOL_MARK-} != "$__termgate_e"* && ${(t)PROMPT_EOL_MARK} != *readonly* ]]; then
    builtin typeset -gx PROMPT_EOL_MARK=$__termgate_e${${PROMPT_EOL_MARK-%B%S%#%s%b}//"$__termgate_e"/}
  fi
  if [[ ${(t)psvar} != *readonly* ]]; then
    psvar[97]=1
  fi
  __termgate_order
  __termgate_ran=1
  # Empty where zsh does not know what was typed.
  if [[ -n $1 ]]; then
    __termgate_encode $1
    command=';cmdline_url='$REPLY
  fi
  __termgate_write $'\e]133;C'$__termgate_nonce$command$'\e\\'
}

# Has a key that nobody presses begin an empty line, whatever the line editor is doing.
__termgate_bind() {
  builtin local keymap
  builtin zle -N __termgate_empty_line
  for keymap in emacs viins vicmd; do
    builtin bindkey -M $keymap '\e[24;8~' __termgate_empty_line
  done
  # Where something is asked, it is given up first.
  for keymap in isearch command; do
    builtin bindkey -M $keymap '\e[24;8~' send-break
  done
}

__termgate_empty_line() {
  builtin zle .kill-buffer
  builtin zle -K main
}

__termgate_order() {
  if [[ ${precmd_functions[1]} == __termgate_first && ${precmd_functions[-1]} == __termgate_last &&
    ${preexec_functions[-1]} == __termgate_begin ]]; then
    builtin return 0
  fi
  precmd_functions=(__termgate_first ${precmd_functions:#__termgate_*} __termgate_last)
  preexec_functions=(${preexec_functions:#__termgate_*} __termgate_begin)
}

__termgate_write() {
  if [[ -w $TTY ]]; then
    builtin print -rn -- $1 >|$TTY
  else
    builtin print -rn -- $1
  fi
}

# Puts the beginning of a text into REPLY, its bytes as %XX save those that paths are made of.
__termgate_encode() {
  builtin emulate -L zsh -o extended_glob -o no_multibyte
  builtin local MATCH MBEGIN MEND text=${1[1,1000]}
  REPLY=${text//(#m)[^A-Za-z0-9_.\/~-]/%${(l:2::0:)$(( [##16] #MATCH ))}}
  if (( $#REPLY > 1000 )); then
    REPLY=${${REPLY[1,1000]}%%%(|?)}
  fi
}

# Whatever the user's files make of precmd_functions, what is scheduled comes before the first prompt,
# after all of them.
__termgate_start() {
  builtin emulate -L zsh
  builtin zmodload zsh/parameter
  builtin typeset -ga precmd_functions preexec_functions
  if builtin zmodload zsh/sched 2>/dev/null; then
    precmd_functions+=(__termgate_first)
    builtin sched +0 __termgate_last
  else
    __termgate_order
  fi
}

if [[ -o interactive ]]; then
  __termgate_start
fi
if [[ -r ${ZDOTDIR-$HOME}/.zshenv ]]; then
  builtin source "${ZDOTDIR-$HOME}/.zshenv"
fi
