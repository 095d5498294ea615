"""The schedulers of the kit: one module with one class each.

The class is a subclass of `proofmark.machine.scheduler.Scheduler`, or of its subclass
`DrainingScheduler` if the scheduler can drain nodes. The name of the module is the name of the
scheduler in an inventory.
"""
