#!/bin/sh
# scratch-probe.sh reports on the scratch directory of this node: named sections, as probe.sh prints.
#
#   sh scratch-probe.sh [-u USER] [-c] [-w] [-s SET] [-g GET] [-k NAME | -r NAME | -d NAME]
#       [-m SOURCE] DIRECTORY
#
# Without options it changes nothing. -c makes the directory if its parent exists. -w writes, reads and
# removes a small file. SET and GET are commands as sh text: one sets the layout of new files, the
# other prints it. -k writes a file that other nodes read by -r; -d removes it. With -r, -w writes only
# where this file is. USER, who will run the benchmarks, does all of this (default: the user of this
# process). The section source repeats SOURCE if the file system of DIRECTORY has it, perhaps by the
# addresses of its hosts.
set -u
LC_ALL=C
export LC_ALL
usage() { echo 'usage: scratch-probe.sh [-u USER] [-cw] [-s SET] [-g GET] [-krd NAME] [-m SOURCE] DIRECTORY' >&2; exit 3; }
# shellcheck source=run-user.sh
. "${0%/*}/run-user.sh"
user=$me create='' write='' set='' get='' shared='' name='' wanted=''
while getopts u:cws:g:k:r:d:m: option; do
    case $option in
    u) user=$OPTARG ;;
    c) create=yes ;;
    w) write=yes ;;
    s) set=$OPTARG ;;
    g) get=$OPTARG ;;
    m) wanted=$OPTARG ;;
    k | r | d) shared=$option name=$OPTARG ;;
    *) usage ;;
    esac
done
shift $((OPTIND - 1))
[ $# -eq 1 ] || usage
case $1 in /*) path=$1 ;; *) usage ;; esac
while [ "${path%/}" != "$path" ] && [ "$path" != / ]; do path=${path%/}; done

section() { printf '=== %s\n' "$1"; }
fact() { printf '| %s: %s\n' "$1" "$2"; }
absent() { printf '! %s: %s\n' "$1" "$2"; }
one_line() { tr '\n' ' ' | sed 's/ *$//'; }

# shellcheck disable=SC2016 # expanded by the shell of USER
make_text='mkdir -m 700 "$path"'
# shellcheck disable=SC2016
write_text='
    file=$(mktemp "$path/.proofmark-XXXXXXXX" 2>&1) || { echo "$file"; exit 1; }
    text="written by $(id -un) on $(uname -n)"
    trap "rm -f \"$file\" 2>/dev/null" EXIT
    output=$(echo "$text" | dd conv=fsync 2>&1 >"$file") || { echo "$output"; exit 1; }
    read=$(cat "$file") || exit 1
    [ "$read" = "$text" ] || { echo "read \"$read\" where \"$text\" was written"; exit 1; }
    rm "$file"
'

# shellcheck disable=SC2016
keep_text='set -C; echo "$name" >"$path/.proofmark-$name"' # -C: follows no link of another user
# shellcheck disable=SC2016
read_text='cat "$path/.proofmark-$name"'
# shellcheck disable=SC2016
remove_text='rm -f "$path/.proofmark-$name"'

make_directory() {
    parent=${path%/*}
    [ ! -e "$path" ] && [ -d "${parent:-/}" ] || return
    # USER first: a parallel file system may squash root. Then root: USER may not be allowed to
    # write in the parent. Another user could put a link in place of what root makes.
    why=$(as_user "$make_text")
    if [ ! -d "$path" ] && [ "$(id -u)" = 0 ]; then
        other=$(foreign_part "$path" 0)
        if [ -z "$other" ]; then why=$(mkdir -m 700 "$path" 2>&1) && why=$(chown -h "$user" "$path" 2>&1)
        else why="$why; root does not make it: $other"; fi
    fi
    if [ -d "$path" ]; then fact created "$path"
    else absent directory.created "$(printf '%s' "$why" | one_line)"; fi
}

# Prints the line of /proc/mounts of DIRECTORY: the longest mount point, and of equal ones the last.
mount_of() { # DIRECTORY
    real=$(cd "$1" 2>/dev/null && pwd -P) || real=$1
    real=$real awk '{
        target = $2
        gsub(/\\040/, " ", target)
        inside = target == "/" || ENVIRON["real"] == target || index(ENVIRON["real"], target "/") == 1
        if (inside && length(target) >= longest) { longest = length(target); line = $0 }
    } END { print line }' "${PROOFMARK_MOUNTS:-/proc/mounts}"
}

set_layout() {
    before=$(as_user "${get:-:}")
    if output=$(as_user "$set"); then
        if [ -z "$get" ] || [ "$(as_user "$get")" != "$before" ]; then fact set "$set"; fi
    else absent layout.set "$(printf '%s' "$output" | one_line)"; fi
}

report() { # SECTION SH-TEXT: a section with its output, or why it failed
    section "$1"
    if output=$(as_user "$2"); then printf '%s\n' "$output" | sed 's/^/| /'
    else absent "$1" "$(printf '%s' "${output:-failed without a message}" | one_line)"; fi
}

try_to_write() {
    why=$(as_user "$write_text") && why=ok
    fact result "$(printf '%s' "${why:-failed without a message}" | one_line)"
}

printf 'proofmark-probe 1 scratch\n'
section host
fact hostname "$(uname -n)"
fact user "$user"
section directory
fact path "$path"
barred=$(why_not)
[ -z "$create" ] || [ -n "$barred" ] || make_directory
[ -z "$set" ] || [ -n "$barred" ] || set_layout
nearest=$path
until [ -d "$nearest" ]; do
    nearest=${nearest%/*}
    nearest=${nearest:-/}
done
fact nearest "$nearest"
fact device "$(stat -c %d "$nearest")"
fact root_device "$(stat -c %d /)"
fact available "$(stat -f -c '%a %S' "$nearest")"
section mount
mount=$(mount_of "$nearest")
printf '| %s\n' "$mount"
if [ -n "$wanted" ]; then
    # shellcheck source=mount-source.sh
    . "${0%/*}/mount-source.sh"
    section source
    ! same_source "$(printf '%s' "${mount%% *}" | sed 's/\\040/ /g')" "$wanted" || printf '| %s\n' "$wanted"
fi
section quota
if ! command -v quota >/dev/null; then absent quota 'no such tool: quota'
elif [ -n "$barred" ]; then absent quota "$barred"
else as_user 'quota -w -p' | sed 's/^/| /'; fi
section write
if [ -n "$barred" ]; then fact result "$barred"
elif [ -z "$write" ]; then absent write 'not tried'
elif [ "$shared" = r ] && ! as_user "$read_text" >/dev/null; then absent write 'the file of the first node is not here'
elif [ ! -d "$path" ]; then fact result 'no such directory'
else try_to_write; fi
[ -z "$get" ] || [ -n "$barred" ] || report layout "$get"
[ -z "$barred" ] || shared=''
case $shared in
k) report shared "$keep_text && $read_text" ;;
r) report shared "$read_text" ;;
d) report shared "$remove_text" ;;
esac
printf '=== end\n'
