/^cores: / { threads = $2 }
/^available (worst|median): / { put("OS noise", "available_" substr($2, 1, length($2) - 1), $3, "%", "\"threads\": " threads, 1) }
/^longest: / { put("OS noise", "longest", $2, "us", "\"threads\": " threads, 1) }
/^rate: / { put("OS noise", "rate", $2, "1/s", "\"threads\": " threads, 1) }
/^end of os_noise$/ { ok = 1 }
END { flush(ok) }
