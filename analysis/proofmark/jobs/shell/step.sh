# shellcheck shell=sh disable=SC2153 # the first lines of every run.sh set these variables
# ---- below this line all steps are the same ------------------------------------------------
# sh run.sh            runs the step; a finished step is repeated in again-<n>/, no file is overwritten
# sh run.sh --launch   (internal) becomes the launcher, in a new session
# sh run.sh --rank …   (internal) reports the binding of this rank, then becomes the program
# sh run.sh --bind …   (internal) the same, but binds the rank to its CPUs first
HERE=$(CDPATH='' cd -- "${0%run.sh}." && pwd) || exit 74
read -r HOST </proc/sys/kernel/hostname

rank_number() { # sets rank: the number among all ranks of the step, also of several copies
	rank=${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${PMI_RANK:-${MP_CHILD:-${SLURM_PROCID:-0}}}}}
	rank=$((${FIRST_RANK:-0} + rank * ${RANK_STRIDE:-1}))
}

bind_rank() { # binds this shell; report_binding shows if that failed
	rank_cpus "$rank"
	[ -z "$CPUS" ] || taskset -cp "$CPUS" $$ >/dev/null
}

report_binding() { # writes one JSON line: rank, host, allowed CPUs, memory policy
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
	# These variables are those of the launcher that started this step on every node.
	unset OMPI_COMM_WORLD_RANK PMIX_RANK PMI_RANK MP_CHILD SLURM_PROCID
	if [ -n "$SCRATCH" ]; then
		[ ! -e "$SCRATCH" ] || rm -rf "$SCRATCH"
		# Another node may remove the folder of the step, which is empty, before this makes its own.
		mkdir -p "$SCRATCH" 2>/dev/null || mkdir -p "$SCRATCH" 2>/dev/null ||
			mkdir -p "$SCRATCH" || exit 73
	fi
	launch
	;;
--rank | --bind)
	rank_number
	[ "$1" = --rank ] || bind_rank
	shift
	report_binding
	exec "$@"
	;;
esac

PROGRAM=
WATCHDOG=

centiseconds() { # sets now: 1/100 s since boot; it starts no process
	read -r uptime _ </proc/uptime
	now=${uptime%.*}${uptime#*.}
}

cpu_ticks() { # sets busy, stolen, own: CPU time in 1/100 s
	# busy, stolen: on all CPUs of the node, used by processes and withheld by a hypervisor.
	read -r _ user nice system _ _ _ _ stolen _ </proc/stat
	busy=$((user + nice + system)) stolen=${stolen:-0}
	# own: of the processes that this shell has waited for, cutime + cstime in proc(5).
	read -r status </proc/$$/stat
	# shellcheck disable=SC2086 # one word per field
	set -- ${status##*) }
	own=$((${14} + ${15}))
}

signal_all() { # signal_all SIGNAL: to the program and all its descendants, in any session
	reached=0
	# shellcheck disable=SC2013 # these names have no blanks
	for environ in $(grep -lzF "PROOFMARK_STEP=$OUT/" /proc/[0-9]*/environ 2>/dev/null); do
		pid=${environ#/proc/}
		kill "-$1" "${pid%/environ}" 2>/dev/null && reached=$((reached + 1))
	done
}

kill_all() { # repeated until no process is left: one that is being started has no environment yet
	[ -z "$PROGRAM" ] || kill -KILL "-$PROGRAM" 2>/dev/null
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		signal_all KILL
		[ "$reached" != 0 ] || kill -0 "$WATCHDOG" 2>/dev/null || break # the watchdog ends with its sleep
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

next_folder() { # next_folder PREFIX: creates the first free PREFIX-<n> and prints it
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
	kill_all # the processes of a run.sh that was killed
	KEPT=$(next_folder interrupted) || exit 74
	for old in stdout stderr binding binding.json timed_out when.json $MADE started; do
		[ ! -e "$HERE/$old" ] || mv "$HERE/$old" "$KEPT/" || exit 74
	done
fi
START=$(date -u +%Y-%m-%dT%H:%M:%SZ)
read -r BOOT </proc/sys/kernel/random/boot_id
cd "$OUT" && echo "$HOST $$ $START" >started || exit 74
BINDING=$OUT/binding
export BINDING SCRATCH
mkdir "$BINDING" || exit 74

INTERRUPTED=
# The handler runs once: a job repeats its signal, and each would start the handler again.
trap 'INTERRUPTED=yes; trap "" INT TERM HUP; stop_program' INT TERM HUP
trap kill_all EXIT
centiseconds
cpu_ticks
BEGAN=$now BUSY=$busy STOLEN=$stolen OWN=$own
PROOFMARK_STEP=$OUT/ setsid sh "$HERE/run.sh" --launch </dev/null >stdout 2>stderr &
PROGRAM=$!
[ -z "$INTERRUPTED" ] || stop_program # the signal came before the program was started
(
	PROOFMARK_STEP=$OUT/ sleep "$TIMEOUT" || exit 0 # it was ended together with the program
	echo "$TIMEOUT" >timed_out
	stop_program
) </dev/null >/dev/null 2>&1 &
WATCHDOG=$!

wait "$PROGRAM"
RC=$?
[ -z "$INTERRUPTED" ] || wait "$PROGRAM"
signal_all KILL # processes that the program left behind could keep the scratch in use

if [ -n "$SCRATCH" ]; then
	rm -rf "$SCRATCH"
	rmdir "${SCRATCH%/*}" 2>/dev/null # the scratch of the run, after its last step
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
		grep -h '^{"thread": ' stderr stdout # the reports of OpenMP threads
	} | sed '2,$s/^/,/'
	echo ']'
} >binding.json || exit 74
rm -rf binding
{
	printf '{"start": "%s", "end": "%s", "seconds": %d.%02d, "host": "%s", "timed_out": %s, "busy_ticks": %d, "stolen_ticks": %d, "own_ticks": %s, "attempt": "%s", "boot": "%s"}\n' \
		"$START" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" $((TOOK / 100)) $((TOOK % 100)) "$HOST" "$TIMED_OUT" \
		"$BUSY" "$STOLEN" "$OWN" "${PROOFMARK_ATTEMPT-}" "$BOOT" >when.json &&
		echo "$RC" >rc.new && mv rc.new rc
} || {
	echo "$STEP: cannot write its result, is the disk full?" >&2
	exit 74
}
exit "$RC"
