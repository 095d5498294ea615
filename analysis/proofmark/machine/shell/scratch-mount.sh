#!/bin/sh
# scratch-mount.sh mounts a file system on this node, or unmounts one that it mounted.
#
#   scratch-mount.sh look    POINT TYPE SOURCE           prints what would be done; changes nothing
#   scratch-mount.sh mount   POINT TYPE SOURCE COMMAND   COMMAND is sh text
#   scratch-mount.sh unmount POINT TYPE SOURCE COMMAND   only what `mount` mounted
#
# TYPE and SOURCE are those of /proc/mounts. A note under /run has what was mounted, and whether the
# directory was made for it. A reset empties /run and the table of mounts. For tests: PROOFMARK_MOUNTS
# is another table of mounts, PROOFMARK_WAIT_S the seconds until a mount must be in the table or
# absent from it.
set -u
LC_ALL=C
export LC_ALL
usage() { echo "usage: scratch-mount.sh look|mount|unmount POINT TYPE SOURCE [COMMAND]" >&2; exit 3; }
[ $# -ge 4 ] || usage
verb=$1 point=$2 type=$3 source=$4 command=${5-}
case $point in /?*) ;; *) usage ;; esac
notes=${PROOFMARK_NOTES:-/run/proofmark/mounts}
note=$notes/$(printf %s "$point" | tr / -)
wait_s=${PROOFMARK_WAIT_S:-30}

# Prints the uppermost file system at POINT as "TYPE SOURCE", or nothing.
mounted() {
    point=$point awk '{
        gsub(/\\040/, " ", $2)
        if ($2 == ENVIRON["point"]) found = $3 " " $1
    } END { if (found != "") print found }' "${PROOFMARK_MOUNTS:-/proc/mounts}"
}
report() { printf '| %s: %s on %s\n' "$1" "$type ($source)" "$point"; }
fail() { printf '%s: %s: %s\n' "$(uname -n)" "$point" "$1" >&2; exit 1; }

remove_note() { # and the directory that was made for the mount, if it is empty
    [ ! -s "$note" ] || rmdir "$point" 2>/dev/null
    rm -f "$note"
}

current=$(mounted)
case $verb in
look | mount)
    if [ "$current" = "$type $source" ]; then report there; exit 0; fi
    [ -z "$current" ] || fail "found $current; accepted: $type $source, or nothing mounted"
    if [ "$verb" = look ]; then report 'would mount'; exit 0; fi
    mkdir -p "$notes" || fail "cannot note in $notes what is mounted"
    # Before the mount: if the node dies between the two, its reset removes this note, too.
    : >"$note" || fail "cannot write $note"
    if [ ! -d "$point" ]; then
        # Another node with the same root file system may make it at this moment; it has the note.
        why=$(mkdir "$point" 2>&1) && echo made >"$note"
        [ -d "$point" ] || fail "cannot make the mount point: $why"
    fi
    why=$(sh -c "$command" 2>&1 </dev/null) || {
        remove_note
        fail "$(printf '%s' "$why" | tr '\n' ' ')"
    }
    # A mount in the background is in the table a moment later.
    waited=0
    while current=$(mounted); [ -z "$current" ] && [ "$waited" -lt "$wait_s" ]; do
        sleep 1
        waited=$((waited + 1))
    done
    [ -n "$current" ] || {
        remove_note
        fail "the exit code of the mount command is 0, but nothing is mounted after $wait_s s"
    }
    [ "$current" = "$type $source" ] || fail "mounted $current; accepted: $type $source"
    report mounted
    ;;
unmount)
    if [ ! -e "$note" ]; then
        printf '| left: not mounted by this kit\n'
    elif [ -z "$current" ]; then
        remove_note
    else
        why=$(sh -c "$command" 2>&1 </dev/null) || fail "$(printf '%s' "$why" | tr '\n' ' ')"
        waited=0
        while [ -n "$(mounted)" ] && [ "$waited" -lt "$wait_s" ]; do # a FUSE daemon ends slowly
            sleep 1
            waited=$((waited + 1))
        done
        [ -z "$(mounted)" ] || fail "is still mounted after $wait_s s: $(mounted)"
        remove_note
        report unmounted
    fi
    ;;
*) usage ;;
esac
