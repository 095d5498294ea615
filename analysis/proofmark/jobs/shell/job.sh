# shellcheck shell=sh disable=SC2153 # the first lines of every job.sh set these variables
# sh job.sh                      runs the job
# sh job.sh --probe WHAT FOLDER  (internal) stores the probe of this node, before or after the steps
# sh job.sh --network WHEN FOLDER  (internal) stores the counters of the networks of this node
# sh job.sh --stay FOLDER HOST    (internal) probes this node when the job is stopped, unless it is HOST
# A job is a loop over step folders. A step that has a result is not run again, so a job that was
# killed continues where it stopped. With AGAIN=yes it is run again. A step with a colon and a
# number is run by each node of the job alone, for at most this number of seconds.
# Exit: 0 all steps have run, 65 a node cannot run the programs, 74 a result could not be written,
# 143 the job was stopped.
cd "$RUN" || exit 74
read -r HOST </proc/sys/kernel/hostname
STOPPED=
OWN=$RUN/jobs/ # marks what waits for this job: a step must not take it for a process left behind
# What schedulers send before SIGKILL, at a time limit or for a cancel, to all processes of a job: Flux
# SIGALRM and SIGHUP, LSF SIGUSR2 and SIGINT, Grid Engine SIGUSR2 and SIGXCPU, all of them SIGTERM.
SIGNALS='INT TERM HUP ALRM USR1 USR2 XCPU'
if [ -n "${SGE_ROOT-}" ]; then # with -notify it is sent before a job is suspended, and at a soft limit
	trap '' USR1
	SIGNALS='INT TERM HUP ALRM USR2 XCPU'
fi

if [ "${1-}" = --stay ]; then
	[ "$HOST" != "$3" ] || exit 0
	STEP=
	# Before the start of sleep: a signal at any time ends only sleep. By SIGKILL: a process that is
	# being started may lose any other signal.
	# shellcheck disable=SC2086 # one word a signal
	trap 'STOPPED=yes; [ -z "$STEP" ] || kill -KILL "$STEP" 2>/dev/null' $SIGNALS
	PROOFMARK_HELPER=$OWN sleep 100000000 &
	STEP=$!
	[ -z "$STOPPED" ] || kill -KILL "$STEP" 2>/dev/null
	wait "$STEP"
	[ ! -e "$2/finished" ] || exit 0
	# shellcheck disable=SC2086
	trap '' $SIGNALS # also for the probe
	set -- --probe after "$2"
fi

if [ "${1-}" = --probe ]; then
	when=before
	[ "$2" = facts ] || when=after
	# Two processes can probe a node that is stopped: its step, and the job.
	new=$3/$HOST.$when.$$.new
	sh probe.sh "$2" >"$new" && mv "$new" "$3/$HOST.$when" && exit
	exit 74
fi

if [ "${1-}" = --network ]; then
	sh network.sh "$2" >"$3/$HOST.$2.new" && mv "$3/$HOST.$2.new" "$3/$HOST.$2" && exit
	exit 74
fi

attempt=1
while [ -e "jobs/$JOB/attempt-$attempt" ]; do attempt=$((attempt + 1)); done
NOTES=jobs/$JOB/attempt-$attempt
PROOFMARK_ATTEMPT=$JOB/attempt-$attempt # the steps write it into when.json
export PROOFMARK_ATTEMPT
mkdir "$NOTES" || exit 74
trap 'code=$?; echo "$code" >"$NOTES/exit.new" && mv "$NOTES/exit.new" "$NOTES/exit"' EXIT
read -r BEGAN _ </proc/uptime

STEP=
# shellcheck disable=SC2317 # a trap calls it
stop() { # at once: the scheduler may kill this shell while the nodes are probed
	if [ -z "$STOPPED" ]; then
		STOPPED=yes
		echo 143 >"$NOTES/exit"
		read -r now _ </proc/uptime
		echo $((${now%.*} - ${BEGAN%.*})) >"$NOTES/stopped"
	fi
	[ -z "$STEP" ] || kill -TERM "$STEP" 2>/dev/null
}
# shellcheck disable=SC2086 # one word a signal
trap stop $SIGNALS

