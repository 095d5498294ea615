"""The BMC back ends of the kit: one module with one class each.

The class is a subclass of `proofmark.machine.bmc.back_end.BackEnd`. The name of the module is the
value of ``firmware.back_end`` of a partition.
"""
