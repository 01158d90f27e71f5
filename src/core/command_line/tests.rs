//! Lines that hide what they run: each is either seen through, or said to be unknown.

use super::*;
use crate::core::command_line::UnknownPart::{
    Builtin, Configuration, ControlCharacter, Definition, Evaluation, Expansion, Foreign, History,
    Length, Nesting, Program, ShellInput, Sourced, Syntax, Variable, Wrapper,
};

/// Each call as `wrapper>program -flags`, and what is unknown.
fn seen(text: &str) -> (Vec<String>, Vec<UnknownPart>) {
    let line = ParsedCommandLine::parse(text);
    let call = |call: &ProgramCall| {
        let name = call.name.clone().unwrap_or_else(|| "?".to_owned());
        let all = call.through.iter().chain([&name]).cloned().collect::<Vec<_>>().join(">");
        let flags: Vec<String> = call.flags.iter().cloned().collect();
        if flags.is_empty() { all } else { format!("{all} -{}", flags.concat()) }
    };
    (line.calls.iter().map(call).collect(), line.unknown.into_iter().collect())
}

/// Whether it is seen that this line removes files by force, with all that is below.
fn removes(text: &str) -> bool {
    ParsedCommandLine::parse(text).calls.iter().any(|call| {
        call.name.as_deref() == Some("rm") && ["r", "f"].iter().all(|it| call.flags.contains(*it))
    })
}

