# shellcheck shell=sh disable=SC2153 # the first lines of every run.sh set these variables
# ---- below this line all steps are the same ------------------------------------------------
# sh run.sh [--job]    runs the step in a new folder, unfinished-<n>/; its end renames this folder to
#                      execution-<n>/. With --job a job runs it, and not a person.
# sh run.sh --launch … (internal) becomes the launcher, in a new session
# sh run.sh --watchdog … (internal) stops the program at the time limit
# sh run.sh --watch …  (internal) looks at the files in scratch while the program runs
# sh run.sh --files …  (internal) reports whether this node can write into the scratch folder
# sh run.sh --sample … (internal) samples this node while the step runs
# sh run.sh --rank …   (internal) reports the binding of this rank, then becomes the program
# sh run.sh --bind …   (internal) the same, but binds the rank to its CPUs first
HERE=${0%run.sh} # a job calls node.sh with --files
HERE=$(CDPATH='' cd -- "${HERE%node.sh}." && pwd) || exit 74
read -r HOST </proc/sys/kernel/hostname

rank_number() { # sets rank: the number among all ranks of the step, also of several copies
	rank=${OMPI_COMM_WORLD_RANK:-${PMIX_RANK:-${PMI_RANK:-${MP_CHILD:-${SLURM_PROCID:-${FLUX_TASK_RANK:-${PALS_RANKID:-0}}}}}}}
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
	# The kernel lists CPUs that are offline, and such that the machine does not have, as allowed.
	read -r offline 2>/dev/null </sys/devices/system/cpu/offline
	[ -z "$offline" ] || allowed=$(taskset -cp $$) || allowed=
	allowed=${allowed##* }
	policy=
	[ ! -r /proc/self/numa_maps ] || read -r _ policy _ </proc/self/numa_maps
	printf '{"rank": %s, "host": "%s", "cpus": "%s", "memory": "%s"}\n' \
		"$rank" "$HOST" "$allowed" "$policy" >"$BINDING/$rank"
}

bind_threads() { # gives each OpenMP thread of this rank one of its CPUs
	rank_cpus "$rank"
	unset GOMP_CPU_AFFINITY KMP_AFFINITY # they would replace OMP_PLACES
	OMP_PLACES="{$(echo "$CPUS" | sed 's/,/},{/g')}" OMP_PROC_BIND=close
	export OMP_PLACES OMP_PROC_BIND
}

report_threads() { # report_threads PID: writes the CPUs that a thread of the rank PID has for itself
	# The threads exist after the first parallel region. For ranks, OMP_DISPLAY_AFFINITY would print
	# again for every region with another number of threads. libgomp before GCC 9 ignores it.
	pauses='0.1 0.1 0.2 0.4 0.8 1.6 3.2 6.4' last=
	while [ -d "/proc/$1" ]; do
		sleep "${pauses%% *}" || return
		pauses=${pauses#* }
		# The runtime has reported the threads: nothing else must read them while the program measures.
		[ "$THREADS" = bound ] || ! grep -qs '^{"thread": ' "${BINDING%binding}stderr" || return
		own=
		for status in /proc/"$1"/task/*/status; do
			allowed=
			while read -r key value; do
				[ "$key" = Cpus_allowed_list: ] && allowed=$value && break
			done 2>/dev/null <"$status"
			case $allowed in '' | *[!0-9]*) continue ;; esac
			case ,$own, in *",$allowed,"*) ;; *) own=$own${own:+,}$allowed ;; esac
		done
		if [ -z "$own" ] || [ "$own" = "$last" ]; then continue; fi
		last=$own
		printf '{"threads_of": %s, "host": "%s", "cpus": "%s"}\n' "$rank" "$HOST" "$own" \
			>"$BINDING/$rank.threads" || return
		missing=$CPUS,
		while [ -n "$missing" ]; do
			case ,$own, in *",${missing%%,*},"*) missing=${missing#*,} ;; *) continue 2 ;; esac
		done
		return
	done
}

signal_all() { # signal_all SIGNAL: to all processes with one of MARKS in their environment
	reached=0
	# shellcheck disable=SC2013 # these names have no blanks
	for environ in $(grep -lzF "$MARKS" /proc/[0-9]*/environ 2>/dev/null); do
		pid=${environ#/proc/}
		kill "-$1" "${pid%/environ}" 2>/dev/null && reached=$((reached + 1))
	done
}

end_group() { # end_group PID: a process that setsid starts, with its group
	# The first signal is refused if setsid has not run yet; then the process has no children.
	kill -KILL "-$1" 2>/dev/null || kill -KILL "$1" 2>/dev/null
	kill -KILL "-$1" 2>/dev/null
}

kill_all() { # repeated until no process is left: one that is being started has no environment yet
	[ -z "$PROGRAM" ] || end_group "$PROGRAM"
	[ ! -d "$CGROUP" ] || end_cgroup
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		signal_all KILL
		[ "$reached" != 0 ] || break
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

own_cgroups() { # sets GROUP: the longest line of /proc/self/cgroup; PARENT: the cgroup v2, if any
	GROUP=
	PARENT=
	while read -r line; do
		[ ${#line} -le ${#GROUP} ] || GROUP=$line
		case $line in 0::*) PARENT=${line#0::} ;; esac
	done 2>/dev/null </proc/self/cgroup
	for mount in /sys/fs/cgroup /sys/fs/cgroup/unified; do
		[ -z "$PARENT" ] || [ ! -e "$mount/cgroup.controllers" ] || {
			PARENT=$mount${PARENT%/}
			return
		}
	done
	PARENT=
}

make_cgroup() { # sets CGROUP: a new cgroup for the program; empty if this user cannot use one
	[ -n "$PARENT" ] && [ -w "$PARENT/cgroup.procs" ] || return
	CGROUP=$PARENT/proofmark-$HOST-$$
	mkdir "$CGROUP" 2>/dev/null && (echo 0 >"$CGROUP/cgroup.procs") 2>/dev/null && return
	rmdir "$CGROUP" 2>/dev/null
	CGROUP=
}

end_cgroup() { # ends all processes in CGROUP
	if [ -e "$CGROUP/cgroup.kill" ]; then
		echo 1 >"$CGROUP/cgroup.kill"
	else # Linux before 5.14
		while read -r pid; do kill -KILL "$pid" 2>/dev/null; done <"$CGROUP/cgroup.procs"
	fi
}

remove_cgroup() { # ends CGROUP; sets LEFT to the processes that cannot be ended
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		end_cgroup
		rmdir "$CGROUP" 2>/dev/null || rmdir "$CGROUP"/*/ "$CGROUP" 2>/dev/null || {
			sleep 0.1 # a process is being ended
			continue
		}
		CGROUP=
		return
	done
	while read -r pid; do LEFT="$LEFT $pid"; done <"$CGROUP/cgroup.procs"
}

process_facts() { # process_facts PID: sets name, state, parent, born, memory
	stat=
	while IFS= read -r line; do # a name may have line ends
		stat="$stat${stat:+
}$line"
	done 2>/dev/null <"/proc/$1/stat"
	name=${stat#*(} name=${name%)*}
	# shellcheck disable=SC2086 # one word per field
	set -- ${stat##*) }
	[ $# -ge 21 ] && state=$1 parent=$2 born=${20} memory=${21}
}

alive() { # alive PID: it has not ended
	process_facts "$1" && [ "$state" != Z ]
}

reap() { # reap PID: a killed process; one that waits for a dead file system is left alone
	polls=0
	while [ "$polls" -lt 100 ] && alive "$1"; do
		sleep 0.01
		polls=$((polls + 1))
	done
	alive "$1" || wait "$1" 2>/dev/null # it reports the signal
}

adopter() { # prints the process that becomes the parent of orphans
	read -r own _ </proc/self/stat
	{
		while read -r stat </proc/self/stat; do
			# shellcheck disable=SC2086 # one word per field
			set -- ${stat##*) }
			[ "$2" = "$own" ] || break
		done
		echo "$2"
	} &
}

ancestors() { # prints the processes above this shell; some may have started in the same moment
	process_facts $$
	while [ "$parent" != 0 ]; do
		printf '%s ' "$parent"
		process_facts "$parent" || break
	done
}

find_left() { # sets LEFT to orphans of this user and this cgroup that started during the step
	polls=0
	while [ "$polls" -lt 40 ]; do # a process may be about to end, on a loaded machine after seconds
		LEFT=
		polls=$((polls + 1))
		# shellcheck disable=SC2013 # these names have no blanks
		for cgroup in $(grep -lxF "$GROUP" /proc/[0-9]*/cgroup 2>/dev/null); do
			pid=${cgroup#/proc/} pid=${pid%/cgroup}
			# shellcheck disable=SC3067 # dash and busybox have -O
			if [ "$pid" = $$ ] || [ ! -O "/proc/$pid" ] || ! process_facts "$pid"; then continue; fi
			# A process that is ending has no memory and no environment. On a loaded machine it waits.
			if [ "$state" = Z ] || [ "$memory" = 0 ] || [ "$born" -lt "$BORN" ]; then continue; fi
			: "${ADOPTER:=$( (adopter))}" "${ANCESTORS:=$(ancestors)}"
			case " $ANCESTORS " in *" $pid "*) continue ;; esac
			[ "$parent" != "$ADOPTER" ] || other_step "$pid" || LEFT="$LEFT $pid"
		done
		[ -n "$LEFT" ] || return 0
		sleep 0.1
	done
}

other_step() { # other_step PID: it belongs to another step that runs on this machine
	grep -qzF "PROOFMARK_STEP=
PROOFMARK_HELPER=" "/proc/$1/environ" 2>/dev/null
}

json_text() { # json_text TEXT: sets json; an unusual text is written byte by byte
	case $1 in
	*[!A-Za-z0-9_.:+-]*)
		json=$(printf %s "$1" | od -An -v -tx1 | tr -d '\n' | sed 's/ *\([0-9a-f][0-9a-f]\)/\\u00\1/g')
		;;
	*) json=$1 ;;
	esac
}

describe_left() { # sets SURVIVORS: the processes in LEFT as a JSON list
	SURVIVORS=
	for pid in $LEFT; do
		process_facts "$pid" || continue
		json_text "$name"
		SURVIVORS="$SURVIVORS${SURVIVORS:+, }{\"pid\": $pid, \"name\": \"$json\"}"
	done
	SURVIVORS="[$SURVIVORS]"
}

case ${1-} in
--launch)
	alive "$2" || exit 74
	[ ! -e load.failed ] || exit 69
	# These variables are those of the launcher that started this step on every node.
	unset OMPI_COMM_WORLD_RANK PMIX_RANK PMI_RANK MP_CHILD SLURM_PROCID FLUX_TASK_RANK PALS_RANKID
	if [ -n "$SCRATCH" ]; then
		answers "$ANSWER_S" try_files >/dev/null 2>&1
		[ $? != "$NO_ANSWER" ] || {
			echo "the file system of $SCRATCH did not answer within $ANSWER_S s" >&2
			exit 73
		}
		if [ "$FILES" != read ]; then
			make_scratch || exit 73
			[ -z "$LAYOUT" ] || set_layout >&2 || exit 73
		elif [ ! -d "$SCRATCH" ]; then
			echo "$STEP: the files of another step are missing: $SCRATCH" >&2
			exit 73
		fi
		[ -z "$WRITES" ] || : >scratch.made
	fi
	for input in ${DIRECTORY:+$INPUTS}; do cp "$input" "$DIRECTORY/" || exit 73; done
	launch
	;;
--watchdog)
	alive "$2" || exit 0 # the script was killed before this process started
	MARKS=PROOFMARK_STEP=$OUT/
	PROOFMARK_STEP=$OUT/ sleep "$TIMEOUT" || exit 0 # ended by a later run.sh: this one was killed
	echo "$TIMEOUT" >timed_out
	stop_program
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		alive "$PROGRAM" || exit 0
		sleep 0.5
	done
	kill -URG "$2" # a file system keeps the program: run.sh waits no longer
	exit
	;;
