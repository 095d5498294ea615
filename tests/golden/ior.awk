# Rows before the summary, which begins with the same words. The header says which word is the
# iteration. A run ends with the last row, or with "Finished"; `fsync` failed makes it bad.
function bytes(number, unit) {
    return number * (unit == "MiB" ? 1048576 : unit == "KiB" ? 1024 : unit == "GiB" ? 1073741824 : 1)
}
# The exact size of an option: the printed one is rounded if it has a point.
function exact(option, printed,    i, word) {
    if (printed !~ /\./) return -1
    for (i = 1; i < words; i++) if (command[i] == option) word = command[i + 1]
    return substr(word, 1, length(word) - 1) * (word ~ /k$/ ? 1024 : word ~ /m$/ ? 1048576 : word ~ /g$/ ? 1073741824 : 0)
}
function also(name, value) { return value == "" ? "" : sprintf("\"%s\": \"%s\", ", name, value) }
function also_number(name, value) { return value == "" ? "" : sprintf("\"%s\": %d, ", name, value) }
{ sub(/^\t/, "") }
/^IOR-/ { kind = order = files = segments = stonewall = durable = ""; done = 0 }
/^Command line/ {
    words = split($0, command, " ")
    if (/stoneWallingStatusFile=/) stonewall = "stoneWallingStatusFile"
    for (i = 1; i < words; i++) if (command[i] == "-D") stonewall = command[i + 1]
    for (i = 1; i <= words; i++) if (command[i] == "-e") durable = "-e"
}
/^api  / { api = $3; sub(/-[0-9].*/, "", api) }
/^access  +[:=]/ { layout = $3; sub(/,/, "", layout); if (/,/) kind = $4 }
/^type  / { kind = $3 }
/^ordering in a file/ { order = $6 }
/^ordering inter file/ { sub(/^ordering inter file *[:=] */, ""); files = $1 }
/^segments  / { segments = $3 }
/^pattern  / { segments = substr($4, 2) }
/^(tasks|clients)  / { tasks = $3 }
/^xfersize/ { transfer = bytes($3, $4); if ((e = exact("-t", $3)) >= 0) transfer = e }
/^blocksize/ { block = bytes($3, $4); if ((e = exact("-b", $3)) >= 0) block = e }
/^Summary of all tests/ { done = 1 }
/^access +bw/ { last = NF; done = 0 }
/^(write|read) / && !done {
    put("IOR", $1, $2, "MiB/s", sprintf("\"api\": \"%s\", \"layout\": \"%s\", ", api, layout) also("type", kind) also("ordering", order) also("ordering_inter_file", files) also_number("segments", segments) also("stonewall", stonewall) also("fsync", durable) sprintf("\"block_bytes\": %.0f, \"transfer_bytes\": %d, \"tasks\": %d, \"iteration\": %d", block, transfer, tasks, $last), !(failed && $1 == "write"))
}
/fsync\(.*\) failed/ { failed = 1 }
/[Ii]ncorrect data on/ { wrong = 1 }
/^(write|Finished)/ { ok = 1 }
END { flush(ok && !wrong) }