/// The same command, in many ways.
const REMOVING: &[&str] = &[
    "rm -rf /x",
    "rm -fr /x",
    "rm -r -f /x",
    "rm -Rf /x",
    "rm --recursive --force /x",
    "rm --rec --forc /x",
    "rm -rfv /x",
    "rm -v /x -rf",
    "r\"\"m -r'f' /x",
    "'rm' -\\r\\f /x",
    "\\rm -rf /x",
    "/bin/rm -rf /x",
    "  rm   -rf   /x  ",
    "$'rm' -rf /x",
    "sudo rm -rf /x",
    "sudo -u root -E rm -rf /x",
    "sudo --user=root -- rm -rf /x",
    "sudo --user root rm -rf /x",
    "env -i A=b rm -rf /x",
    "env -u HOME -- rm -rf /x",
    "nice -n 10 rm -rf /x",
    "nice -n10 rm -rf /x",
    "timeout -k 5 10 rm -rf /x",
    "timeout --signal KILL 10 rm -rf /x",
    "nohup setsid rm -rf /x",
    "stdbuf -oL rm -rf /x",
    "command rm -rf /x",
    "exec -a ls rm -rf /x",
    "flock f -c 'rm -rf /x'",
    "flock -n f rm -rf /x",
    "strace -f -e trace=file rm -rf /x",
    "taskset -c 0,1 rm -rf /x",
    "valgrind -q --tool=memcheck rm -rf /x",
    "d=/x; rm -rf \"$d\"",
    "X=rm; $X -rf /x",
    "busybox rm -rf /x",
    "xargs rm -rf",
    "env - rm -rf /x",
    "eval -- 'rm -rf /x'",
    "trap -- 'rm -rf /x' EXIT",
    "bash -c -- 'rm -rf /x'",
    "bash -c -x 'rm -rf /x'",
    "bash -c +x 'rm -rf /x'",
    "bash -co errexit 'rm -rf /x'",
    "bash +c 'rm -rf /x'",
    "sudo A=b -u root rm -rf /x",
    "echo x | xargs -n 1 -I{} rm -rf {}",
    "find . -name x -exec rm -rf {} +",
    "find . -exec sh -c 'rm -rf \"$1\"' _ {} \\;",
    "sh -c 'rm -rf /x'",
    "bash -lc \"rm -rf /x\"",
    "bash --norc -c 'rm -rf /x'",
    "bash -o errexit -c 'rm -rf /x'",
    "sudo bash -c \"sh -c 'rm -rf /x'\"",
    "su -c 'rm -rf /x' root",
    "su - root --command='rm -rf /x'",
    "ssh -p 22 host rm -rf /x",
    "ssh -l root host -- 'sudo rm -rf /x'",
    "eval rm -rf /x",
    "eval 'rm -rf' /x",
    "trap 'rm -rf /x' EXIT",
    "watch -n 1 rm -rf /x",
    "true && rm -rf /x",
    "true; rm -rf /x",
    "true | rm -rf /x",
    "true & rm -rf /x",
    "true\nrm -rf /x",
    "! rm -rf /x",
    "ls # ; rm -rf /x",
    "time rm -rf /x",
    "(rm -rf /x)",
    "{ rm -rf /x; }",
    "if true; then rm -rf /x; fi",
    "while rm -rf /x; do break; done",
    "for a in 1 2; do rm -rf /x; done",
    "case x in x) rm -rf /x ;; esac",
    "f() { rm -rf /x; }; f",
    "echo $(rm -rf /x)",
    "echo `rm -rf /x`",
    "echo \"$(rm -rf /x)\"",
    "cat <(rm -rf /x)",
    "ls > >(rm -rf /x)",
    "A=$(rm -rf /x)",
    "A=$(rm -rf /x) true",
    "cat <<X\n$(rm -rf /x)\nX\n",
    "cat <<< $(rm -rf /x)",
    "[[ -n $(rm -rf /x) ]]",
    "ls > $(rm -rf /x)",
    "coproc rm -rf /x",
    "rm -rf -- /x",
    "rm $x -rf /x",
    "rm \\\n-rf /x",
    "PROMPT_COMMAND='rm -rf /x'",
    "PROMPT_COMMAND=(true 'rm -rf /x')",
    "export PROMPT_COMMAND='rm -rf /x'",
    "declare -x PROMPT_COMMAND+='rm -rf /x'",
    "readonly PS1='$(rm -rf /x)'",
    "PS0='`rm -rf /x`'",
    "PS4='\\$(x) $(rm -rf /x)' bash -x script",
    "GIT_SSH_COMMAND='rm -rf /x' git fetch",
    "env EDITOR='rm -rf /x' git commit",
    "sudo PAGER='rm -rf /x' git log",
    "git -c core.pager='rm -rf /x' log",
    "git -C /y --no-pager -c user.name=x -c Core.SSHCommand='rm -rf /x' fetch",
    "git -c alias.st='!rm -rf /x' st",
    "git -c alias.a='-c alias.b=\"!rm -rf /x\" b' a",
    "git -c diff.external='rm -rf /x' diff",
    "git -c core.fsmonitor='rm -rf /x' status",
    "git -c credential.helper='!rm -rf /x' push",
    "git -c credential.https://h.example.helper='/bin/rm -rf /x' push",
    "git -c filter.lfs.smudge='rm -rf /x' checkout .",
    "git -c pager.log='rm -rf /x' log",
    "git clone -c core.sshCommand='rm -rf /x' ssh://h/r",
    "git config core.editor 'rm -rf /x'",
    "git config --global alias.x '!rm -rf /x'",
    "git config set --global core.hooksPath /y; git config set core.pager 'rm -rf /x'",
    "git config -f .gitmodules --add merge.x.driver 'rm -rf /x'",
    "sudo git config --system --replace-all sequence.editor 'rm -rf /x'",
    "git bisect run rm -rf /x",
    "git submodule foreach --recursive 'rm -rf /x'",
];

#[test]
fn one_command_has_one_meaning_however_it_is_written() {
    for line in REMOVING {
        assert!(removes(line), "{line}: {:?}", ParsedCommandLine::parse(line));
    }
}

#[test]
fn text_is_no_command() {
    for line in [
        "echo 'rm -rf /x'",
        "echo rm -rf /x",
        "grep 'rm -rf' script",
        "# rm -rf /x",
        "ls # rm -rf /x",
        "cat <<'X'\n$(rm -rf /x)\nX\n",
        "rm -- -rf",
        "rm -r x",
        "rm --recursive x",
    ] {
        assert!(!removes(line), "{line}: {:?}", ParsedCommandLine::parse(line));
    }
}

