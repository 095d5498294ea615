# shellcheck shell=sh disable=SC2153,SC2154,SC2034 # step.sh and run.sh set and read the variables
# The load is a step of its own in load/, with its own run.sh, binding and outputs. It is started
# before the program and ended after it. Its execution stays unfinished: it has no result.

end_old_loads() { # ends the load of an execution of this step that was killed
	for old in "$HERE"/load/unfinished-*/started; do
		[ -e "$old" ] || continue
		read -r host process _ _ began _ <"$old"
		if [ "$host" = "$HOST" ] && alive "$process" && [ "$born" = "$began" ]; then
			end_process "$process"
		fi
	done
}

end_process() { # end_process PID: SIGTERM, and SIGKILL after 30 s
	kill -TERM "$1" 2>/dev/null
	polls=0
	while [ "$polls" -lt 300 ] && alive "$1"; do
		sleep 0.1
		polls=$((polls + 1))
	done
	kill -KILL "$1" 2>/dev/null
}

load_ranks() { # sets LOAD_OUT and ranks: the newest execution of the load, its ranks that have begun
	ranks=0
	for begun in "$HERE"/load/unfinished-*/started; do
		[ -e "$begun" ] || continue
		read -r _ process _ <"$begun"
		[ "$process" = "$LOADER" ] || continue
		LOAD_OUT=${begun%/started}
		set -- "$LOAD_OUT"/binding/*[0-9]
		[ ! -e "$1" ] || ranks=$#
	done
}

start_load() { # waits until all ranks of the load have begun, and LOAD_WARM_UP seconds more
	end_old_loads
	LOAD_OUT=
	PROOFMARK_HELPER=$HERE/load/ sh "$HERE/load/run.sh" --job </dev/null >load.messages 2>&1 &
	LOADER=$!
	centiseconds
	begin=$now
	while [ -z "$INTERRUPTED" ] && alive "$LOADER" && [ $((now - begin)) -lt 12000 ]; do
		load_ranks
		[ "$ranks" -lt "$LOAD_RANKS" ] || break
		sleep 0.1
		centiseconds
	done
	centiseconds
	LOAD_BEGAN=$now
	while [ -z "$INTERRUPTED" ] && alive "$LOADER" && [ $((now - LOAD_BEGAN)) -lt "$LOAD_WARM_UP" ]; do
		sleep 0.1
		centiseconds
	done
	load_ranks
	if [ "$ranks" -lt "$LOAD_RANKS" ] || ! alive "$LOADER"; then
		: >load.failed # the program is not started
	fi
}

report_load() { # writes load.json: whether the load still runs at the end of the program
	[ -n "$LOADER" ] || return 0
	running=false
	! alive "$LOADER" || running=true
	[ ! -e load.failed ] || running=false
	centiseconds
	{
		printf '{"folder": "%s", "running": %s, "ranks": %d, "warm_up_s": %d.%02d, "seconds": %d.%02d, "binding": [\n' \
			"${LOAD_OUT##*/}" "$running" "$ranks" $(((BEGAN - LOAD_BEGAN) / 100)) \
			$(((BEGAN - LOAD_BEGAN) % 100)) $(((now - LOAD_BEGAN) / 100)) $(((now - LOAD_BEGAN) % 100))
		[ -z "$LOAD_OUT" ] || cat "$LOAD_OUT"/binding/*[0-9] 2>/dev/null | sed '2,$s/^/,/'
		echo ']}'
	} >load.json
	end_process "$LOADER"
	reap "$LOADER"
	LOADER=
}
