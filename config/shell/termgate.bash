# Has bash mark its prompts and commands for termgate; docs/SHELL.md says how.
__termgate_nonce=$TERMGATE_SHELL_NONCE
unset TERMGATE_SHELL_NONCE
if [[ -o posix ]]; then
  set +o posix
  unset ENV
fi
[[ -r ~/.bashrc ]] && . ~/.bashrc
__termgate_ran=
__termgate_prompt() {
  local status=$?
  [[ $__termgate_ran ]] && printf '\e]133;D;%s;nonce=%s\e\\' "$status" "$__termgate_nonce"
  __termgate_ran=
  printf '\e]7;file://%s%s\e\\\e]133;A;nonce=%s\e\\' "$HOSTNAME" "$PWD" "$__termgate_nonce"
  return "$status"
}
__termgate_c=$'\e]133;C;nonce='$__termgate_nonce$'\e\\'
__termgate_b=$'\e]133;B;nonce='$__termgate_nonce$'\e\\'
PROMPT_COMMAND="__termgate_prompt${PROMPT_COMMAND:+;$PROMPT_COMMAND}"
PS1+='\[${__termgate_b-}\]'
PS0+='${__termgate_c:$((__termgate_ran=1,0))}'
