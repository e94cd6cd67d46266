"""Software GPUs: they answer a driver's calls and execute the machine code that the compiler made."""
