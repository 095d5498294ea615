# Rows of eleven words, before the summary that begins with the same words.
function bytes(number, unit) {
    return number * (unit == "MiB" ? 1048576 : unit == "KiB" ? 1024 : unit == "GiB" ? 1073741824 : 1)
}
/^api  / { api = $3 }
/^access  +:/ { layout = $3 }
/^tasks  / { tasks = $3 }
/^xfersize/ { transfer = bytes($3, $4) }
/^blocksize/ { block = bytes($3, $4) }
/^Summary of all tests/ { done = 1 }
/^(write|read) / && NF == 11 && !done {
    put("IOR", $1, $2, "MiB/s", sprintf("\"api\": \"%s\", \"layout\": \"%s\", \"block_bytes\": %d, \"transfer_bytes\": %d, \"tasks\": %d, \"iteration\": %d", api, layout, block, transfer, tasks, $11), 1)
}
/^Finished/ { ok = 1 }
END { flush(ok) }
