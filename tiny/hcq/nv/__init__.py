"""NVIDIA GPUs, Ampere to Blackwell: packets, methods, QMD layouts."""
