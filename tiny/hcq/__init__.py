"""The driver library: devices, their memory, their command queues. Usable without a Tensor."""
from tiny.hcq import device
from tiny.hcq.cpu.device import CPU

device.register(CPU)
