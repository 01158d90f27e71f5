# Has an interactive dash, ksh, mksh or ash tell termgate with what code each command ended, in its prompt
# (docs/SHELL.md). These shells read this file as $ENV, which stays for those that are started from them.

# What the shell would have read.
if [ -n "${TERMGATE_NESTED_ENV-}" ]; then
  eval "__termgate_file=\"$TERMGATE_NESTED_ENV\""
else
  case ${KSH_VERSION-} in
    '') __termgate_file= ;;
    *MIRBSD*) __termgate_file=$HOME/.mkshrc ;;
    *) __termgate_file=$HOME/.kshrc ;;
  esac
fi
if [ -r "$__termgate_file" ]; then
  . "$__termgate_file"
fi
unset __termgate_file

# bash and zsh tell it in another way.
if [ -z "${BASH_VERSION-}${ZSH_VERSION-}" ] && [ -n "${TERMGATE_NESTED_NONCE-}" ]; then
  __termgate_d=$(printf '\033]133;D;$?;nonce=%s\007' "$TERMGATE_NESTED_NONCE")
  case ${KSH_VERSION-} in
    *MIRBSD*)
      # What stands between two of the first character takes no room.
      __termgate_begin=$(printf '\001\r')
      PS1="$__termgate_begin${__termgate_begin%?}$__termgate_d${__termgate_begin%?}${PS1#"$__termgate_begin"}" ;;
    ?*)
      # This one has no prompt yet.
      PS1=$__termgate_d${PS1:-$([ "$(id -u)" = 0 ] && echo '# ' || echo '$ ')} ;;
    *)
      case ${PS1-} in
        # ash counts the characters of its prompt but for these.
        *\\*) PS1="\\[$__termgate_d\\]$PS1" ;;
        *) PS1=$__termgate_d${PS1-} ;;
      esac ;;
  esac
  unset __termgate_d __termgate_begin
fi
