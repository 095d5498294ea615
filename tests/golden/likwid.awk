/^Test: / { kernel = $2 }
/^Using [0-9]+ threads$/ { threads = $2 }
/^Size \(Byte\):/ { bytes = $3 }
/^MByte\/s:/ { put("likwid-bench", "triad", $2, "MByte/s", "", 1) }
/^UOPs:/ { ended = 1 }
END {
    for (i = 1; i <= n; i++)
        p[i] = "\"kernel\": \"" kernel "\", \"threads\": " threads ", \"bytes\": " bytes
    flush(ended)
}
