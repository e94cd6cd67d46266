"""Graph to kernels: what is stored, in which order, on which memory, with which loops."""
