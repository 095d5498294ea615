"""The reader of a program's output, by the `read` block of its case: text and JSON to values."""
