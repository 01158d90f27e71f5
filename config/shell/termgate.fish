# Has fish mark its prompts and commands for termgate; docs/SHELL.md says how.
set -g __termgate_nonce $TERMGATE_SHELL_NONCE
set -e TERMGATE_SHELL_NONCE
