"""What went to a device, made readable: command streams as text, and what changes between driver versions."""