run() { # run COMMAND…: in the background, so that the shell handles a signal immediately
	"$@" &
	STEP=$!
	[ -n "$STOPPED" ] || wait "$STEP"
	RC=$?
	# Repeated until it has ended: a script that is being started loses a signal.
	while [ -n "$STOPPED" ] && kill -TERM "$STEP" 2>/dev/null; do sleep 0.2; done
	STEP=
	return "$RC"
}

everywhere() { # everywhere SECONDS ARGUMENTS…: sh ARGUMENTS on every node, for at most SECONDS
	seconds=$1
	shift
	if [ "$NODES" = 1 ]; then
		run sh "$@"
		return
	fi
	run bounded "$seconds" "$@"
}

bounded() {
	seconds=$1
	shift
	all=
	early=
	# shellcheck disable=SC2086 # one word a signal
	trap 'early=yes; [ -z "$all" ] || kill -TERM "$all" 2>/dev/null' $SIGNALS
	on_all "$@" &
	all=$!
	[ -z "$early" ] || kill -TERM "$all" 2>/dev/null
	(
		# A process that is being started may lose any signal but KILL.
		trap '[ "$!" = "$all" ] || kill -KILL "$!"; exit' TERM
		PROOFMARK_HELPER=$OWN sleep "$seconds" &
		wait "$!"
		kill -TERM "$all" 2>/dev/null
		PROOFMARK_HELPER=$OWN sleep 10 &
		wait "$!"
		kill -KILL "$all" 2>/dev/null
	) </dev/null >/dev/null 2>&1 &
	watch=$!
	wait "$all"
	code=$?
	while kill -0 "$all" 2>/dev/null; do wait "$all"; done # a signal ended the first wait
	kill -TERM "$watch" 2>/dev/null
	return "$code"
}

probe_at_stop() { # probes every node once, for at most 20 s; further signals change nothing
	# shellcheck disable=SC2086 # one word a signal
	trap : $SIGNALS
	bounded 20 "$RUN/jobs/$JOB/job.sh" --probe after "$NOTES" &
	while kill -0 "$!" 2>/dev/null; do wait "$!"; done
}

SAMPLES=0
count_networks() { # count_networks STEP WHEN: for a step of COUNTED, the counters of every node
	case "
$COUNTED" in *"
$1
"*) [ -z "$STOPPED" ] || return ;; *) return ;; esac
	[ "$2" = after ] || SAMPLES=$((SAMPLES + 1))
	mkdir -p "$NOTES/network/$SAMPLES-$1" &&
		everywhere 60 "$RUN/jobs/$JOB/job.sh" --network "$2" "$NOTES/network/$SAMPLES-$1" ||
		[ -n "$STOPPED" ] ||
		echo "job $JOB: step $1: the counters of the networks of a node are missing" >&2
}

look_at_files() { # look_at_files STEP CODE: after a failure every node tries the scratch folder
	[ "$2" != 0 ] && [ "$NODES" != 1 ] && [ -z "$STOPPED" ] || return 0
	script=steps/$1/run.sh
	[ ! -e "steps/$1/node.sh" ] || script=steps/$1/node.sh
	grep -q "^SCRATCH='\\{0,1\\}/" "$script" || return 0
	mkdir -p "$NOTES/files/$1" && everywhere 120 "$RUN/$script" --files "$NOTES/files/$1" ||
		[ -n "$STOPPED" ] || echo "job $JOB: step $1: a node did not try the scratch folder" >&2
}

has_result() { # has_result STEP: on a planned node, or by a job
	[ ! -e "steps/$1/rc" ] || return 0 # a per-node step
	for started in "steps/$1"/execution-*/started; do
		[ -e "$started" ] || continue
		read -r _ _ _ by _ <"$started"
		[ "$by" = other ] || return 0
	done
	return 1
}

