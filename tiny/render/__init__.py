"""Kernels to source: lowering to flat instructions, functions as plain arithmetic, dialects."""
