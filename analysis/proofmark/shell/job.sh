# shellcheck shell=sh disable=SC2153 # the head that stands before this in every job.sh sets them
# ---- below this line every job is alike --------------------------------------------------
# A job is a loop over step folders. A step that has an rc is not run again, so a job that was
# killed goes on where it stopped. Exit: 0 all steps have run, 65 a node cannot run the programs,
# 74 a result could not be written, 143 the job was stopped.
cd "$RUN" || exit 74
attempt=1
while [ -e "jobs/$JOB/attempt-$attempt" ]; do attempt=$((attempt + 1)); done
NOTES=jobs/$JOB/attempt-$attempt
mkdir "$NOTES" || exit 74
read -r HOST </proc/sys/kernel/hostname

STEP=
STOPPED=
trap 'STOPPED=yes; [ -z "$STEP" ] || kill -TERM "$STEP" 2>/dev/null' INT TERM HUP

sh probe.sh facts >"$NOTES/$HOST.before" || exit 74
awk -f fit.awk "jobs/$JOB/needs" "$NOTES"/*.before >&2 || exit 65 # no step has been started
for step in $STEPS; do
	[ -z "$STOPPED" ] || break
	[ ! -e "steps/$step/rc" ] || continue
	sh "steps/$step/run.sh" &
	STEP=$!
	[ -n "$STOPPED" ] || wait "$STEP"
	# Again until it has ended: a signal is lost on a script that is just being started.
	while [ -n "$STOPPED" ] && kill -TERM "$STEP" 2>/dev/null; do sleep 0.2; done
	STEP=
	[ -n "$STOPPED" ] || [ -e "steps/$step/rc" ] || {
		echo "job $JOB: step $step left no result; stopping" >&2
		exit 74
	}
done
sh probe.sh after >"$NOTES/$HOST.after" || exit 74
if [ -n "$STOPPED" ]; then exit 143; fi
echo "$HOST $(date -u +%Y-%m-%dT%H:%M:%SZ)" >"$NOTES/finished" || exit 74
