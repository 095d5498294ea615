"""The sections of the report: each module makes one, from the data of a run."""