--files)
	[ -z "$SCRATCH" ] || report_files "$2/$HOST"
	exit
	;;
--watch)
	alive "$2" || exit 0
	watch_scratch
	exit
	;;
--rank | --bind)
	rank_number
	[ "$1" = --rank ] || bind_rank
	shift
	report_binding
	[ "$THREADS" != bound ] || bind_threads
	# An orphan: the program has no child that it does not expect.
	[ -z "$THREADS" ] || (report_threads $$ &) </dev/null >/dev/null 2>&1
	start_sampler
	echo "$allowed" >"${BINDING%binding}noise/$HOST/$$" # the sampler finds this rank and its CPUs by it
	[ -z "$DIRECTORY" ] || cd "$DIRECTORY" || exit 73
	exec "$@"
	;;
--sample)
	sample_node "$2"
	exit
	;;
esac

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

claim() { # creates the first free unfinished-<n>; sets NUMBER and OUT
	NUMBER=1 failures=0
	while :; do
		OUT=$HERE/unfinished-$NUMBER PUBLISHED=$HERE/execution-$NUMBER
		if [ ! -e "$OUT" ] && [ ! -e "$PUBLISHED" ]; then
			if mkdir "$OUT" 2>/dev/null; then
				# Only the owner of unfinished-<n> creates execution-<n>.
				[ -e "$PUBLISHED" ] || return 0
				rmdir "$OUT"
			elif [ ! -e "$OUT" ] && [ ! -e "$PUBLISHED" ]; then
				# An execution that was refused may have removed its claim since mkdir.
				failures=$((failures + 1))
				[ "$failures" -eq 10 ] || continue
				echo "$STEP: cannot create a folder in $HERE" >&2
				return 1
			fi
		fi
		NUMBER=$((NUMBER + 1))
	done
}

