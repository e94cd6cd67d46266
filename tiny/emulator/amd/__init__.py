"""The emulated Radeon: `kernel` answers the driver's calls, `engines` read the queues, `isa` executes code.

`engines.execute` joins them: a dispatch that an engine found goes to the instruction set of its card.
"""
