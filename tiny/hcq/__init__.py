"""The driver library: devices, their memory, their command queues. Usable without a Tensor.

    from tiny.hcq import device
    from tiny.hcq.queue import Slot
    from tiny.toolchain import Source

    cpu = device.open("CPU")
    source = Source("scale", '''
    void scale(const unsigned long *args, unsigned long begin, unsigned long end) {
        float *x = (float *)args[0];
        for (unsigned long g = begin; g < end; g++) x[g] *= args[1];
    }''')
    [object_code] = cpu.compile([source])               # cached on disk; several sources share one compiler
    program = cpu.load(object_code, "scale")
    buffer = cpu.allocate(4096).initialize(bytes(4096))
    queue = cpu.queue()
    queue.execute(program, [buffer.address, Slot(0)], groups=1024)
    queue.execute(program, [buffer.address, 3], groups=Slot(1))
    template = queue.finish()
    point = template.submit([2, 512])                   # returns at once; Slot(n) is values[n]
    template.submit([5, 1024])                          # again, without waiting
    cpu.synchronize(point)                              # or synchronize() for everything
    print(buffer.host().cast("f")[0])
"""
from tiny.hcq import device
from tiny.hcq.device import DeviceKind

device.register(DeviceKind("CPU", "tiny.hcq.cpu.device:CpuDevice",
                           "this machine's cores, through native worker threads"))
device.register(DeviceKind("AMD", "tiny.hcq.amd.device:AmdDevice",
                           "gfx11, gfx12 and gfx942 cards through /dev/kfd"))
