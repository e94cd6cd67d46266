"""The kernel's side of an emulated Radeon: sysfs, /dev/kfd and /dev/dri as Linux 6.12 answers them.

    cards      the cards there are, as numbers          topology  their sysfs files
    memory     memory objects and page tables           events    KFD events and the event page
    process    the client: its memory                   pci       a card's own files in sysfs
    atomics    what must be one step for everybody
    render     the few ioctls of a render node
    queues     checks of CREATE_QUEUE, doorbells        calls     one function an ioctl
    provider   what hcq.io is given: paths, file descriptors, mappings
"""
