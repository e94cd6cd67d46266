"""The CPU as a device: a ring of commands that native threads read, a loader for object code."""
