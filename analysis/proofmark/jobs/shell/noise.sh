# shellcheck shell=sh disable=SC2016,SC2153,SC2154 # awk has dollars; step.sh and run.sh set the variables
# ---- below this line all steps are the same ------------------------------------------------
# One sampler on each node of a step records what kept the CPUs from the ranks. Its raw sums are one
# line of noise.json. It needs less than 0.5 % of one core.

SAMPLE='
function number(path,    line) { # the first line of a file; 0 if it cannot be read
	line = 0
	getline line <path
	close(path)
	return line
}
function members(list, set,    parts, ends, n, i, cpu) { # adds the CPUs of a list such as 0-3,8
	n = split(list, parts, ",")
	for (i = 1; i <= n; i++) {
		if (split(parts[i], ends, "-") < 2) ends[2] = ends[1]
		for (cpu = ends[1] + 0; cpu <= ends[2] + 0; cpu++) set[cpu] = 1
	}
}
function process(pid,    line, at) { # sets name and field, those of proc(5) from the third one
	at = "/proc/" pid "/stat"
	line = ""
	getline line <at
	close(at)
	if (!match(line, /.*\) /)) return 0
	name = substr(line, 1, RLENGTH - 2)
	sub(/[^(]*\(/, "", name)
	return split(substr(line, RLENGTH + 1), field, " ") >= 37
}
function adopt(pid,    at, list, cpu) { # a new rank: its CPUs and their hardware threads count
	# The rank wrote this list before its program began. The present affinity can be another one:
	# hwloc binds a process for a moment to each CPU of the node.
	at = ENVIRON["ROSTER"] "/" pid
	getline list <at
	close(at)
	if (list == "") return # the rank is still writing it
	rank[pid] = ours[pid] = 1
	members(list, cpus)
	for (cpu in cpus) if (!(cpu in whole)) {
		whole[cpu] = 1
		members(number("/sys/devices/system/cpu/cpu" cpu "/topology/thread_siblings_list"), whole)
	}
}
function find(    command, at) { # looks for new processes of the step
	command = "grep -lzF -e \"BINDING=$BINDING\" /proc/[0-9]*/environ 2>/dev/null"
	while ((command | getline at) > 0) {
		split(at, path, "/")
		ours[path[3]] = 1
	}
	close(command)
}
function kin(pid) { # the processes above the step: they started it, as the controller of the kit
	while (process(pid) && field[2] > 1) {
		pid = field[2]
		ours[pid] = 1
	}
}
function sight(    command, line) { # sets outside: processes of this node may not be in /proc
	command = "readlink /proc/self/ns/pid 2>/dev/null"
	command | getline line
	close(command)
	# The number of the first namespace is fixed (PROC_PID_INIT_INO of Linux).
	outside = (line != "" && line !~ /4026531836/) || !process(1)
}
function ask(pids,    command, line, part, word) { # sets owner and call of each of pids
	command = "for pid in" pids "; do set -- $(ls -ld /proc/$pid) && echo \"$pid $3 " \
		"$(tr \"\\000\" \" \" </proc/$pid/cmdline | cut -c 1-500)\"; done 2>/dev/null"
	while ((command | getline line) > 0) {
		gsub(/[^A-Za-z0-9_.:+\/ -]/, "?", line)
		split(line, part, " ")
		owner[part[1]] = part[2]
		# What follows an option may be a secret.
		word = part[4] == "-m" ? "-m " part[5] : part[4] ~ /^-/ ? "" : part[4]
		call[part[1]] = substr(part[3] (word == "" ? "" : " ") word, 1, 80)
	}
	close(command)
}
function tick(    command, line, pids, i, n) { # waits for a tick, and adopts the ranks in it
	command = "read -r tick && echo \"$tick\""
	if ((command | getline line) <= 0) { close(command); return 0 }
	close(command)
	n = split(line, pids, " ")
	for (i = 1; i <= n; i++) if (pids[i] ~ /^[0-9]+$/) roster[pids[i]] = 1
	for (i in roster) if (!(i in rank)) adopt(i)
	return 1
}
function scan(    command, pid, key) { # reads the CPU time of other processes, and the clock
	command = "ls /proc"
	while ((command | getline pid) > 0) {
		if (pid !~ /^[0-9]+$/ || pid in ours || !process(pid)) continue
		key = pid " " field[20]
		if (first) before[key] = field[12] + field[13]
		if (first || (field[37] in whole && field[12] + field[13] > before[key])) {
			named[key] = name
			other[key] = field[12] + field[13] - before[key]
		}
	}
	close(command)
	mhz()
}
function mhz(    line, at, cpu, part, sum, n, among) { # the mean clock of the CPUs of the ranks
	for (cpu in cpus) {
		at = number("/sys/devices/system/cpu/cpu" cpu "/cpufreq/scaling_cur_freq")
		if (at > 0) { sum += at / 1000; n++ }
	}
	if (!n) {
		while ((getline line <"/proc/cpuinfo") > 0) {
			if (line ~ /^processor/) { split(line, part, ":"); among = (part[2] + 0) in cpus }
			if (among && line ~ /^cpu MHz/) { split(line, part, ":"); sum += part[2]; n++ }
		}
		close("/proc/cpuinfo")
	}
	if (!n) return
	if (!least || sum / n < least) least = sum / n
	if (sum / n > most_mhz) most_mhz = sum / n
}
function pressure(kind,    line, part, at) { # seconds during which some task waited
	at = "/proc/pressure/" kind
	line = ""
	getline line <at
	close(at)
	split(line, part, "total=")
	return part[2] / 1e6
}
function sample(    line, part, pid, cpu, alive, tasks, task, threads, start) {
	now = number("/proc/uptime") + 0
	busy_now = stolen_now = worst_now = 0
	while ((getline line <"/proc/stat") > 0) {
		if (line !~ /^cpu[0-9]/) { if (line ~ /^cpu/) continue; break }
		split(line, part, " ")
		cpu = substr(part[1], 4) + 0
		if (first) { busy0[cpu] = part[2] + part[3] + part[4]; stolen0[cpu] = part[9] }
		if (cpu in whole) busy_now += part[2] + part[3] + part[4] - busy0[cpu]
		if (cpu in cpus) {
			stolen_now += part[9] - stolen0[cpu]
			if (part[9] - stolen0[cpu] > worst_now) worst_now = part[9] - stolen0[cpu]
		}
	}
	close("/proc/stat")
	for (pid in ours) {
		if (!process(pid)) {
			# Its CPU time is now a part of that of a rank that waited for it.
			if (parent[pid] in rank) delete used[pid]
			delete ours[pid]
			continue
		}
		parent[pid] = field[2]
		if (!(pid in rank)) {
			if (!(pid in base)) base[pid] = first ? field[12] + field[13] : 0
			used[pid] = field[12] + field[13] - base[pid]
			continue
		}
		used[pid] = field[12] + field[13] + field[14] + field[15]
		if (!born || field[20] / 100 < born) born = field[20] / 100
		if (field[1] == "Z") continue
		alive++
		tasks = tasks " /proc/" pid "/task/[0-9]*/schedstat"
	}
	if (!alive) return 0
	tasks = "printf \"%s\\n\"" tasks
	while ((tasks | getline task) > 0) {
		line = ""
		getline line <task
		close(task)
		if (split(line, part, " ") < 2) continue
		if (!(task in delay0)) delay0[task] = mark[task] = part[2]
		delay[task] = part[2]
		threads++
	}
	close(tasks)
	if (threads > most_threads) most_threads = threads
	last = now
	total()
	if (!opened) reopen()
	if (now - opened >= 0.9) window()
	return 1
}
function total(    pid) { # the sums until this sample, in which a rank is alive
	ranks = launcher = 0
	for (pid in used) if (pid in rank) ranks += used[pid]; else launcher += used[pid]
	others = busy_now - ranks - launcher
	if (others < 0) others = 0
	steal = stolen_now
	worst_steal = worst_now
	cpu_psi = pressure("cpu") - cpu_psi0
	io_psi = pressure("io") - io_psi0
}
function reopen(    task) { # begins a window of about a second
	opened = now
	others_before = others
	for (task in delay) mark[task] = delay[task]
}
function window(    task, longest, lost) { # the window in which a thread waited most
	for (task in delay) if (delay[task] - mark[task] > longest) longest = delay[task] - mark[task]
	lost = (others - others_before) / 100
	if (longest / 1e9 / (now - opened) > burst) {
		burst = longest / 1e9 / (now - opened)
		burst_others = (lost > 0 ? lost : 0) / (now - opened)
	}
	reopen()
}
function report(    task, sum, longest, key, by, best, i, text, top, most, named_s, pids, part) {
	if (!last) return
	for (task in delay) {
		sum += delay[task] - delay0[task]
		if (delay[task] - delay0[task] > longest) longest = delay[task] - delay0[task]
	}
	for (key in other) if (other[key] > 0) {
		by[named[key]] += other[key]
		named_s += other[key]
		if (other[key] > most[named[key]]) {
			most[named[key]] = other[key]
			top[named[key]] = key
		}
	}
	for (name in top) if (by[name] > 1) {
		split(top[name], part, " ")
		if (!(part[1] in owner)) pids = pids " " part[1]
	}
	if (pids != "") ask(pids)
	for (i = 0; i < 5; i++) {
		best = ""
		for (name in by) if (by[name] > 1 && (best == "" || by[name] > by[best])) best = name
		if (best == "") break
		name = best
		split(top[best], part, " ")
		gsub(/[^A-Za-z0-9_.:+\/ -]/, "?", name)
		text = text sprintf("%s{\"name\": \"%s\", \"seconds\": %.2f, \"pid\": %d, \"user\": \"%s\", " \
			"\"command\": \"%s\"}", i ? ", " : "", name, by[best] / 100, part[1], owner[part[1]], call[part[1]])
		delete by[best]
	}
	began = born > start0 ? born : start0
	for (key in cpus) count_of++
	printf "{\"host\": \"%s\", \"seconds\": %.2f, \"rank_seconds\": %.2f, \"cpus\": %d, \"threads\": %d, " \
		"\"samples\": %d, \"ranks_s\": %.2f, \"others_s\": %.2f, \"steal_s\": %.2f, " \
		"\"worst_steal_s\": %.2f, \"delay_s\": %.4f, \"worst_delay_s\": %.4f, \"burst\": %.4f, " \
		"\"burst_others\": %.4f, \"cpu_pressure_s\": %.2f, \"io_pressure_s\": %.2f, " \
		"\"mhz_least\": %.0f, \"mhz_most\": %.0f, \"unnamed_s\": %.2f, \"outside\": %s, " \
		"\"others\": [%s]}\n", host, last - start0, \
		last - began, count_of, most_threads, samples, ranks / 100, others / 100, steal / 100, \
		worst_steal / 100, sum / 1e9, longest / 1e9, burst, burst_others, cpu_psi, io_psi, \
		least, most_mhz, (others > named_s ? others - named_s : 0) / 100, \
		outside ? "true" : "false", text >file
	close(file)
	count_of = 0
}
function ended(pid) { # it does not exist, or it is a zombie
	return !process(pid) || field[1] == "Z"
}
function cost(    line, part) { # CPU time of this process and of its children
	process("self")
	return (field[12] + field[13] + field[14] + field[15]) / 100
}
BEGIN {
	first = 1 # the step starts no rank before this
	file = ENVIRON["ROSTER"] "/sums"
	cpu_psi0 = pressure("cpu")
	io_psi0 = pressure("io")
	start0 = number("/proc/uptime") + 0
	kin(starter)
	sight()
	scan()
	sample()
	first = 0
	begin_sensing()
	# Each line of the input is a tick; its end is the end of the step.
	while (tick()) {
		now = number("/proc/uptime") + 0
		if (now - start0 > limit) break
		watch_sensors()
		# A launcher may reap a rank only after this process has closed the files of the rank.
		over = ended(starter)
		if (!over && samples > 3 && cost() > 0.05 + 0.002 * (now - start0)) continue
		if (!last || now - start0 >= next_scan) {
			find()
			if (last) { scan(); report() }
			next_scan = 2 * (now - start0) + 0.5
		}
		samples += (last > 0)
		idle = sample() ? 0 : idle + 1
		if (idle && over) break
	}
	if (last) { scan(); report() }
	now = number("/proc/uptime") + 0
	end_sensing()
}'

ticks() { # prints a line about once a second, at first more often, with the processes of new ranks
	cd "$ROSTER" || return
	ranks=0
	for pause in 0.1 0.1 0.2 0.2 0.4 0.5 0.5 0.5 0.5; do sleep "$pause" && new_ranks; done
	while sleep 1; do new_ranks; done
}

new_ranks() {
	set -- [0-9]*
	[ -e "$1" ] || set -- # no rank has started
	if [ $# = "$ranks" ]; then set --; else ranks=$#; fi
	# Flux starts the processes of other nodes with SIGPIPE ignored: a broken pipe is no signal then.
	echo "$@" 2>/dev/null || exit
}

sample_node() { # sample_node PID: until SIGTERM, or until the ranks and the process PID have ended
	trap exit TERM
	ROSTER=${BINDING%binding}noise/$HOST # each rank of this node writes its CPUs there
	SENSORS=$(find_sensors /sys) EPOCH=$(date +%s)
	export ROSTER SENSORS EPOCH
	ask_ipmi &
	# The signal goes to the whole group. awk ends with its input, so that it can write its result.
	ticks | (
		trap '' TERM
		LC_ALL=C
		export LC_ALL
		exec awk -v host="$HOST" -v limit="$((TIMEOUT + 60))" -v starter="$1" \
			-v interval="$TELEMETRY" -v telemetry="$ROSTER/telemetry" "$SAMPLE$TELEMETRY_SUMS"
	)
}

end_sampler() {
	[ -n "$SAMPLER" ] || return
	polls=0
	while [ "$polls" -lt 200 ] && alive "$SAMPLER"; do
		# Repeated: a process that is being started loses a signal.
		[ $((polls % 10)) != 0 ] || kill -TERM "-$SAMPLER" 2>/dev/null || kill -TERM "$SAMPLER"
		sleep 0.01
		polls=$((polls + 1))
	done
	kill -KILL "-$SAMPLER" 2>/dev/null
	reap "$SAMPLER"
	SAMPLER=
}

start_sampler() { # by the first rank of a node on which the script of the step does not run
	mine=${BINDING%binding}noise/$HOST
	[ ! -e "$mine" ] && mkdir "$mine" 2>/dev/null || return
	(setsid sh "$HERE/run.sh" --sample $$ </dev/null >/dev/null 2>&1 &)
}

# The same rule as in records/disturbance.py. The limits are those of the case.
DISTURBED='
function value(key,    rest) { # a number of this line; 0 if it has none
	if (!match($0, "\"" key "\": [0-9.]+")) return 0
	rest = substr($0, RSTART, RLENGTH)
	sub(/.*: /, "", rest)
	return rest + 0
}
/"host"/ {
	seconds = value("seconds"); cpus = value("cpus")
	if (seconds < least_seconds || cpus < 1) next
	others = value("others_s"); delay = value("worst_delay_s"); burst = value("burst")
	why = ""
	if (value("worst_steal_s") > max_steal * seconds) why = why " steal"
	elapsed = value("rank_seconds")
	busy = value("ranks_s") >= 0.5 * elapsed * cpus # a program that waits for I/O needs no CPU
	if (busy && others > max_others * seconds * cpus) why = why " others"
	lost = others + value("steal_s")
	if (delay > max_delay * elapsed && 2 * lost >= delay) why = why " delay"
	if (burst > max_burst && 2 * value("burst_others") >= burst) why = why " burst"
	if (why == "") next
	split($0, part, "\"")
	print part[4] why
}'

judge_noise() { # writes noise.json; and the file disturbed, if a node was
	{
		echo '['
		cat noise/*/sums 2>/dev/null | sed '2,$s/^/,/'
		echo ']'
	} >noise.json || return
	for sensed in noise/*/telemetry; do
		[ ! -e "$sensed" ] || cat "$sensed" >>telemetry.jsonl || return
	done
	rm -rf noise
	[ -n "$UNDISTURBED" ] || return 0
	set --
	for limit in $UNDISTURBED; do set -- "$@" -v "$limit"; done
	LC_ALL=C awk "$@" "$DISTURBED" noise.json >disturbed
	[ -s disturbed ] || rm -f disturbed
}