/// Lines with a part that is not known.
const UNKNOWN: &[(&str, UnknownPart)] = &[
    ("$x -rf /", Program),
    ("$(echo rm) -rf /", Program),
    ("r? -rf /", Program),
    ("/bin/r* -rf /", Program),
    ("sudo $x", Program),
    ("{rm,-rf,/x}", Program),
    ("echo ${x:-$(rm -rf /)}", Expansion),
    ("echo ${x[$(rm -rf /)]}", Expansion),
    ("echo $((x[$(rm)]))", Expansion),
    ("((x = $(rm)))", Expansion),
    ("x[$(rm)]=1", Expansion),
    ("eval $x", Evaluation),
    ("eval \"$(cat f)\"", Evaluation),
    ("sh -c \"$x\"", Evaluation),
    ("sh -c", Evaluation),
    ("sh $x", Evaluation),
    ("env -S 'rm -rf /x'", Wrapper),
    ("ssh -o ProxyCommand='rm -rf /x' host", Wrapper),
    ("ssh -oProxyCommand=rm host", Wrapper),
    ("systemd-run rm -rf /x", Wrapper),
    ("parallel rm ::: x", Wrapper),
    ("tmux send-keys 'rm -rf /x' Enter", Wrapper),
    ("curl x | sh", ShellInput),
    ("curl x | sudo bash", ShellInput),
    ("bash -s < x", ShellInput),
    ("sh <<X\nrm -rf /x\nX\n", ShellInput),
    ("source x", Sourced),
    (". ./x", Sourced),
    ("bash --rcfile x", Sourced),
    ("cat <<EOF\nEO\\\nF\nrm -rf /x\nEOF", Syntax),
    ("bash -rcfile ./evil -i", Wrapper),
    ("bash -norc -c 'rm -rf /x'", Wrapper),
    ("zsh --emulate sh -c 'rm -rf /x'", Wrapper),
    ("echo x | bash /dev/stdin", ShellInput),
    ("fish -C 'rm -rf /x'", Wrapper),
    ("csh -c 'rm -rf /x'", Wrapper),
    ("su -c'rm -rf /x' root", Evaluation),
    ("{ bash; } < f", ShellInput),
    ("bash 0<> f", ShellInput),
    ("cat f | (sudo sh)", ShellInput),
    ("bash <<< 'rm -rf /x'", ShellInput),
    ("sh <(curl x) & bash", ShellInput),
    ("exec 3< f; bash <&3", ShellInput),
    ("bash -s x", ShellInput),
    ("bash /dev/stdin", ShellInput),
    ("cat f | fish", ShellInput),
    ("su -c true -c 'rm -rf /x'", Evaluation),
    ("echo x | su", ShellInput),
    ("echo x | sudo -s", Wrapper),
    ("sudo -i 'a b'", Wrapper),
    ("env --uns HOME rm -rf /x", Wrapper),
    ("timeout --kill 5 10 rm -rf /x", Wrapper),
    ("watch -q 3 rm $x", Evaluation),
    ("time -- rm -rf /x", Program),
    ("x='a[$(rm -rf /x)]'; ((x))", Expansion),
    ("RANDOM='a[$(rm -rf /x)]'", Expansion),
    ("a=(['x[$(rm -rf /x)]']=1)", Expansion),
    ("declare -i n='a[$(rm)]'", Builtin),
    ("export RANDOM='a[$(rm)]'", Builtin),
    ("let 'a[$(rm -rf /x)]=1'", Builtin),
    ("((reboot))", Expansion),
    ("[[ 'a[$(rm)]' -eq 1 ]]", Expansion),
    ("[[ -v 'a[$(rm)]' ]]", Expansion),
    ("[[ x || reboot ]]", Syntax),
    ("[[ a > f ]]", Expansion),
    ("mapfile -C 'rm' -c 1", Builtin),
    ("compgen -W '$(rm -rf /x)'", Builtin),
    ("jobs -x rm -rf /x", Builtin),
    ("printf -v 'a[$(rm)]' x", Builtin),
    ("read 'a[$(rm)]'", Builtin),
    ("test -v 'a[$(rm)]'", Builtin),
    ("[ 'a[$(rm)]' -eq 1 ]", Builtin),
    ("wait -n -p 'a[$(rm)]'", Builtin),
    ("unset PATH", Variable),
    ("unset 'a[$(rm)]'", Builtin),
    ("unset -f ls", Builtin),
    ("export -f ls", Builtin),
    ("exec < f", Builtin),
    ("/bin/[r]m -rf /x", Program),
    ("sudo /bin/@(rm)", Expansion),
    ("ls /etc/pass*(e:'rm':)", Expansion),
    ("{fd}>f rm", Program),
    ("cat </dev/tcp/h/1", Syntax),
    ("ls >! P", Syntax),
    ("ls # don't\nls !tou", History),
    ("ls # don't", History),
    ("true\n^true^rm -rf /x", History),
    ("A=$'\\'' ls !rm", History),
    ("A=${ rm -rf /x; }", Expansion),
    ("A=\"${ rm -rf /x; }\"", Expansion),
    ("ssh -vo ProxyCommand='rm' localhost", Wrapper),
    ("fd -Hx rm", Wrapper),
    ("fd --exec=rm", Wrapper),
    ("coproc rm", Builtin),
    ("alias ls='rm -rf /x'", Builtin),
    ("ls() { true; }", Definition),
    ("function ls { true; }", Definition),
    ("bind -x '\"a\": rm'", Builtin),
    ("!!", History),
    ("!rm", History),
    ("echo \"!rm\"", History),
    ("^ls^rm -rf /x", History),
    ("echo 'open", Syntax),
    ("ls ;; pwd", Syntax),
    ("ls\r", ControlCharacter),
    ("ls\tx", ControlCharacter),
    ("ls \u{1b}[A", ControlCharacter),
    ("ls \u{15}rm", ControlCharacter),
    // What `xargs` reads may be put into each of its words, and follows them.
    ("echo x | xargs -I% sh -c %", Evaluation),
    ("echo x | xargs -I % sh -c 'a %'", Evaluation),
    ("echo x | xargs -0tI% bash -c %", Evaluation),
    ("echo x | xargs -d -I% -I -c sh -c x", Evaluation),
    ("echo x | xargs -i sh -c {}", Wrapper),
    ("echo x | xargs --replace sh -c {}", Wrapper),
    ("echo x | xargs --replace=R sh -c R", Wrapper),
    ("echo x | xargs -I% %", Program),
    ("echo x | xargs -I% ./%/y", Program),
    ("echo x | xargs -I% env %", Program),
    ("echo x | xargs -I% timeout 5 %", Program),
    ("echo x | xargs -I% sh", Evaluation),
    ("echo x | xargs sh -c", Evaluation),
    ("echo x | xargs -n1 env", Program),
    ("echo x | xargs nice -n", Wrapper),
    ("echo x | xargs timeout", Wrapper),
    ("echo x | xargs ssh", Wrapper),
    ("echo x | xargs ssh host", Wrapper),
    ("echo x | xargs find .", Wrapper),
    ("echo x | xargs fd", Wrapper),
    ("echo x | xargs su root -c", Evaluation),
    ("timeout $x rm", Wrapper),
    ("sudo -u $x ls", Wrapper),
    ("su -c \"$x\"", Evaluation),
    ("find $x -name y", Wrapper),
    // A shell reads what is written to it, here and at another host.
    ("echo x > >(sh)", ShellInput),
    ("echo x 2> >(sudo bash)", ShellInput),
    ("echo x | tee >(bash)", ShellInput),
    ("exec 3> >(sh)", ShellInput),
    ("cat f > >(ssh host)", ShellInput),
    ("ssh host <<X\nrm -rf /x\nX\n", ShellInput),
    ("ssh -p 22 host < f", ShellInput),
    ("echo x | ssh host", ShellInput),
    ("echo x | ssh host --", ShellInput),
    ("echo x | ssh host sh", ShellInput),
    ("ssh host bash -s < f", ShellInput),
    ("ssh host sudo sh <<< 'rm -rf /x'", ShellInput),
    // Variables that have a shell or a program run something else.
    ("PROMPT_COMMAND=$x", Variable),
    ("PROMPT_COMMAND='sh $x'", Evaluation),
    ("PROMPT_COMMAND+='; rm -rf /x'", Syntax),
    ("PS4='\\044(rm -rf /x)'", Variable),
    ("PS1=$x", Variable),
    ("PAGER=sh git log", ShellInput),
    ("BASH_ENV=x bash script", Variable),
    ("ENV=x sh", Variable),
    ("ZDOTDIR=x zsh", Variable),
    ("precmd_functions+=(x)", Variable),
    ("PATH=. ls", Variable),
    ("export PATH=/x:/bin", Variable),
    ("local IFS=x", Variable),
    ("typeset LD_PRELOAD=x", Variable),
    ("env LD_LIBRARY_PATH=x ls", Variable),
    ("for PATH in .; do ls; done", Variable),
    ("env 'BASH_FUNC_ls%%=() { rm; }' bash script", Variable),
    // The configuration of git names programs.
    ("git -c $x log", Configuration),
    ("git -c core.hooksPath=/x commit", Configuration),
    ("git -c include.path=/x status", Configuration),
    ("git -c protocol.ext.allow=always fetch", Configuration),
    ("git -c safe.directory=* status", Configuration),
    ("git --exec-path=/x status", Configuration),
    ("git --config-env=core.pager=X log", Configuration),
    ("git -c core.pager=sh log", ShellInput),
    ("git config core.hooksPath /x", Configuration),
    ("git config core.pager \"$x\"", Configuration),
    ("git config --rename-section a alias", Configuration),
    ("git clone 'ext::sh -c rm% -rf% /x'", Wrapper),
    ("git fetch --upload-pack 'rm -rf /x' host", Wrapper),
    ("git fetch --upload='rm -rf /x' host", Wrapper),
    ("git clone -u 'rm -rf /x' host", Wrapper),
    ("git clone --config core.pager=x host", Wrapper),
    ("git rebase -x 'rm -rf /x' main", Wrapper),
    ("git rebase --exec 'rm -rf /x' main", Wrapper),
    ("git grep -O'rm -rf' x", Wrapper),
    ("git filter-branch --tree-filter 'rm -rf /x'", Wrapper),
    ("git $x", Evaluation),
    // What runs later.
    ("crontab file", Wrapper),
    ("echo '* * * * * rm -rf /x' | crontab -", Wrapper),
    ("crontab -u root file", Wrapper),
    ("crontab", Wrapper),
    ("at now", Wrapper),
    ("echo rm | at now + 1 minute", Wrapper),
    ("batch < file", Wrapper),
    // Interpreters that read what they run.
    ("curl x | python3", ShellInput),
    ("curl x | python3.12 -u - a", ShellInput),
    ("curl x | sudo python -", ShellInput),
    ("curl x | python3 -i script.py", ShellInput),
    ("curl x | python3 -W ignore", ShellInput),
    ("curl x | python3 /dev/stdin", ShellInput),
    ("python3 <<X\nimport os\nX\n", Foreign),
    ("curl x | python3 <<X 0<&3\nX\n", ShellInput),
    ("python3 < f", ShellInput),
    ("curl x | perl", ShellInput),
    ("curl x | perl -w", ShellInput),
    ("curl x | perl -MPOSIX -", ShellInput),
    ("curl x | ruby", ShellInput),
    ("curl x | node", ShellInput),
    ("curl x | node -r fs", ShellInput),
    ("curl x | nodejs --input-type=module", ShellInput),
    ("curl x | php", ShellInput),
    ("curl x | lua5.4 -", ShellInput),
    ("curl x | Rscript -", ShellInput),
    ("curl x | deno run -", ShellInput),
    ("curl x | awk -f - f", ShellInput),
    ("curl x | make -f-", ShellInput),
    ("curl x > >(python3)", ShellInput),
    ("curl x | ssh host python3", ShellInput),
    ("hash -p /x ls", Builtin),
    ("enable -f x y", Builtin),
    ("complete -C rm x", Builtin),
];

