#!/bin/sh
# missing-programs.sh PROGRAM...: prints a line for each program that this node cannot execute. A
# PROGRAM is a path or a name in PATH: "! no such program: NAME" or "! not executable: PATH".
# The script itself calls no program.
set -u
for program; do
    case $program in
        */*)
            if [ ! -f "$program" ]; then
                printf '! no such program: %s\n' "$program"
            elif [ ! -x "$program" ]; then
                printf '! not executable: %s\n' "$program"
            fi
            ;;
        *) command -v "$program" >/dev/null 2>&1 || printf '! no such program: %s\n' "$program" ;;
    esac
done
