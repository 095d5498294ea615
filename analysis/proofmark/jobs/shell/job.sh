# shellcheck shell=sh disable=SC2153 # the head that stands before this in every job.sh sets them
# ---- below this line every job is alike --------------------------------------------------
# sh job.sh                      runs the job
# sh job.sh --probe WHAT FOLDER  (own use) notes what this node says of itself, before or after
# A job is a loop over step folders. A step that has an rc is not run again, so a job that was
# killed goes on where it stopped; unless AGAIN says that it is to be run once more. A step with a
# number behind a colon is run by all nodes of the job, each for itself, for at most so many seconds.
# Exit: 0 all steps have run, 65 a node cannot run the programs, 74 a result could not be written,
# 143 the job was stopped.
cd "$RUN" || exit 74
read -r HOST </proc/sys/kernel/hostname

if [ "${1-}" = --probe ]; then
	what=before
	[ "$2" = facts ] || what=after
	sh probe.sh "$2" >"$3/$HOST.$what.new" && mv "$3/$HOST.$what.new" "$3/$HOST.$what" && exit
	exit 74
fi

attempt=1
while [ -e "jobs/$JOB/attempt-$attempt" ]; do attempt=$((attempt + 1)); done
NOTES=jobs/$JOB/attempt-$attempt
mkdir "$NOTES" || exit 74
trap 'code=$?; echo "$code" >"$NOTES/exit.new" && mv "$NOTES/exit.new" "$NOTES/exit"' EXIT

STEP=
STOPPED=
trap 'STOPPED=yes; [ -z "$STEP" ] || kill -TERM "$STEP" 2>/dev/null' INT TERM HUP

run() { # run COMMAND…: in the background, so that a signal is heard at once
	"$@" &
	STEP=$!
	[ -n "$STOPPED" ] || wait "$STEP"
	RC=$?
	# Again until it has ended: a signal is lost on a script that is just being started.
	while [ -n "$STOPPED" ] && kill -TERM "$STEP" 2>/dev/null; do sleep 0.2; done
	STEP=
	return "$RC"
}

everywhere() { # everywhere SECONDS ARGUMENTS…: sh ARGUMENTS on every node of the job, bounded
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
	on_all "$@" &
	all=$!
	trap 'kill -TERM "$all" 2>/dev/null' TERM
	(
		# A process that has just begun may lose any signal but KILL.
		trap '[ "$!" = "$all" ] || kill -KILL "$!"; exit' TERM
		sleep "$seconds" &
		wait "$!"
		kill -TERM "$all" 2>/dev/null
		sleep 10 &
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

# A step of all the nodes is over when they have ended, or were given up; then the job says so.
on_every_node() { # on_every_node STEP SECONDS
	folder=steps/$1
	if [ -n "$AGAIN" ]; then # the nodes write beside what is there; the step itself is over
		everywhere "$2" "$RUN/$folder/run.sh"
		return
	fi
	start=$(date -u +%Y-%m-%dT%H:%M:%SZ)
	read -r began _ </proc/uptime
	echo "$HOST $$ $start" >"$folder/started" || return
	everywhere "$2" "$RUN/$folder/run.sh" --unfinished ${WITHOUT:+"--without=$WITHOUT"}
	code=$?
	[ -z "$STOPPED" ] || return
	read -r now _ </proc/uptime
	printf '{"start": "%s", "end": "%s", "seconds": %d, "host": "%s"}\n' "$start" \
		"$(date -u +%Y-%m-%dT%H:%M:%SZ)" $((${now%.*} - ${began%.*})) "$HOST" >"$folder/when.json" &&
		echo "$code" >"$folder/rc.new" && mv "$folder/rc.new" "$folder/rc"
}

# Where there are many nodes, one that does not answer keeps no other from measuring.
everywhere 300 "$RUN/jobs/$JOB/job.sh" --probe facts "$NOTES" || [ "$NODES$STOPPED" != 1 ] || exit 74
awk -f fit.awk "jobs/$JOB/needs" "$NOTES"/*.before >&2 ||
	[ -n "$STOPPED" ] || exit 65 # no step has been started, and none is if we were stopped
for entry in $STEPS; do
	[ -z "$STOPPED" ] || break
	step=${entry%%:*}
	[ -n "$AGAIN" ] || [ ! -e "steps/$step/rc" ] || continue
	if [ "$entry" = "$step" ]; then
		run sh "steps/$step/run.sh"
	else
		on_every_node "$step" "${entry#*:}"
	fi
	[ -n "$STOPPED" ] || [ -e "steps/$step/rc" ] || {
		echo "job $JOB: step $step left no result; stopping" >&2
		exit 74
	}
done
if [ -n "$STOPPED" ]; then
	sh "jobs/$JOB/job.sh" --probe after "$NOTES" || exit 74
	exit 143
fi
everywhere 300 "$RUN/jobs/$JOB/job.sh" --probe after "$NOTES" || [ "$NODES$STOPPED" != 1 ] || exit 74
echo "$HOST $(date -u +%Y-%m-%dT%H:%M:%SZ)" >"$NOTES/finished" || exit 74
