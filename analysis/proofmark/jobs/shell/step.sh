# shellcheck shell=sh disable=SC2153 # the head that stands before this in every run.sh sets them
# ---- below this line every step is alike -------------------------------------------------
# sh run.sh            runs the step; a finished step is repeated into again-<n>/, nothing is overwritten
# sh run.sh --launch   (own use) becomes the launcher, in a session of its own
# sh run.sh --rank …   (own use) notes where this rank is bound, then becomes the program
# sh run.sh --bind …   (own use) the same, but binds the rank to its seat first
HERE=$(CDPATH='' cd -- "${0%run.sh}." && pwd) || exit 74
read -r HOST </proc/sys/kernel/hostname

rank_number() { # of all ranks of the step, of however many copies of a program
	rank=${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${PMI_RANK:-${MP_CHILD:-${SLURM_PROCID:-0}}}}}
	rank=$((${FIRST_RANK:-0} + rank * ${RANK_STRIDE:-1}))
}

take_seat() { # binds this shell; if that cannot be done, what where_bound notes tells
	seat "$rank"
	[ -z "$CPUS" ] || taskset -cp "$CPUS" $$ >/dev/null
}

where_bound() { # one JSON line: rank, host, CPUs allowed, memory policy
	allowed=
	while read -r key value; do
		[ "$key" = Cpus_allowed_list: ] && allowed=$value && break
	done </proc/self/status
	policy=
	[ ! -r /proc/self/numa_maps ] || read -r _ policy _ </proc/self/numa_maps
	printf '{"rank": %s, "host": "%s", "cpus": "%s", "memory": "%s"}\n' \
		"$rank" "$HOST" "$allowed" "$policy" >"$BINDING/$rank"
}

case ${1-} in
--launch)
	# Of whoever started this step on every node: the program's own ranks begin anew.
	unset OMPI_COMM_WORLD_RANK PMIX_RANK PMI_RANK MP_CHILD SLURM_PROCID
	if [ -n "$SCRATCH" ]; then
		[ ! -e "$SCRATCH" ] || rm -rf "$SCRATCH"
		mkdir -p "$SCRATCH" || exit 73
	fi
	launch
	;;
--rank | --bind)
	rank_number
	[ "$1" = --rank ] || take_seat
	shift
	where_bound
	exec "$@"
	;;
esac

PROGRAM=
WATCHDOG=

