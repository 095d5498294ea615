/^Array size/ { array = $4 }
/^Number of Threads counted/ { threads = $6 }
/^(Copy|Scale|Add|Triad):/ { put("STREAM", tolower(substr($1, 1, length($1) - 1)), $2, "MB/s", "", 1) }
/^Solution Validates/ { ok = 1 }
END {
    for (i = 1; i <= n; i++) p[i] = "\"array\": " array (threads ? ", \"threads\": " threads : "")
    flush(ok)
}
