"""The BMC back ends that the kit has: one module and one class each.

The class is a subclass of `proofmark.machine.bmc.back_end.BackEnd`. The name of the module is the
value of ``back_end`` in the firmware facts of a partition.
"""
