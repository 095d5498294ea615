# A second title before the first end: two outputs are mixed, and nothing is valid.
/^STREAM version/ { if (open) mixed = 1; open = 1 }
/^Array size/ { array = $4 + 0 }
/^Number of Threads (requested|counted)/ { threads = $6 }
/^Function/ { unit = /GB\/s/ ? 1000 : 1 }
/^(Copy|Scale|Add|Triad):/ { put("STREAM", tolower(substr($1, 1, length($1) - 1)), unit == 1 ? $2 : $2 * unit, "MB/s", "", 1) }
/^Solution Validates/ { ok = 1; open = 0 }
END {
    for (i = 1; i <= n; i++) p[i] = "\"array\": " array (threads ? ", \"threads\": " threads : "")
    flush(ok && !mixed)
}