# A per-node step is finished when all nodes have ended or the time limit is over; the job writes rc.
on_every_node() { # on_every_node STEP SECONDS [REPEAT]: with REPEAT only nodes that were disturbed
	folder=steps/$1
	if [ -n "${3-}" ]; then
		everywhere "$2" "$RUN/$folder/run.sh" "--attempt=$PROOFMARK_ATTEMPT" \
			--disturbed ${WITHOUT:+"--without=$WITHOUT"}
		return
	fi
	if [ -n "$AGAIN" ]; then # the nodes write into new folders; the step has its rc
		everywhere "$2" "$RUN/$folder/run.sh" "--attempt=$PROOFMARK_ATTEMPT"
		return
	fi
	start=$(date -u +%Y-%m-%dT%H:%M:%SZ)
	read -r began _ </proc/uptime
	echo "$HOST $$ $start" >"$folder/started" || return
	everywhere "$2" "$RUN/$folder/run.sh" "--attempt=$PROOFMARK_ATTEMPT" --unfinished ${WITHOUT:+"--without=$WITHOUT"}
	code=$?
	[ -z "$STOPPED" ] || return
	read -r now _ </proc/uptime
	printf '{"start": "%s", "end": "%s", "seconds": %d, "host": "%s"}\n' "$start" \
		"$(date -u +%Y-%m-%dT%H:%M:%SZ)" $((${now%.*} - ${began%.*})) "$HOST" >"$folder/when.json" &&
		echo "$code" >"$folder/rc.new" && mv "$folder/rc.new" "$folder/rc"
	return "$code"
}

is_open() { # is_open ENTRY: all executions of the step, or of one of its nodes, were disturbed
	if [ "$1" = "${1%%:*}" ]; then is_disturbed "steps/$1"; else is_disturbed "steps/${1%%:*}"/*/; fi
}

note() { # note WORD ROUND ENTRY: a line about a repetition, with the folder that was disturbed
	PLACE=${PLACE%/}
	echo "$1 $2 ${3%%:*} ${PLACE#steps/}" >>"$NOTES/repeats"
}

run_again() { # run_again ROUND ENTRY: repeats a disturbed step
	is_open "$2" || return 0
	note start "$1" "$2"
	if [ "$2" = "${2%%:*}" ]; then
		run sh "steps/$2/run.sh" --job
	else
		on_every_node "${2%%:*}" "${2#*:}" repeat
	fi
	[ -n "$STOPPED" ] || note end "$1" "$2"
}

ENOUGH=
enough() { # enough STEP WHY: with FAIL_FAST no further step is started
	ENOUGH=yes
	echo "step $1: $2" >"$NOTES/fail-fast"
}

end_if_bad() { # end_if_bad ENTRY CODE: with FAIL_FAST; a disturbed step is repeated at once
	round=2
	while [ -z "$STOPPED" ] && [ "$round" -le "$EXECUTIONS" ] && is_open "$1"; do
		run_again "$round" "$1"
		round=$((round + 1))
	done
	[ -z "$STOPPED" ] || return 0
	if is_open "$1"; then
		note left "$EXECUTIONS" "$1"
		enough "${1%%:*}" "disturbed in all its executions"
	elif [ "$2" != 0 ]; then
		enough "${1%%:*}" "exit code $2"
	fi
}

all_nodes_disturbed() { # all_nodes_disturbed ENTRY: the step, on each of its nodes
	if [ "$1" = "${1%%:*}" ]; then set -- "steps/$1"; else set -- "steps/${1%%:*}"/*/; fi
	for place in "$@"; do
		is_disturbed "$place" || return 1
		for marks in "$place"/execution-*/disturbed; do
			[ "$(grep -c . <"$marks")" = "$(grep -c '"host"' <"${marks%disturbed}noise.json")" ] || return 1
		done
	done
}

