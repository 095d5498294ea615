"""Reading a program's output by the `read` block of its case: texts and JSON to values."""