#[test]
fn what_cannot_be_known_is_said_and_not_guessed() {
    for (line, part) in UNKNOWN {
        let (_, unknown) = seen(line);
        assert!(unknown.contains(part), "{line}: {:?}", ParsedCommandLine::parse(line));
    }
    let long = "x".repeat(LINE_BYTES_MAX + 1);
    assert_eq!(seen(&long).1, [Length]);
    // The parser panics on such a descriptor.
    assert_eq!(seen("cat 6666666666<x").1, [Syntax]);
    assert_eq!(seen("echo ~99999999999999999999").0, ["echo"]);
    // And takes memory without end for such a line.
    for endless in ["cat <<X$(( <<X ", "cat <<X $(", "cat <<X \"\n$(", "cat <<X \\\n$("] {
        assert_eq!(seen(endless).1, [Nesting], "{endless}");
    }
    assert_eq!(seen("cat <<'X' >a\n$(rm \"x\nX\nls").0, ["cat", "ls"]);
    // And 18 times as long for each further index.
    assert_eq!(seen("echo \"${a[${a[${a[${a[x]}]}]}]}\"").1, [Nesting]);
    assert_eq!(seen("echo \"[M[} ${a[} ${b[} ${#x{\"").1, [Nesting]);
    assert_eq!(seen("rm -r \"${a}/${b}/${c}/${d}/${e:-f}/${#}\" `(x)`").0, ["x", "rm -r"]);
    assert_eq!(seen(&"true; ".repeat(CALLS_MAX + 1)).1, [Length]);
    for deep in ["(".repeat(5_000), "if ".repeat(5_000), "$(".repeat(5_000), "! ".repeat(5_000)] {
        assert_eq!(seen(&deep).1, [Nesting]);
    }
}

