#!/bin/sh
# scratch-clean.sh USER NAME FOLDER… removes the folder NAME of USER in each FOLDER, with the rights of
# USER, and prints each that it removed. USER is the user of this process if it is empty.
set -u
LC_ALL=C
export LC_ALL
# shellcheck source=run-user.sh
. "${0%/*}/run-user.sh"
user=${1:-$me} name=$2
shift 2
case $name in '' | . | .. | */*) echo "scratch-clean.sh: $name is no folder of a run" >&2 && exit 3 ;; esac
# shellcheck disable=SC2016 # expanded by the shell of USER
present='[ -e "$path/$name" ] || [ -L "$path/$name" ]'
for path; do
    why=$(why_not)
    if [ -z "$why" ]; then
        as_user "$present" >/dev/null || continue
        # shellcheck disable=SC2016
        why=$(as_user 'cd -P "$path" && rm -rf "./$name"')
    else
        eval "$present" || continue
        false
    fi || { printf '%s: %s\n' "$path/$name" "$why" >&2 && exit 74; }
    printf 'removed %s\n' "$path/$name"
done
