# For each header that occurs in the samples: which word of a row is what.
BEGIN {
    is["# Size Latency (us)"] = "2 latency us"
    is["# Size Avg Latency(us)"] = "2 latency us"
    is["# Size Avg Latency(us) Validation"] = "2 latency us"
    is["# Avg Latency(us)"] = "1 latency us"
    is["# Avg Latency(us) Min Latency(us) Max Latency(us) Iterations"] = "1 latency us 2 latency_min us 3 latency_max us"
    is["# Size Avg Latency(us) Min Latency(us) Max Latency(us) Iterations"] = "2 latency us 3 latency_min us 4 latency_max us"
    is["# Size Avg Latency(us) Min Latency(us) Max Latency(us) Iterations P50 Tail Lat(us) P90 Tail Lat(us) P99 Tail Lat(us)"] = "2 latency us 3 latency_min us 4 latency_max us 6 latency_p50 us 7 latency_p90 us 8 latency_p99 us"
    is["# Size Bandwidth (MB/s)"] = "2 bandwidth MB/s"
    is["# Size MB/s"] = "2 bandwidth MB/s"
    is["# Size MB/s Messages/s"] = "2 bandwidth MB/s 3 rate Messages/s"
    is["# Size Overall(us) Compute(us) Pure Comm.(us) Overlap(%)"] = "2 overall us 3 compute us 4 comm us 5 overlap %"
    is["# Overall(us) Compute(us) Coll. Init(us) MPI_Test(us) MPI_Wait(us) Pure Comm.(us) Min Comm.(us) Max Comm.(us) Overlap(%)"] = "1 overall us 2 compute us 3 comm_init us 4 comm_test us 5 comm_wait us 6 comm us 7 comm_min us 8 comm_max us 9 overlap %"
    is["# Overall(us) Compute(us) Pure Comm.(us) Overlap(%)"] = "1 overall us 2 compute us 3 comm us 4 overlap %"
    is["# Size Overall(us) Compute(us) Coll. Init(us) MPI_Test(us) MPI_Wait(us) Pure Comm.(us) Min Comm.(us) Max Comm.(us) Overlap(%)"] = "2 overall us 3 compute us 4 comm_init us 5 comm_test us 6 comm_wait us 7 comm us 8 comm_min us 9 comm_max us 10 overlap %"
}
/^# OSU / {
    bench = $0
    sub(/^# OSU MPI[-_ ]/, "", bench); sub(/ Test v.*/, "", bench)
}
/^# \[ pairs:/ { more = "\"pairs\": " $4 }
/^# Window creation:/ { more = "\"window\": \"" $4 "\"" }
/^# Synchronization:/ { more = more ", \"synchronization\": \"" $3 "\"" }
/^# copy / { more = "\"pair\": " $3 }
# OSU 5.7 may print the header without the sign of a comment.
/^ +Overall\(us\)/ { $1 = "# " $1; $0 = $0 }
/^# (Size|Avg|Overall\()/ {
    title = $1
    for (i = 2; i <= NF; i++) title = title " " $i
    if (!(title in is)) { print "unknown header: " title > "/dev/stderr"; exit 1 }
    last = split(is[title], column, " "); sized = ($2 == "Size"); next
}
/^nprocs:/ {
    gsub(/,/, "")
    q = "\"ranks\": " $2
    put(bench, "startup", $10, "ms", q, 1); put(bench, "startup_min", $4, "ms", q, 1); put(bench, "startup_max", $7, "ms", q, 1)
}
/^ *[0-9]/ && last {
    q = more
    if (sized) q = (q ? q ", " : "") "\"bytes\": " $1
    for (i = 1; i <= last; i += 3) put(bench, column[i + 1], $column[i], column[i + 2], q, 1)
}
END { flush(1) }