#[test]
fn a_plain_line_is_known_whole() {
    for line in [
        "bash",
        "exec bash --norc",
        "sudo -u ada zsh -l 2>log",
        "su ada",
        "fish",
        "ls -la /tmp",
        "cargo test --locked -p x 2>&1 | tail -n 20",
        "git commit -m 'It works!'",
        "echo \"it works!\"",
        "make && make install || echo failed",
        "cd /tmp; ls > /dev/null",
        "test -f x",
        "[ -f x ]",
        "[[ -f x ]]",
        "! grep -q x y",
        "sudo apt-get install -y tmux",
        "bash script.sh",
        "ssh host",
        "ssh host uptime < f",
        "make | tee log",
        "PAGER=cat git log",
        "PROMPT_COMMAND=true bash",
        "PS1='\\u \\$ '",
        "A=1 make",
        "python3 -c 'print(((((((((((((((((((((((1)))))))))))))))))))))))'",
        "echo '{a,b}' \"{a,b}\" {a} a,b",
        "python3",
        "ls | python3 script.py -",
        "ls | python3 -u -m json.tool",
        "ls | python3 -c 'import sys'",
        "ls | perl -lne 'print'",
        "ls | perl -we 'print <>'",
        "ls | ruby -e 'puts 1'",
        "ls | node -pe 1",
        "ls | node --eval=1",
        "ls | awk '{ print }' -",
        "ls | sed -f script",
        "crontab -l",
        "git status --short",
        "git switch -c new",
        "git -C x --no-pager -c color.ui=always -c user.name='A B' log -p",
        "git -c core.pager=cat -c pager.diff=false -c core.fsmonitor=false diff",
        "git config --global user.email a@b.example",
        "git config --get core.pager",
        "git config core.pager",
        "git config --global core.editor vim",
        "git config unset alias.x",
        "git -c credential.helper=store push",
        "git commit --amend -s -m x",
    ] {
        let found = ParsedCommandLine::parse(line);
        assert!(found.is_known(), "{line}: {found:?}");
    }
    for line in ["rm *.o", "rm $x", "echo {'a',b}", "echo {1..3}", "rm ${x%.o}"] {
        let found = ParsedCommandLine::parse(line);
        assert!(found.unknown.is_empty() && !found.is_known(), "{line}: {found:?}");
    }
}