refuse() { # refuse REASON: removes the claim
	echo "$STEP: $1" >&2
	rm -f "$OUT/started"
	rmdir "$OUT"
	exit 74
}

PROGRAM=
WATCHDOG=
WATCH=
SAMPLER=
LOADER=
CGROUP=
LEFT=
ADOPTER=
ANCESTORS=
BY=other
[ "${1-}" != --job ] || BY=job
for name in $HOSTS; do
	[ "$BY" = job ] || ! same_host "$name" "$HOST" || BY=planned
done

own_cgroups
START=$(date -u +%Y-%m-%dT%H:%M:%SZ)
read -r BOOT </proc/sys/kernel/random/boot_id
process_facts $$
BORN=$born
# Other executions wait for the file of a claim. So no process is started between both.
claim || exit 74
cd "$OUT" && echo "$HOST $$ $START $BY $BORN" >started || exit 74

# Of several executions that start at the same time, the one with the lowest number continues.
MARKS=
earlier=1
while [ "$earlier" -lt "$NUMBER" ]; do
	old=$HERE/unfinished-$earlier earlier=$((earlier + 1))
	for _ in 1 2 3 4 5 6 7 8 9 10; do # it may have been claimed in this moment
		if [ ! -d "$old" ] || [ -s "$old/started" ]; then break; fi
		sleep 0.1
	done
	[ -e "$old/started" ] || continue
	read -r host process _ _ began _ <"$old/started"
	case $process in '' | *[!0-9]*) continue ;; esac
	if [ "$host" != "$HOST" ]; then
		[ -z "$SCRATCH" ] || [ "$FILES" = read ] || [ ! -e "$SCRATCH" ] || refuse "$host uses its scratch, $SCRATCH"
		continue
	fi
	if alive "$process" && [ "$born" = "$began" ]; then
		refuse "runs already, as process $process"
	fi
	MARKS="$MARKS${MARKS:+
}PROOFMARK_STEP=$old/
PROOFMARK_HELPER=$old/"
	CGROUP=$PARENT/proofmark-$HOST-$process
	[ -z "$PARENT" ] || [ ! -d "$CGROUP" ] || remove_cgroup
