# Has an interactive bash mark its prompts and commands for termgate (docs/SHELL.md). bash reads this
# file in place of ~/.bashrc, or, as a login shell, in POSIX mode as $ENV.
#
# PROMPT_COMMAND becomes ours: __termgate_first, __termgate_again, what the user has there, and
# __termgate_last. While the user's texts run it is theirs again, and whatever is made of it stays. The
# last of them runs inside of __termgate_last, so that no DEBUG trap fires after it, which would take us
# for the next command. Nothing here starts a process.

# The nonce is for this shell alone, also where it exports whatever is set. It comes by a descriptor, since
# other programs can read the environment that this one began with.
__termgate_flags=$-
builtin set +a
builtin read -r -N 32 -u "$TERMGATE_SHELL_NONCE" __termgate_d
builtin eval "exec $TERMGATE_SHELL_NONCE<&-"
builtin unset TERMGATE_SHELL_NONCE
__termgate_a=$'\e]133;A;bound=1;nonce='$__termgate_d$'\e\\'
__termgate_b=$'\e]133;B;nonce='$__termgate_d$'\e\\'
__termgate_c=$'\e]133;C;nonce='$__termgate_d$'\e\\'
__termgate_d=';nonce='$__termgate_d$'\e\\'

# How the prompts end. They name variables that only this shell has, since prompts may be exported.
# The offset is evaluated, and so notes that a command runs, where there is a text to cut.
__termgate_ps1='\[${__termgate_b-}\]'
__termgate_ps0='${__termgate_c+${__termgate_c:$((__termgate_ran=1,0))}}'

# The first of ours in PROMPT_COMMAND; where one text has all, it leaves $_ as it was. Where commands
# are traced, it calls a function that turns that off unseen, which takes a while.
__termgate_one='"__termgate_first${-//[!x]}" "$_"'
__termgate_two='"__termgate_again${-//[!x]}" "$_"'

__termgate_outer=       # Has what PS0 says for shells that are started from here say nothing.
__termgate_nested=${PS0-} # What it says for them.
__termgate_ran=0        # Whether a command ran since the last prompt.
__termgate_told=0       # Whether __termgate_first did its work.
__termgate_shown=0      # Whether PROMPT_COMMAND is as the user knows it.
__termgate_own=()       # What the user has in PROMPT_COMMAND.
__termgate_tail=        # The text of it that __termgate_last runs.
__termgate_published=   # Our PROMPT_COMMAND, where bash knows no array of them.
__termgate_alone=       # Our PROMPT_COMMAND, where the user has none.
__termgate_untold=      # What A says where no command is told that was read before it.
__termgate_pwd=         # The directory that __termgate_where names.
__termgate_where=
[[ $__termgate_flags != *a* ]] || builtin set -a

# The first thing at each prompt. Where bash knows no array, the user's commands follow in the same
# text, and its status is theirs to see.
__termgate_first() {
  builtin local __termgate_status="$?" __termgate_options="$-"
  builtin local -
  builtin set +aeuvx
  __termgate_arrive
}

# The same where commands are traced.
__termgate_firstx() {
  {
    builtin local __termgate_status="$?" __termgate_options="$-"
    builtin local -
    builtin set +aeuvx
  } 2>/dev/null
  __termgate_arrive
}

__termgate_arrive() {
  if [[ ${__termgate_published:-$__termgate_one} == "${PROMPT_COMMAND-}" ]]; then
    __termgate_told=1
    __termgate_tell
  fi
  if [[ ! $__termgate_published || $__termgate_options == *e* ]]; then
    builtin return 0
  fi
  builtin return "$__termgate_status"
}

# The same where the user set PROMPT_COMMAND as a text, so that the first of ours is gone or inside of
# it, and where the prompt commands were interrupted and ours are gone but for this one.
__termgate_again() {
  builtin local __termgate_status="$?" __termgate_options="$-"
  builtin local -
  builtin set +aeuvx
  __termgate_catch_up
}

__termgate_againx() {
  {
    builtin local __termgate_status="$?" __termgate_options="$-"
    builtin local -
    builtin set +aeuvx
  } 2>/dev/null
  __termgate_catch_up
}

