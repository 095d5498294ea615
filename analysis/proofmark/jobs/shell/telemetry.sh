# shellcheck shell=sh disable=SC2016,SC2034 # awk has dollars; noise.sh uses the variables
# The sampler of a node also reads its sensors, every 10 s: power, temperature, clock, throttling.
# A line of telemetry.jsonl is one interval of TELEMETRY seconds; a sensor that is absent has no key.

find_sensors() { # find_sensors SYS: prints one line for each sensor below SYS: its kind, its file
	known=
	for chip in "$1"/class/hwmon/hwmon*; do
		name=
		read -r name 2>/dev/null <"$chip/name"
		case $name in
		coretemp | k10temp | zenpower | cpu_thermal) hwmon_temperatures "$chip" ;;
		power_meter) [ ! -r "$chip/power1_average" ] || echo "acpi $chip/power1_average" ;;
		esac
	done
	for zone in "$1"/class/thermal/thermal_zone*; do
		name=
		[ -n "$known" ] || read -r name 2>/dev/null <"$zone/type"
		case $name in x86_pkg_temp | cpu* | soc*) echo "temperature $zone/temp" ;; esac
	done
	for zone in "$1"/class/powercap/intel-rapl:*; do
		name=
		range=
		read -r name 2>/dev/null <"$zone/name"
		read -r range 2>/dev/null <"$zone/max_energy_range_uj"
		case $name in
		package-* | dram) [ ! -r "$zone/energy_uj" ] || echo "energy $zone/energy_uj $range" ;;
		esac
	done
	for count in "$1"/devices/system/cpu/cpu[0-9]*/thermal_throttle/*_throttle_count; do
		case $count in
		*/core_throttle_count) echo "core $count" ;;
		*/package_throttle_count) echo "package $count" ;;
		esac
	done
}

hwmon_temperatures() { # the sensors of whole processors; those of the cores if there are none
	single=
	for input in "$1"/temp*_input; do
		name=
		read -r name 2>/dev/null <"${input%input}label"
		case $name in
		Package* | Tctl | Tdie) known=yes && echo "temperature $input" ;;
		*) [ ! -r "$input" ] || single="$single $input" ;;
		esac
	done
	[ -z "$known" ] || return
	for input in $single; do echo "temperature $input"; done
	known=$single
}

ask_ipmi() { # writes the power that the BMC of this node measures once a minute; only root can
	[ -w /dev/ipmi0 ] && command -v ipmitool >/dev/null || return
	waits=12
	while kill -0 $$ 2>/dev/null && [ -d "$ROSTER" ]; do # it ends with the sampler
		[ "$waits" = 12 ] && waits=0 &&
			ipmitool dcmi power reading >"$ROSTER/ipmi.new" 2>/dev/null &&
			mv "$ROSTER/ipmi.new" "$ROSTER/ipmi"
		waits=$((waits + 1))
		sleep 5
	done
}

TELEMETRY_SUMS='
function reading(path,    line) { # a whole number in a file; empty if it has none
	line = ""
	getline line <path
	close(path)
	return line ~ /^-?[0-9]+$/ ? line : ""
}
function begin_sensing(    lines, part, n, i) {
	if (sys == "") sys = "/sys"
	n = split(ENVIRON["SENSORS"], lines, "\n")
	for (i = 1; i <= n; i++) {
		if (split(lines[i], part, " ") < 2) continue
		kind[part[2]] = part[1]
		if (part[1] == "energy") range[part[2]] = part[3]
	}
	sense_every = 10
	sensed = now
	sense()
	open_interval()
}
function sense(    path, fault, value, sum, n, cpu, events, of_package, acpi) { # one look at all sensors
	for (path in kind) {
		value = reading(path)
		if (value == "") continue
		if (kind[path] == "temperature") {
			# A sensor that does not work has the end of its range, or what a driver makes of no answer.
			fault = path
			sub(/_input$/, "_fault", fault)
			if (value + 0 <= 0 || value + 0 >= 127000 || (fault != path && reading(fault) == 1)) continue
			if (!temperatures++ || value / 1000 > hottest) hottest = value / 1000
		} else if (kind[path] == "energy") {
			if (path in energy) {
				# The counter begins again at 0 after its range.
				sum = value - energy[path]
				joules += (sum < 0 ? sum + range[path] : sum) / 1e6
			}
			energy[path] = value
		} else if (kind[path] == "acpi") {
			if (value + 0 <= 0) continue
			acpi += value / 1e6
			acpi_looks = 1
		} else if (kind[path] == "core") {
			events += value
			counted = 1
		} else {
			if (value > of_package) of_package = value
			counted = 1
		}
	}
	if (acpi > 0) { acpi_sum += acpi; acpi_count++ }
	thermal = events + of_package
	sum = 0
	for (cpu in cpus) {
		value = reading(sys "/devices/system/cpu/cpu" cpu "/cpufreq/scaling_cur_freq")
		if (value == "" || value <= 0) continue
		sum += value / 1000
		if (!slowest || value / 1000 < slowest) slowest = value / 1000
		n++
	}
	if (n) { clock_sum += sum / n; clocks++ }
	value = watts_of_ipmi()
	if (value > 0) { ipmi_sum += value; ipmi_count++ }
	sensed = now
}
function watts_of_ipmi(    line, at, watts) { # the last reading of ipmitool; 0 if there is none
	at = ENVIRON["ROSTER"] "/ipmi"
	while ((getline line <at) > 0) {
		if (line ~ /Instantaneous power reading/ && match(line, /[0-9.]+ *Watts/))
			watts = substr(line, RSTART, RLENGTH) + 0
		if (line ~ /reading state is:.*deactivated/) watts = 0
	}
	close(at)
	return watts
}
function open_interval() {
	opened_at = now
	thermal0 = thermal
	joules = acpi_sum = acpi_count = ipmi_sum = ipmi_count = 0
	temperatures = hottest = clock_sum = clocks = slowest = 0
}
function close_interval(    span, text) { # writes a line, if it has the value of any sensor
	span = now - opened_at
	if (span < 0.5) return
	text = ""
	if (joules > 0) text = text sprintf(", \"rapl_w\": %.2f", joules / span)
	if (acpi_count) text = text sprintf(", \"acpi_w\": %.2f", acpi_sum / acpi_count)
	if (ipmi_count) text = text sprintf(", \"ipmi_w\": %.2f", ipmi_sum / ipmi_count)
	if (temperatures) text = text sprintf(", \"celsius\": %.1f", hottest)
	if (clocks) text = text sprintf(", \"mhz\": %.0f, \"mhz_least\": %.0f", clock_sum / clocks, slowest)
	if (counted) text = text sprintf(", \"throttled\": %d", thermal - thermal0)
	if (text != "") {
		printf "{\"host\": \"%s\", \"time\": %.0f, \"span\": %.2f%s}\n", host, \
			ENVIRON["EPOCH"] + now - start0, span, text >telemetry
		# The file is bounded: from then on each interval is twice as long.
		if (++telemetry_lines % 400 == 0) interval *= 2
	}
	open_interval()
}
function watch_sensors() { # called at each tick
	if (now - sensed < sense_every) return
	sense()
	if (now - opened_at >= interval - 0.5) close_interval()
}
function end_sensing() {
	sense()
	close_interval()
}'
