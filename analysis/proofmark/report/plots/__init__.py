"""The plots of the kit. Each module contains one subclass of `proofmark.report.plot.Plot`."""