LOST=0
end_if_hopeless() { # end_if_hopeless ENTRY: what disturbs each step does not end by itself
	read -r now _ </proc/uptime
	if all_nodes_disturbed "$1"; then
		[ "$LOST" != 0 ] || LOST_SINCE=$STEP_BEGAN
		LOST=$((LOST + 1))
		[ "$LOST" -ge "$LOST_STEPS" ] && [ $((${now%.*} - LOST_SINCE)) -ge "$LOST_S" ] || return 0
		ENOUGH=yes
		echo "$LOST" >"$NOTES/lost"
	else
		LOST=$((LOST / 2)) # a step can be too short to be disturbed
	fi
}

# In a job of several nodes, a node without a probe does not keep the others from measuring.
everywhere 300 "$RUN/jobs/$JOB/job.sh" --probe facts "$NOTES" || [ "$NODES$STOPPED" != 1 ] || exit 74
awk -f fit.awk "jobs/$JOB/needs" "$NOTES"/*.before >&2 ||
	[ -n "$STOPPED" ] || exit 65 # no step was started; a stopped job starts none below
STAYING=
if [ -n "$STAY" ] && [ -z "$STOPPED" ]; then
	on_all "$RUN/jobs/$JOB/job.sh" --stay "$NOTES" "$HOST" &
	STAYING=$!
fi
for entry in $STEPS; do
	[ -z "$STOPPED$ENOUGH" ] || break
	step=${entry%%:*}
	[ -n "$AGAIN" ] || ! has_result "$step" || continue
	count_networks "$step" before
	[ -z "$STOPPED" ] || break
	read -r STEP_BEGAN _ </proc/uptime
	STEP_BEGAN=${STEP_BEGAN%.*}
	if [ "$entry" = "$step" ]; then
		run sh "steps/$step/run.sh" --job
	else
		on_every_node "$step" "${entry#*:}"
	fi
	code=$?
	count_networks "$step" after
	look_at_files "$step" "$code"
	[ -n "$STOPPED" ] || has_result "$step" || {
		echo "job $JOB: step $step left no result; stopping" >&2
		exit 74
	}
	[ -z "$FAIL_FAST" ] || end_if_bad "$entry" "$code"
	[ -n "$STOPPED$ENOUGH$AGAIN" ] || end_if_hopeless "$entry"
done
# What disturbed a step may have ended meanwhile: it is repeated after all other steps.
round=2
while [ -z "$STOPPED$ENOUGH" ]; do
	again=
	for entry in $STEPS; do
		is_open "$entry" || continue
		again="$again $entry"
		if [ "$round" -le "$EXECUTIONS" ]; then
			note wait "$round" "$entry"
			continue
		fi
		note left "$EXECUTIONS" "$entry"
		[ -z "$FAIL_FAST" ] || enough "${entry%%:*}" "disturbed in all its executions"
	done
	if [ -z "$again" ] || [ "$round" -gt "$EXECUTIONS" ]; then break; fi
	for entry in $again; do
		[ -n "$STOPPED" ] || run_again "$round" "$entry"
	done
	round=$((round + 1))
done
if [ -n "$STOPPED" ]; then
	sh "jobs/$JOB/job.sh" --probe after "$NOTES" || echo "job $JOB: this node was not probed" >&2
	# Without a probe after them the finished steps of the other nodes prove nothing. The scheduler may
	# end this process. If it starts none any more, those that stay probe the nodes.
	[ "$NODES" = 1 ] || probe_at_stop
	exit 143
fi
everywhere 300 "$RUN/jobs/$JOB/job.sh" --probe after "$NOTES" || [ "$NODES$STOPPED" != 1 ] || exit 74
echo "$HOST $(date -u +%Y-%m-%dT%H:%M:%SZ)" >"$NOTES/finished" || exit 74
[ -z "$STAYING" ] || kill -TERM "$STAYING" 2>/dev/null
exit 0