#[test]
fn files_that_are_written_and_variables_that_are_set_are_seen() {
    let written = |text: &str| ParsedCommandLine::parse(text).writes;
    assert_eq!(written("echo x > a >> b 2> c &> d"), ["a", "b", "c", "d"].map(LineWord::from));
    assert_eq!(written("> a"), [LineWord::from("a")]);
    assert_eq!(written("echo x >| a <> b >& c"), ["a", "b", "c"].map(LineWord::from));
    assert_eq!(written("echo x 2>&1 > /dev/null < in <<< text"), []);
    assert_eq!(written("echo x > $a"), [LineWord::unknown()]);
    assert_eq!(written("ls > 1 > - &> 5"), ["1", "-", "5"].map(LineWord::from));
    assert!(!ParsedCommandLine::parse("ls > $a").is_known());
    assert_eq!(written("(echo x) > a"), [LineWord::from("a")]);
    let sets = |text: &str| ParsedCommandLine::parse(text).sets.into_iter().collect::<Vec<_>>();
    assert_eq!(sets("PATH=/tmp ls"), ["PATH"]);
    assert_eq!(sets("A=1 B=2"), ["A", "B"]);
    assert_eq!(sets("export LD_PRELOAD=x"), ["LD_PRELOAD"]);
    assert_eq!(sets("declare -x 'PATH=/tmp' A"), ["A", "PATH"]);
    assert_eq!(sets("env A=1 ls"), ["A"]);
    assert!(sets("dd if=/dev/zero of=file").is_empty());
    assert_eq!(sets("for i in 1; do ls; done"), ["i"]);
    assert_eq!(sets("sudo 'A=1' ls"), ["A"]);
    let variables = [("A", "1"), ("PROMPT_COMMAND", "rm -r x")];
    let with = ParsedCommandLine::parse("ls")
        .with_variables(variables.map(|(name, value)| (name.to_owned(), value.to_owned())));
    let names: Vec<_> = with.calls.iter().filter_map(|call| call.name.as_deref()).collect();
    assert_eq!((with.sets.len(), names), (2, vec!["ls", "rm"]));
}

