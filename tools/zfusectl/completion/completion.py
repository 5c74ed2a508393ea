#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Prints the completion of zfusectl for a shell, made from its table of commands.

usage: completion.py bash|zsh|fish COMMANDS.json
"""
import json
import sys

BASH = """\
# bash completion of zfusectl(8), made from its table of commands
_zfusectl()
{{
	local cur=${{COMP_WORDS[COMP_CWORD]}} prev=${{COMP_WORDS[COMP_CWORD - 1]}} command=${{COMP_WORDS[1]}}
	local at=$((COMP_CWORD - 1)) words='' action='' names='' second
	# bash takes --format=json apart.
	[[ $prev != = ]] || prev=${{COMP_WORDS[COMP_CWORD - 2]}}
	[[ $cur != = ]] || cur=''
	if [[ $command == help ]] && ((COMP_CWORD > 1)); then
		command=${{COMP_WORDS[2]}} at=$((at - 1)) prev=''
	fi
	case $command in
{groups}
	esac
	# A group that is a command, too, may have its operands there.
	second=${{COMP_WORDS[COMP_CWORD - at + 1]:-}}
	if ((at > 1)) && [[ -n $names && " $names " == *" $second "* ]]; then
		command+=" $second" at=$((at - 1)) names=''
	fi
	((at > 0)) || command=''
	case "$command $prev" in
{values}
	*)
		case $command in
{commands}
		esac
		;;
	esac
	if [[ -n $action && $cur != -* ]]; then
		compopt -o filenames 2>/dev/null
		((at < 2)) || names=''
		mapfile -t COMPREPLY < <(compgen -A "$action" -- "$cur"; compgen -W "$names" -- "$cur")
	else
		mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
	fi
}}
complete -F _zfusectl zfusectl
"""

ZSH = """\
#compdef zfusectl
# zsh completion of zfusectl(8), made from its table of commands
local command=$words[2]
local -a names subcommands=({subcommands})
if [[ $command == help ]] && (( CURRENT > 2 )); then
	shift words; (( CURRENT-- )); command=$words[2]