done
CGROUP=
LEFT=
[ -z "$MARKS" ] || kill_all # the processes of a run.sh that was killed
MARKS=PROOFMARK_STEP=$OUT/

for input in $INPUTS; do cp "$HERE/$input" . || exit 74; done
PROOFMARK_HELPER=$OUT/ # marks sampler, watchdog and watch; stop_program sends them no signal
BINDING=$OUT/binding
export BINDING SCRATCH
mkdir "$BINDING" noise "noise/$HOST" || exit 74

INTERRUPTED=
STUCK=
# shellcheck disable=SC2317 # traps call it
interrupt() { # once: a job repeats its signal, and each would start the handler again
	[ -z "$INTERRUPTED" ] || return
	INTERRUPTED=yes
	trap '' INT TERM HUP ALRM USR1 USR2 XCPU
	stop_program
}
trap 'STUCK=yes' URG # the watchdog sends it after the time limit of the step
trap interrupt INT TERM HUP ALRM USR1 USR2 XCPU
[ -z "${SGE_ROOT-}" ] || trap '' USR1 # with -notify it is sent before a job is suspended
trap 'end_sampler; [ -z "$LOADER" ] || end_process "$LOADER"; kill_all; for own in $WATCHDOG $WATCH; do end_group "$own"; done; [ ! -d "$CGROUP" ] || remove_cgroup' EXIT
[ -z "$LOAD_RANKS" ] || start_load
make_cgroup
(
	export PROOFMARK_HELPER
	exec setsid sh "$HERE/run.sh" --sample $$
) </dev/null >/dev/null 2>&1 &
# shellcheck disable=SC2034 # noise.sh ends it
SAMPLER=$!
centiseconds
cpu_ticks
BEGAN=$now BUSY=$busy STOLEN=$stolen OWN=$own
(
	[ -z "$CGROUP" ] || echo 0 >"$CGROUP/cgroup.procs" || exit 74
	export PROOFMARK_STEP="$OUT/"
	exec setsid sh "$HERE/run.sh" --launch $$
) </dev/null >stdout 2>stderr &
PROGRAM=$!
if [ -z "$INTERRUPTED" ]; then
	(
		export OUT PROGRAM CGROUP PROOFMARK_HELPER
		exec setsid sh "$HERE/run.sh" --watchdog $$
	) </dev/null >/dev/null 2>&1 &
	WATCHDOG=$!
	case $WRITES in running*)
		(
			export OUT PROOFMARK_HELPER
			exec setsid sh "$HERE/run.sh" --watch $$
		) </dev/null >/dev/null 2>&1 &
		WATCH=$!
		;;
	esac