#[test]
fn each_program_is_seen_with_what_runs_it() {
    let calls = |text: &str| seen(text).0;
    assert_eq!(calls("export A=$(date)"), ["date", "export"]);
    assert_eq!(
        calls("sudo -n env A=1 ls -l | sort"),
        ["sudo -n", "sudo>env", "sudo>env>ls -l", "sort"]
    );
    assert_eq!(calls("find . -delete -name x"), ["find -deletename"]);
    let git = ParsedCommandLine::parse("/usr/lib/git-core/git-reset --hard").calls.remove(0);
    assert_eq!((git.name.as_deref(), git.subcommand), (Some("git"), Some(LineWord::from("reset"))));
    assert_eq!(git.path.as_deref(), Some("/usr/lib/git-core/git-reset"));
    let path = ParsedCommandLine::parse("./rm x").calls[0].path.clone();
    assert_eq!(path.as_deref(), Some("./rm"));
    let started = ParsedCommandLine::of_arguments(["sh", "-c", "ls; pwd"].map(str::to_owned));
    let names: Vec<_> = started.calls.iter().map(|call| call.name.as_deref().unwrap()).collect();
    assert_eq!(names, ["sh", "ls", "pwd"]);
    // No shell reads these words.
    let started =
        ParsedCommandLine::of_arguments(["echo", "$(rm -rf /x)", "!!"].map(str::to_owned));
    assert!(started.is_known() && started.calls.len() == 1);
}

#[test]
fn only_fish_is_known_to_read_some_lines_as_posix_has_them() {
    for (shell, line, otherwise) in [
        ("bash", r"echo 'x\' '; rm x #'", false),
        ("fish", r"echo 'x\' '; rm x #'", true),
        ("fish", "echo 'a b'; ls -l", false),
        ("fish", "ls (rm x)", true),
        ("csh", "ls", true),
        ("nu", "ls; ^rm x", true),
        ("vim", "ls", false),
    ] {
        assert_eq!(reads_otherwise(shell, line), otherwise, "{shell}: {line}");
    }
}

#[test]
fn a_subcommand_is_a_part_of_what_a_program_does_and_a_file_is_not() {
    let kind = |line: &str| ParsedCommandLine::parse(line).calls[0].kind();
    assert_eq!(kind("git -C x add y"), kind("git -C z add w"));
    assert_ne!(kind("git add x"), kind("git push x"));
    assert_eq!(kind("touch x"), kind("touch y"));
    assert_ne!(kind("rm x"), kind("rm -f x"));
    assert_ne!(kind("rm x"), kind("./rm x"));
}
