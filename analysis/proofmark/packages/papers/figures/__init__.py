"""The figures and tables of the papers, drawn from the records of a run."""
