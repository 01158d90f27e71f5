# Has a dash, ksh, mksh or ash tell termgate with what code each command ended, in its prompt (docs/SHELL.md).
# The session's shell reads this file as $ENV, which is at once what it was before.

__termgate_file=${TERMGATE_NESTED_ENV-}
if [ -n "$__termgate_file" ]; then
  ENV=$__termgate_file
  unset TERMGATE_NESTED_ENV
  eval "__termgate_file=\"$__termgate_file\""
  case $__termgate_file in
    '~/'*) __termgate_file=$HOME/${__termgate_file#??} ;;
  esac
else
  unset ENV
  case ${KSH_VERSION-} in
    *MIRBSD* | *LEGACY*) __termgate_file=$HOME/.mkshrc ;;
    *93* | *2020*) __termgate_file=$HOME/.kshrc ;;
  esac
fi
if [ -r "$__termgate_file" ]; then
  . "$__termgate_file"
fi
unset __termgate_file

# Before the first prompt nothing has ended, so that it has no code.
if [ -z "${BASH_VERSION-}${ZSH_VERSION-}" ] && [ -n "${TERMGATE_NESTED_NONCE-}" ]; then
  unset __termgate_told
  __termgate_d=$(
    printf '\033]133;D;${__termgate_told+$?}${__termgate_told=};nonce=%s\007' "$TERMGATE_NESTED_NONCE"
  )
  case ${KSH_VERSION-} in
    *MIRBSD* | *LEGACY*)
      # What stands between two of the first character takes no room.
      __termgate_begin=$(printf '\001\r')
      PS1="$__termgate_begin${__termgate_begin%?}$__termgate_d${__termgate_begin%?}${PS1#"$__termgate_begin"}" ;;
    ?*)
      # This one has no prompt yet.
      PS1=$__termgate_d${PS1:-$([ "$(id -u)" = 0 ] && echo '# ' || echo '$ ')} ;;
    *)
      case $(readlink /proc/$$/exe) in
        # ash counts the characters of its prompt but for these.
        */busybox*) PS1="\\[$__termgate_d\\]${PS1-}" ;;
        *) PS1=$__termgate_d${PS1-} ;;
      esac ;;
  esac
  unset __termgate_d __termgate_begin
fi