fi
case $command in
({groups})
	if (( CURRENT > 3 )) && [[ -n ${{(M)subcommands:#$command $words[3]}} ]]; then
		command+=" $words[3]"; shift words; (( CURRENT-- ))
	fi ;;
esac
(( CURRENT > 2 )) || command=
case $command in
{commands}
esac
"""

FISH = """\
# fish completion of zfusectl(8), made from its table of commands
function __zfusectl_is
	set -l words (commandline -opc)
	set -l count (math (count $argv) + 1)
	test (count $words) -ge $count; and test "$words[2..$count]" = "$argv"
end
function __zfusectl_begins
	set -l words (commandline -opc)
	test "$words" = "zfusectl $argv" -o "$words" = "zfusectl help $argv" -o "$words$argv" = zfusectl
end
complete -c zfusectl -f
complete -c zfusectl -n '__zfusectl_begins' -a help -d 'the options of a command'
{commands}
"""


def words_after(commands, first):
    """What may follow these first words of a name, with its help; a group is its own help."""
    found = {}
    for command in commands:
        name = command["name"].split()
        if len(name) > len(first) and name[: len(first)] == first:
            alone = len(name) == len(first) + 1
            found[name[len(first)]] = command["help"] if alone else found.get(name[len(first)], "")
    return found


def groups_of(commands):
    return list(dict.fromkeys(c["name"].split()[0] for c in commands if " " in c["name"]))


def names_in(commands, group):
    return " ".join(words_after(commands, [group]))


def command_of(commands, name):
    """The command of this name, or None: a group may be a command by itself, too."""
    return next((command for command in commands if command["name"] == name), None)


def wants_directory(command):
    return command["operands"][0].strip("[]") == "MOUNTPOINT"


def quote(text):
    return text.replace("'", "'\\''")


# ---- bash ----


def bash_values(command):
    for option in command["options"]:
        if option["value"]:
            letter = f"|\"{command['name']} -{option['letter']}\"" if option["letter"] else ""
            words = option["value"].replace("|", " ") if option["choice"] else ""
            action = " action=file" if option["file"] else ""
            yield f"\t\"{command['name']} --{option['name']}\"{letter}) words='{words}'{action} ;;"


def bash_command(command):
    options = " ".join(f"--{option['name']}" for option in command["options"])
    action = "directory" if wants_directory(command) else "file"
    return f"\t\t\"{command['name']}\") words='{options}' action={action} ;;"


def bash(commands):
    groups = groups_of(commands)
    lines = [f"\t\t'') words='{' '.join(words_after(commands, []))} help --help --version' ;;"]
    lines += [f"\t\t{group}) words='{names_in(commands, group)} --help' ;;"
              for group in groups if not command_of(commands, group)]
    lines += [bash_command(command) for command in commands]
    cases = "\n".join(f"\t{group}) names='{names_in(commands, group)}' ;;" for group in groups)
    values = "\n".join(line for command in commands for line in bash_values(command))
    return BASH.format(groups=cases, values=values, commands="\n".join(lines))


# ---- zsh ----


def zsh_names(commands, first):
    for name, text in words_after(commands, first).items():
        yield f"'{name}:{quote(text)}'" if text else name


def zsh_option(option):
    text = quote(option["help"]).replace("[", "\\[").replace("]", "\\]").replace(":", "\\:")
    value = ""
    if option["value"]:
        value = f":value:({option['value'].replace('|', ' ')})" if option["choice"] else f":{option['value']}:"
        value += "_files" if option["file"] else ""
    equals = "=" if option["value"] else ""
    forms = [f"--{option['name']}{equals}"] + ([f"-{option['letter']}"] if option["letter"] else [])
    return " ".join(f"'{form}[{text}]{value}'" for form in forms)


def zsh_arguments(command):
    options = " ".join(zsh_option(option) for option in command["options"])
    files = "_files -/" if wants_directory(command) else "_files"
    return f"shift words; (( CURRENT-- )); _arguments {options} '*:file:{files}'"


def zsh(commands):
    groups = groups_of(commands)
    lines = [f"(\"\") names=({' '.join(zsh_names(commands, []))} help); _describe command names ;;"]
    for group in groups:
        names = f"names=({' '.join(zsh_names(commands, [group]))}); _describe command names"
        if command_of(commands, group):
            names = f"(( CURRENT > 3 )) || {{ {names} }}; {zsh_arguments(command_of(commands, group))}"
        lines.append(f"({group}) {names} ;;")
    lines += [f"(\"{c['name']}\") {zsh_arguments(c)} ;;" for c in commands if c["name"] not in groups]
    subcommands = " ".join(f"'{command['name']}'" for command in commands if " " in command["name"])
    return ZSH.format(groups="|".join(groups), subcommands=subcommands, commands="\n".join(lines))


# ---- fish ----


def fish_names(commands, first):
    for name, text in words_after(commands, first).items():
        yield f"complete -c zfusectl -n '__zfusectl_begins {' '.join(first)}' -a {name} -d '{quote(text)}'"


def fish_command(command, commands):
    others = names_in(commands, command["name"])
    alone = f"; and not __fish_seen_subcommand_from {others}" if others else ""
    begin = f"complete -c zfusectl -n '__zfusectl_is {command['name']}{alone}'"
    for option in command["options"]:
        letter = f" -s {option['letter']}" if option["letter"] else ""
        value = " -rF" if option["file"] else " -x" if option["value"] else ""
        if option["choice"]:
            value += f" -a '{option['value'].replace('|', ' ')}'"
        yield f"{begin}{letter} -l {option['name']}{value} -d '{quote(option['help'])}'"
    yield f"{begin} -a '(__fish_complete_directories)'" if wants_directory(command) else f"{begin} -F"


def fish(commands):
    lines = [line for first in ([], *([group] for group in groups_of(commands))) for line in fish_names(commands, first)]
    lines += [line for command in commands for line in fish_command(command, commands)]
    return FISH.format(commands="\n".join(lines))


with open(sys.argv[2], encoding="ascii") as table:
    print({"bash": bash, "zsh": zsh, "fish": fish}[sys.argv[1]](json.load(table)), end="")