else # the signal came before the program was started
	stop_program
fi

wait "$PROGRAM"
RC=$?
[ -z "$STUCK" ] || RC=137
polls=0
while [ -n "$INTERRUPTED" ] && [ "$polls" -lt 50 ] && alive "$PROGRAM"; do
	sleep 0.1
	polls=$((polls + 1))
done
kill -KILL "-$PROGRAM" 2>/dev/null
PROGRAM=
[ -z "$LOAD_RANKS" ] || report_load
end_sampler
for own in $WATCHDOG $WATCH; do
	end_group "$own"
	reap "$own"
done
WATCHDOG=
WATCH=
kill_all # processes that the program left behind could keep the scratch in use
CHECK=yes
if [ -d "$CGROUP" ]; then
	remove_cgroup
	CHECK=
fi

[ -z "$SCRATCH" ] || leave_scratch
if [ -n "$INTERRUPTED" ]; then
	echo "$STEP: interrupted; run it again to repeat it" >&2
	# After a cancel a scheduler may start no process on this node, which the job could ask to probe it.
	if [ "$BY" = planned ] && [ -n "${PROOFMARK_ATTEMPT-}" ]; then
		job=${HERE%/steps/*}/jobs/${PROOFMARK_ATTEMPT%/*}
		sh "$job/job.sh" --probe after "$job/${PROOFMARK_ATTEMPT##*/}"
	fi
	exit 143
fi
centiseconds
cpu_ticks
ENDED=$(date +%s.%N)
case $ENDED in *[!0-9.]*) ENDED=$(date +%s) ;; esac # not every date has %N
TOOK=$((now - BEGAN)) BUSY=$((busy - BUSY)) STOLEN=$((stolen - STOLEN)) OWN=$((own - OWN))
[ -n "$CHILDREN" ] || OWN=null
if [ -n "$CHECK" ] && [ -z "$GROUP" ]; then
	SURVIVORS=null # this system does not report cgroups
else
	[ -z "$CHECK" ] || find_left
	describe_left
fi
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
judge_noise || exit 74

digests() { # writes the SHA-256 of each output; without it the figures are INVALID
	set -- started stdout stderr rc when.json binding.json noise.json
	for also in copies.json scratch.json files.json layout.txt load.json telemetry.jsonl; do
		[ ! -f "$also" ] || set -- "$@" "$also"
	done
	[ -z "$MADE" ] || [ ! -f "$MADE" ] || set -- "$@" "$MADE"
	if command -v sha256sum >/dev/null; then
		sha256sum "$@" >outputs.sha256
	elif command -v openssl >/dev/null; then
		openssl dgst -sha256 -r "$@" >outputs.sha256
	else
		echo "$STEP: no program for SHA-256: sha256sum or openssl" >&2
	fi
}

{
	printf '{"start": "%s", "end": "%s", "ended": %s, "seconds": %d.%02d, "host": "%s", "timed_out": %s, "busy_ticks": %d, "stolen_ticks": %d, "own_ticks": %s, "attempt": "%s", "boot": "%s", "survivors": %s}\n' \
		"$START" "$(date -u +%Y-%m-%dT%H:%M:%SZ)" "$ENDED" $((TOOK / 100)) $((TOOK % 100)) "$HOST" "$TIMED_OUT" \
		"$BUSY" "$STOLEN" "$OWN" "${PROOFMARK_ATTEMPT-}" "$BOOT" "$SURVIVORS" >when.json &&
		echo "$RC" >rc && digests && [ ! -e "$PUBLISHED" ] && mv "$OUT" "$PUBLISHED"
} || {
	echo "$STEP: cannot write its result, is the disk full?" >&2
	exit 74
}
trap - EXIT
exit "$RC"
