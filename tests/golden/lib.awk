# What the other scripts share: readings are collected, then printed as a JSON list.
# A value is printed exactly as in the output; "null" and ok = 0 if there is no value.
function put(bench, metric, value, unit, parameters, ok) {
    n++
    b[n] = bench; m[n] = metric; v[n] = value; u[n] = unit; p[n] = parameters; good[n] = ok
}
function flush(all_good,    i) {
    print "["
    for (i = 1; i <= n; i++)
        printf "  {\"case\": \"%s\", \"benchmark\": \"%s\", \"metric\": \"%s\", \"value\": %s, \"unit\": \"%s\", \"parameters\": {%s}, \"valid\": %s}%s\n", \
            case, b[i], m[i], v[i], u[i], p[i], (good[i] && all_good) ? "true" : "false", (i < n) ? "," : ""
    print "]"
}
