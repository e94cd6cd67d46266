"""Foreign programs on an emulated Radeon: any client of /dev/kfd, unchanged, in a process of its own.

    command  `python -m tiny emulate`       tree    sysfs and the device nodes as a folder
    server   answers the clients' calls     shim.c  preloaded into a client: sends its calls to the server
"""
