# Has zsh mark its prompts and commands for termgate; docs/SHELL.md says how.
typeset -g __termgate_nonce=$TERMGATE_SHELL_NONCE
unset TERMGATE_SHELL_NONCE
if (( ${+TERMGATE_SHELL_ZDOTDIR} )); then
  export ZDOTDIR=$TERMGATE_SHELL_ZDOTDIR
  unset TERMGATE_SHELL_ZDOTDIR
else
  unset ZDOTDIR
fi
[[ -r ${ZDOTDIR:-$HOME}/.zshenv ]] && source "${ZDOTDIR:-$HOME}/.zshenv"
