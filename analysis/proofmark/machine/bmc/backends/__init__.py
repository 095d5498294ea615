"""The back ends of the kit: subclasses of `proofmark.machine.bmc.back_end.BackEnd`."""
