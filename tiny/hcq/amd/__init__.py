"""AMD GPUs, gfx11, gfx12 and gfx942, through /dev/kfd alone: no ROCm library is loaded.

    device      a card as a Device: memory, programs, submissions, waiting
    topology    which cards there are                kfd        the driver's calls
    memory      what a card can reach                transfers  data to and from video memory
    queues      rings, pointers, doorbells           pm4_queue, aql_queue  the two kinds for kernels
    recorder    templates                            pm4_recorder, aql_recorder  their commands
    program     code objects and launches            compiler   how clang makes them
    interrupts  sleeping; faults and resets          failures   both as errors
    generation  what differs from card to card: the one place where an IP version chooses

pm4, sdma, aql, dispatch and registers declare the packets and registers. All of it is tested on emulated
cards (tests/hcq/amd); no real card has run it yet. What is not known about the hardware is said where it
matters.
"""
