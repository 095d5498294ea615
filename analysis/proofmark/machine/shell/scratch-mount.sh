#!/bin/sh
# Mounts a file system on this node, or takes away what was mounted so.
#
#   scratch-mount.sh look    POINT TYPE SOURCE           says what would be done; changes nothing
#   scratch-mount.sh mount   POINT TYPE SOURCE COMMAND   COMMAND is sh text
#   scratch-mount.sh unmount POINT TYPE SOURCE COMMAND   nothing but what `mount` mounted
#
# TYPE and SOURCE are those of /proc/mounts. What was mounted, and which directory was made for it, is
# noted under /run, which a reset empties as it empties the table of mounts. PROOFMARK_MOUNTS is
# another table of mounts, and PROOFMARK_WAIT_S the seconds that a mount may take to show or to go,
# for tests.
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

# The uppermost file system mounted right at POINT, as "TYPE SOURCE"; nothing if there is none.
mounted() {
    point=$point awk '{
        gsub(/\\040/, " ", $2)
        if ($2 == ENVIRON["point"]) found = $3 " " $1
    } END { if (found != "") print found }' "${PROOFMARK_MOUNTS:-/proc/mounts}"
}
said() { printf '| %s: %s on %s\n' "$1" "$type ($source)" "$point"; }
fail() { printf '%s: %s: %s\n' "$(uname -n)" "$point" "$1" >&2; exit 1; }

forget() { # takes away the directory that was made for the mount, if nothing is in it
    [ ! -s "$note" ] || rmdir "$point" 2>/dev/null
    rm -f "$note"
}

found=$(mounted)
case $verb in
look | mount)
    if [ "$found" = "$type $source" ]; then said there; exit 0; fi
    [ -z "$found" ] || fail "found $found; accepted: $type $source, or nothing mounted"
    if [ "$verb" = look ]; then said 'would mount'; exit 0; fi
    mkdir -p "$notes" || fail "cannot note in $notes what is mounted"
    # Before the act: a node that dies between the two is reset, and with it this note.
    : >"$note" || fail "cannot write $note"
    if [ ! -d "$point" ]; then
        # Another node of a shared root may make it in the same moment: then it is that one's.
        why=$(mkdir "$point" 2>&1) && echo made >"$note"
        [ -d "$point" ] || fail "cannot make the mount point: $why"
    fi
    why=$(sh -c "$command" 2>&1 </dev/null) || {
        forget
        fail "$(printf '%s' "$why" | tr '\n' ' ')"
    }
    # A mount in the background is there a moment later.
    waited=0
    while found=$(mounted); [ -z "$found" ] && [ "$waited" -lt "$wait_s" ]; do
        sleep 1
        waited=$((waited + 1))
    done
    [ -n "$found" ] || {
        forget
        fail "the mount command ended well, but nothing is mounted after $wait_s s"
    }
    [ "$found" = "$type $source" ] || fail "mounted $found; accepted: $type $source"
    said mounted
    ;;
unmount)
    if [ ! -e "$note" ]; then
        printf '| left: not mounted by this kit\n'
    elif [ -z "$found" ]; then
        forget
    else
        why=$(sh -c "$command" 2>&1 </dev/null) || fail "$(printf '%s' "$why" | tr '\n' ' ')"
        waited=0
        while [ -n "$(mounted)" ] && [ "$waited" -lt "$wait_s" ]; do # a FUSE daemon ends slowly
            sleep 1
            waited=$((waited + 1))
        done
        [ -z "$(mounted)" ] || fail "is still mounted after $wait_s s: $(mounted)"
        forget
        said unmounted
    fi
    ;;
*) usage ;;
esac
