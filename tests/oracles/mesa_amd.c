/* Prints AMD command streams with Mesa's decoder: `mesa_amd 9|11|12 gfx|sdma < streams`.
 *
 * Standard input holds streams one after another: the number of dwords, then the dwords. MESA is the major version of the
 * source package this is compiled with; 22 takes its arguments one by one and knows no SDMA. The functions below stand
 * in for parts of Mesa that the decoder links with and this program does not need. */
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ac_debug.h"
#include "util/memstream.h"

const char *ac_get_ip_type_string(const struct radeon_info *info, enum amd_ip_type ip) { return ""; }
bool debug_parse_bool_option(const char *text, bool fallback) { return false; }
const char *debug_get_option_cached(const char *name, const char *fallback) { return "0"; }
bool debug_get_bool_option(const char *name, bool fallback) { return false; }
void *_mesa_hash_table_search(void *table, const void *key) { return NULL; }
void ac_vcn_enc_init_cmds(void *commands, int version) {}

bool u_memstream_open(struct u_memstream *mem, char **text, size_t *size)
{
   mem->f = open_memstream(text, size);
   return mem->f != NULL;
}

void u_memstream_close(struct u_memstream *mem)
{
   fclose(mem->f);
}

static void decode(uint32_t *words, uint32_t count, enum amd_gfx_level level, bool sdma)
{
#if MESA < 23
   ac_parse_ib_chunk(stdout, words, count, NULL, 0, level, NULL, NULL);
#else
   struct ac_ib_parser parser = {.f = stdout, .ib = words, .num_dw = count, .gfx_level = level};
   parser.family = level == GFX9 ? CHIP_GFX940 : 0;          /* gfx942's registers */
   parser.ip_type = sdma ? AMD_IP_SDMA : AMD_IP_COMPUTE;
   ac_parse_ib_chunk(&parser);
#endif
}

int main(int argc, char **argv)
{
   int generation = atoi(argv[1]);
   enum amd_gfx_level level = generation == 9 ? GFX9 : GFX11;
#if MESA >= 23
   if (generation == 12)
      level = GFX12;
#endif
   uint32_t count, stream = 0;
   while (fread(&count, 4, 1, stdin) == 1) {
      uint32_t *words = calloc(count + 16, 4);
      if (fread(words, 4, count, stdin) != count)
         return 2;
      printf("=== %u\n", stream++);
      decode(words, count, level, !strcmp(argv[2], "sdma"));
      fflush(stdout);
      free(words);
   }
   return 0;
}