centiseconds() { # since boot; no process is started
	read -r uptime _ </proc/uptime
	now=${uptime%.*}${uptime#*.}
}

cpu_ticks() { # CPU time until now in 1/100 s
	# Of all CPUs of the node: used by processes, and withheld by a hypervisor.
	read -r _ user nice system _ _ _ _ stolen _ </proc/stat
	busy=$((user + nice + system)) stolen=${stolen:-0}
	# Of the processes that this shell has waited for: cutime and cstime of proc(5), behind the name.
	read -r status </proc/$$/stat
	# shellcheck disable=SC2086 # one word a field
	set -- ${status##*) }
	own=$((${14} + ${15}))
}

signal_all() { # signal_all SIGNAL: to the program and all that came from it, whatever session it is in
	reached=0
	# shellcheck disable=SC2013 # these names have no blanks
	for found in $(grep -lzF "PROOFMARK_STEP=$OUT/" /proc/[0-9]*/environ 2>/dev/null); do
		found=${found#/proc/}
		kill "-$1" "${found%/environ}" 2>/dev/null && reached=$((reached + 1))
	done
}

kill_all() { # until there is nobody: who is just being started has no environment to be found by
	[ -z "$PROGRAM" ] || kill -KILL "-$PROGRAM" 2>/dev/null
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		signal_all KILL
		[ "$reached" != 0 ] || kill -0 "$WATCHDOG" 2>/dev/null || break # it ends with its sleep
		[ "$reached" -lt 2 ] || sleep 0.1
	done
}

stop_program() {
	signal_all TERM
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		kill -0 "$PROGRAM" 2>/dev/null || break
		sleep 0.2
	done
	kill_all
}

next_folder() { # next_folder PREFIX: makes the first free PREFIX-<n> and prints it
	n=1
	while [ -e "$HERE/$1-$n" ]; do n=$((n + 1)); done
	mkdir "$HERE/$1-$n" && echo "$HERE/$1-$n"
}

OUT=$HERE
if [ -e "$HERE/rc" ]; then
	OUT=$(next_folder again) || exit 74
	for input in $INPUTS; do cp "$HERE/$input" "$OUT/" || exit 74; done
elif [ -e "$HERE/started" ]; then
	read -r host process _ <"$HERE/started"
	if [ "$host" = "$HOST" ] && [ "$process" != $$ ] &&
		grep -qzF run.sh "/proc/$process/cmdline" 2>/dev/null; then
		echo "$STEP: runs already, as process $process" >&2
		exit 74
	fi
	kill_all # what a run.sh that was killed itself has left
	KEPT=$(next_folder interrupted) || exit 74
	for old in stdout stderr binding binding.json timed_out when.json $MADE started; do
		[ ! -e "$HERE/$old" ] || mv "$HERE/$old" "$KEPT/" || exit 74
	done
fi
START=$(date -u +%Y-%m-%dT%H:%M:%SZ)
cd "$OUT" && echo "$HOST $$ $START" >started || exit 74
BINDING=$OUT/binding
export BINDING SCRATCH
mkdir "$BINDING" || exit 74

INTERRUPTED=
# Once: a job repeats its signal, and a handler that is begun anew each time would never end.
trap 'INTERRUPTED=yes; trap "" INT TERM HUP; stop_program' INT TERM HUP
trap kill_all EXIT
centiseconds
cpu_ticks
BEGAN=$now BUSY=$busy STOLEN=$stolen OWN=$own
PROOFMARK_STEP=$OUT/ setsid sh "$HERE/run.sh" --launch </dev/null >stdout 2>stderr &
PROGRAM=$!
[ -z "$INTERRUPTED" ] || stop_program # the signal came before there was anything to stop
(
	PROOFMARK_STEP=$OUT/ sleep "$TIMEOUT" || exit 0 # ended together with the program
	echo "$TIMEOUT" >timed_out
	stop_program
) </dev/null >/dev/null 2>&1 &
WATCHDOG=$!

wait "$PROGRAM"
RC=$?
[ -z "$INTERRUPTED" ] || wait "$PROGRAM"
signal_all KILL # nothing that the program left behind may keep the scratch in use

if [ -n "$SCRATCH" ]; then
	rm -rf "$SCRATCH"
	rmdir "${SCRATCH%/*}" 2>/dev/null # the run's, after its last step
fi
if [ -n "$INTERRUPTED" ]; then
	echo "$STEP: interrupted; run it again to repeat it" >&2
	exit 143
fi
centiseconds
cpu_ticks
TOOK=$((now - BEGAN)) BUSY=$((busy - BUSY)) STOLEN=$((stolen - STOLEN)) OWN=$((own - OWN))
[ -n "$CHILDREN" ] || OWN=null
TIMED_OUT=false
if [ -e timed_out ]; then TIMED_OUT=true; fi
{
	echo '['
	{
		cat binding/* 2>/dev/null
		grep -h '^{"thread": ' stderr stdout # what OpenMP says of its threads
	} | sed '2,$s/^/,/'
	echo ']'
} >binding.json || exit 74
rm -rf binding
{
	printf '{"start": "%s", "end": "%s", "seconds": %d.%02d, "host": "%s", "timed_out": %s, "busy_ticks": %d, "stolen_ticks": %d, "own_ticks": %s}\n' \
		"$START" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" $((TOOK / 100)) $((TOOK % 100)) "$HOST" "$TIMED_OUT" \
		"$BUSY" "$STOLEN" "$OWN" >when.json &&
		echo "$RC" >rc.new && mv rc.new rc
} || {
	echo "$STEP: cannot write its result, is the disk full?" >&2
	exit 74
}
exit "$RC"
