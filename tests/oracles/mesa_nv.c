/* Prints NVIDIA push buffers with Mesa's decoder: `mesa_nv COMPUTE_CLASS COPY_CLASS < streams`; streams as in mesa_amd.c. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include "nv_push.h"
#include "nv_device_info.h"

int main(int argc, char **argv)
{
   struct nv_device_info device = {0};
   device.cls_compute = strtoul(argv[1], NULL, 0);
   device.cls_copy = strtoul(argv[2], NULL, 0);
   uint32_t count, stream = 0;
   while (fread(&count, 4, 1, stdin) == 1) {
      uint32_t *words = calloc(count + 16, 4);
      if (fread(words, 4, count, stdin) != count)
         return 2;
      struct nv_push push = {.start = words, .end = words + count, .limit = words + count};
      printf("=== %u\n", stream++);
      vk_push_print(stdout, &push, &device);
      fflush(stdout);
      free(words);
   }
   return 0;
}
