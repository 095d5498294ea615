#!/bin/sh
# missing-programs.sh PATH...: are these programs here, and can they be executed?
set -eu
lost=0
for program; do
    if [ ! -f "$program" ]; then
        echo "$(uname -n): no such program: $program" >&2
        lost=1
    elif [ ! -x "$program" ]; then
        echo "$(uname -n): not executable: $program" >&2
        lost=1
    fi
done
exit "$lost"