__termgate_catch_up() {
  if (( ! __termgate_told )); then
    if (( __termgate_shown )); then
      __termgate_tell
      __termgate_publish
      __termgate_settle
    else
      __termgate_tell
    fi
  fi
  # Where the user had none before there is no __termgate_last yet at this prompt.
  if [[ $__termgate_alone ]] && (( __termgate_shown )); then
    __termgate_settle
  fi
  __termgate_told=0
  if [[ ! $__termgate_published || $__termgate_options == *e* ]]; then
    builtin return 0
  fi
  builtin return "$__termgate_status"
}

# The last thing before the prompt is written, whatever the user's commands made of it. No command may
# come before the user's text, which sees what the last command left in $?, $_ and PIPESTATUS.
__termgate_last() {
  __termgate_eval
  __termgate_finish
}

__termgate_eval() {
  builtin eval "$__termgate_tail"
}

__termgate_finish() {
  { builtin local -; builtin set +aeuvx; } 2>/dev/null
  __termgate_collect
  __termgate_publish
  __termgate_settle
}

# Ends the last command, begins a prompt, and shows the user's PROMPT_COMMAND.
__termgate_tell() {
  builtin local __termgate_marks=
  if (( __termgate_ran )); then
    __termgate_ran=0
    __termgate_marks=$'\e]133;D;'$__termgate_status$__termgate_d
  fi
  if [[ $PWD != "$__termgate_pwd" ]]; then
    __termgate_locate
  fi
  builtin printf %s "$__termgate_marks$__termgate_where${__termgate_a/;nonce/$__termgate_untold;nonce}" >&2
  if [[ $__termgate_alone && "${PROMPT_COMMAND[*]}" == "$__termgate_alone" ]]; then
    __termgate_settle
    builtin return 0
  fi
  __termgate_collect
  if (( ${#__termgate_own[@]} == 0 )); then
    __termgate_publish
    __termgate_settle
  else
    __termgate_shown=1
    if [[ $__termgate_published ]]; then
      PROMPT_COMMAND=$__termgate_own
    else
      # Neither first nor last: there bash-preexec looks for what is its own.
      PROMPT_COMMAND=("$__termgate_own" "$__termgate_two" "${__termgate_own[@]:1}")
    fi
  fi
}

__termgate_locate() {
  builtin local LC_ALL=C __termgate_rest='\H' __termgate_fine __termgate_code
  # As the system says it, whatever HOSTNAME was told.
  __termgate_rest=${__termgate_rest@P}$PWD
  __termgate_pwd=$PWD
  __termgate_where=$'\e]7;file://'
  while [[ $__termgate_rest ]]; do
    __termgate_fine=${__termgate_rest%%[!a-zA-Z0-9_./~-]*}
    __termgate_where+=$__termgate_fine
    __termgate_rest=${__termgate_rest#"$__termgate_fine"}
    if [[ $__termgate_rest ]]; then
      builtin printf -v __termgate_code %d "'$__termgate_rest"
      builtin printf -v __termgate_code %%%02X "$(( __termgate_code & 255 ))"
      __termgate_where+=$__termgate_code
      __termgate_rest=${__termgate_rest:1}
    fi
  done
  __termgate_where+=$'\e\\'
}

# Finds what the user has in PROMPT_COMMAND by now, besides what is ours.
__termgate_collect() {
  builtin local __termgate_item __termgate_found="$__termgate_shown"
  builtin local -a __termgate_items
  if [[ $__termgate_published ]]; then
    # Where it is not theirs, ours stands for theirs, whatever was put around it.
    __termgate_own=("${PROMPT_COMMAND//"$__termgate_published"/"$__termgate_own"}")
    builtin return 0
  fi
  for __termgate_item in "${PROMPT_COMMAND[@]}"; do
    case $__termgate_item in
      *__termgate_first*) __termgate_found=1 ;;&
      "$__termgate_one" | "$__termgate_two") ;;
      __termgate_last) [[ ! $__termgate_tail ]] || __termgate_items+=("$__termgate_tail") ;;
      *) __termgate_items+=("$__termgate_item") ;;
    esac
  done
  if (( ! __termgate_found )); then
    # A text that is set anew takes the place of the first one, and did so already.
    builtin unset '__termgate_items[1]'
    (( ${#__termgate_items[@]} > 1 )) || __termgate_tail=
  fi
  __termgate_own=("${__termgate_items[@]}")
}

# Puts ours into PROMPT_COMMAND.
__termgate_publish() {
  __termgate_shown=0
  builtin local -a __termgate_texts
  __termgate_texts=("$__termgate_one" "$__termgate_two" "${__termgate_own[@]}")
  __termgate_alone=
  __termgate_tail=
  if (( ${#__termgate_own[@]} )); then
    __termgate_tail=${__termgate_texts[-1]}
    builtin unset '__termgate_texts[-1]'
    # bash-preexec has to be called by bash itself, and this last.
    if [[ $__termgate_tail == __bp_interactive_mode ]]; then
      __termgate_tail=
      __termgate_texts+=(__termgate_last __bp_interactive_mode)
    elif [[ $__termgate_tail == *$'\n'__bp_interactive_mode ]]; then
      __termgate_texts+=("${__termgate_tail%__bp*}" __termgate_last __bp_interactive_mode)
      __termgate_tail=
    else
      __termgate_texts+=(__termgate_last)
    fi
  fi
  if [[ $__termgate_published ]]; then
    builtin printf -v __termgate_published '%s\n' "${__termgate_texts[@]}"
    PROMPT_COMMAND=$__termgate_published
  else
    PROMPT_COMMAND=("${__termgate_texts[@]}")
    if (( ! ${#__termgate_own[@]} )); then
      __termgate_alone="${PROMPT_COMMAND[*]}"
    fi
  fi
}

# Has both prompts end with what is ours.
__termgate_settle() {
  __termgate_untold=
  if [[ $BASHOPTS != *promptvars* ]]; then
    __termgate_untold=';untold=1'
    PS0=${PS0//"$__termgate_ps0"/}
    PS0=${PS0//"$__termgate_nested"/}
    PS1=${PS1//"$__termgate_ps1"/}
    builtin printf %s "$__termgate_b" >&2
    builtin return 0
  fi
  if [[ $PS0 != *"$__termgate_ps0" ]]; then
    PS0=${PS0//"$__termgate_ps0"/}$__termgate_ps0
  fi
  if [[ ${PS1@a} == *r* ]]; then
    builtin printf %s "$__termgate_b" >&2
  elif [[ $PS1 != *"$__termgate_ps1" ]]; then
    PS1=${PS1//"$__termgate_ps1"/}$__termgate_ps1
  fi
}

# Has a key that nobody presses begin an empty line, whatever the line editor is doing. Where it takes
# commands of vi, it first has to take text again.
__termgate_bind() {
  builtin bind -m emacs-standard '"\e[24;8~": kill-whole-line'
  builtin bind -m vi-insert '"\e[24;8~": kill-whole-line'
  builtin bind -m vi-command '"\e[24;8~": vi-insertion-mode'
}

# Begins to mark, once the user's files are read.
__termgate_begin() {
  # Older ones tell nothing of a command that begins.
  (( BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 404 )) || builtin return 0
  builtin local -
  builtin set +aeuvx
  [[ ${PROMPT_COMMAND@a}${PS0@a} != *r* ]] || builtin return 0
  __termgate_bind 2>/dev/null
  if (( BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 501 )); then
    __termgate_own=("$PROMPT_COMMAND")
    __termgate_published=anything
    # A shell that is started from here knows none of this.
    builtin declare -g +x PROMPT_COMMAND
  else
    __termgate_own=("${PROMPT_COMMAND[@]}")
  fi
  __termgate_publish
}

# What bash itself would have read, each as it would have been there: outside of any function. A list
# is not ended by `set -e`.
if [[ -o posix ]]; then
  builtin set +o posix
  builtin shopt -u inherit_errexit 2>/dev/null
  # What POSIX mode chose.
  [[ $HISTFILE != ~/.sh_history ]] || HISTFILE=~/.bash_history
  if [[ ${TERMGATE_SHELL_ENV+set} ]]; then
    ENV=$TERMGATE_SHELL_ENV
    builtin unset TERMGATE_SHELL_ENV
  else
    builtin unset ENV
  fi
  {
    if [[ -r /etc/profile ]]; then
      builtin . /etc/profile
    fi
    if [[ -r ~/.bash_profile ]]; then
      builtin . ~/.bash_profile
    elif [[ -r ~/.bash_login ]]; then
      builtin . ~/.bash_login
    elif [[ -r ~/.profile ]]; then
      builtin . ~/.profile
    fi
  } && __termgate_begin || __termgate_begin
else
  {
    if [[ -r ~/.bashrc ]]; then
      builtin . ~/.bashrc
    fi
  } && __termgate_begin || __termgate_begin
fi
