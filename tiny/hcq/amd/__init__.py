"""AMD GPUs, gfx9.4.x, gfx11 and gfx12: packets, registers."""
