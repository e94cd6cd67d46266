// A program that knows the HSA runtime's interface and nothing of tiny: `client` makes a queue on the first GPU, has
// barrier packets done, and copies to video memory and back; `client FILE` also copies within it, then loads the code object in FILE and runs
// its kernel `scale`. With a second GPU it copies from one to the other.
#include <hsa/hsa.h>
#include <hsa/hsa_ext_amd.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(call)                                                            \
  do {                                                                         \
    hsa_status_t status = (call);                                              \
    if (status != HSA_STATUS_SUCCESS && status != HSA_STATUS_INFO_BREAK) {     \
      const char *text = "?";                                                  \
      hsa_status_string(status, &text);                                        \
      printf("%s: %s\n", #call, text);                                         \
      exit(1);                                                                 \
    }                                                                          \
  } while (0)

static hsa_agent_t gpu, cpu, second_gpu;  // the last two: handle 0 while there is none
static hsa_region_t kernargs, system_memory, video_memory;

static hsa_status_t find_gpu(hsa_agent_t agent, void *data) {
  hsa_device_type_t type;
  char name[64];
  CHECK(hsa_agent_get_info(agent, HSA_AGENT_INFO_DEVICE, &type));
  CHECK(hsa_agent_get_info(agent, HSA_AGENT_INFO_NAME, name));
  if (type == HSA_DEVICE_TYPE_CPU) cpu = agent;
  if (type != HSA_DEVICE_TYPE_GPU) return HSA_STATUS_SUCCESS;
  if (gpu.handle) {
    second_gpu = agent;
    return HSA_STATUS_INFO_BREAK;
  }
  gpu = agent;
  printf("agent %s\n", name);
  return HSA_STATUS_SUCCESS;
}

static hsa_status_t find_region(hsa_region_t region, void *data) {
  hsa_region_segment_t segment;
  uint32_t flags = 0;
  CHECK(hsa_region_get_info(region, HSA_REGION_INFO_SEGMENT, &segment));
  if (segment != HSA_REGION_SEGMENT_GLOBAL) return HSA_STATUS_SUCCESS;
  CHECK(hsa_region_get_info(region, HSA_REGION_INFO_GLOBAL_FLAGS, &flags));
  if (flags & HSA_REGION_GLOBAL_FLAG_KERNARG) kernargs = region;
  else if (flags & HSA_REGION_GLOBAL_FLAG_FINE_GRAINED) system_memory = region;
  if (flags & HSA_REGION_GLOBAL_FLAG_COARSE_GRAINED) video_memory = region;
  return HSA_STATUS_SUCCESS;
}

// Publishes a packet of 64 bytes, header last, and waits for its signal.
static void submit(hsa_queue_t *queue, void *packet, uint16_t type, uint16_t setup, hsa_signal_t signal) {
  uint64_t index = hsa_queue_add_write_index_screlease(queue, 1);
  char *slot = (char *)queue->base_address + index % queue->size * 64;
  uint32_t header = type << HSA_PACKET_HEADER_TYPE | 1 << HSA_PACKET_HEADER_BARRIER |
                    HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCACQUIRE_FENCE_SCOPE |
                    HSA_FENCE_SCOPE_SYSTEM << HSA_PACKET_HEADER_SCRELEASE_FENCE_SCOPE;
  memcpy(slot + 4, (char *)packet + 4, 60);
  __atomic_store_n((uint32_t *)slot, header | (uint32_t)setup << 16, __ATOMIC_RELEASE);
  hsa_signal_store_screlease(queue->doorbell_signal, index);
  hsa_signal_value_t left = hsa_signal_wait_scacquire(signal, HSA_SIGNAL_CONDITION_LT, 1, 20000000000ull,
                                                      HSA_WAIT_STATE_BLOCKED);
  if (left) {
    printf("packet %lu: the signal is still %ld\n", (unsigned long)index, (long)left);
    exit(1);
  }
}

static void barrier(hsa_queue_t *queue) {
  hsa_barrier_and_packet_t packet = {0};
  hsa_signal_t done, before;
  CHECK(hsa_signal_create(1, 0, NULL, &done));
  CHECK(hsa_signal_create(0, 0, NULL, &before));
  packet.dep_signal[1] = before;
  packet.completion_signal = done;
  submit(queue, &packet, HSA_PACKET_TYPE_BARRIER_AND, 0, done);
  CHECK(hsa_signal_destroy(done));
  CHECK(hsa_signal_destroy(before));
}

static void copy(void *to, hsa_agent_t to_agent, const void *from, hsa_agent_t from_agent, size_t size) {
  hsa_signal_t done;
  CHECK(hsa_signal_create(1, 0, NULL, &done));
  CHECK(hsa_amd_memory_async_copy(to, to_agent, from, from_agent, size, 0, NULL, done));
  if (hsa_signal_wait_scacquire(done, HSA_SIGNAL_CONDITION_LT, 1, 20000000000ull, HSA_WAIT_STATE_BLOCKED)) {
    printf("a copy does not end\n");
    exit(1);
  }
  CHECK(hsa_signal_destroy(done));
}

// From the program's memory to video memory and back, which the copy engine does; within video memory, which a kernel
// of the runtime's does; and by the runtime's own choice.
static void copies(int within) {
  enum { COUNT = 300001 };
  size_t size = COUNT * sizeof(int);
  int *there, *other, *own = malloc(size), *back = calloc(COUNT, sizeof(int)), *seen, wrong = 0;
  CHECK(hsa_memory_allocate(video_memory, size, (void **)&there));
  CHECK(hsa_memory_allocate(video_memory, size, (void **)&other));
  for (int n = 0; n < COUNT; n++) own[n] = n ^ n << 13;
  CHECK(hsa_amd_memory_lock(own, size, &gpu, 1, (void **)&seen));
  copy(there, gpu, seen, cpu, size);
  if (within) copy(other, gpu, there, gpu, size);
  CHECK(hsa_memory_copy(back, within ? other : there, size));
  for (int n = 0; n < COUNT; n++) wrong += back[n] != (n ^ n << 13), own[n] = 0;
  copy(seen, cpu, there, gpu, size);
  for (int n = 0; n < COUNT; n++) wrong += own[n] != (n ^ n << 13);
  printf("copies: %d of %d values wrong\n", wrong, 2 * COUNT);
  CHECK(hsa_amd_memory_unlock(own));
  CHECK(hsa_memory_free(there));
  CHECK(hsa_memory_free(other));
  if (wrong) exit(1);
}

static hsa_status_t find_video_memory(hsa_region_t region, void *data) {
  uint32_t flags = 0;
  hsa_region_segment_t segment;
  CHECK(hsa_region_get_info(region, HSA_REGION_INFO_SEGMENT, &segment));
  if (segment == HSA_REGION_SEGMENT_GLOBAL)
    CHECK(hsa_region_get_info(region, HSA_REGION_INFO_GLOBAL_FLAGS, &flags));
  if (flags & HSA_REGION_GLOBAL_FLAG_COARSE_GRAINED) *(hsa_region_t *)data = region;
  return HSA_STATUS_SUCCESS;
}

// From one card's memory to the other's.
static void peers(void) {
  enum { COUNT = 100001 };
  size_t size = COUNT * sizeof(int);
  hsa_region_t region;
  int *first, *second, *own = malloc(size), *back = calloc(COUNT, sizeof(int)), wrong = 0;
  CHECK(hsa_agent_iterate_regions(second_gpu, find_video_memory, &region));
  CHECK(hsa_memory_allocate(video_memory, size, (void **)&first));
  CHECK(hsa_memory_allocate(region, size, (void **)&second));
  CHECK(hsa_amd_agents_allow_access(1, &second_gpu, NULL, first));
  CHECK(hsa_amd_agents_allow_access(1, &gpu, NULL, second));
  for (int n = 0; n < COUNT; n++) own[n] = n ^ n << 11;
  CHECK(hsa_memory_copy(first, own, size));
  copy(second, second_gpu, first, gpu, size);
  CHECK(hsa_memory_copy(back, second, size));
  for (int n = 0; n < COUNT; n++) wrong += back[n] != own[n];
  printf("peers: %d of %d values wrong\n", wrong, COUNT);
  CHECK(hsa_memory_free(first));
  CHECK(hsa_memory_free(second));
  if (wrong) exit(1);
}

static void dispatch(hsa_queue_t *queue, const char *file) {
  enum { COUNT = 1000 };
  struct { float *out; const float *in; float factor; int count; } *arguments;
  hsa_code_object_reader_t reader;
  hsa_executable_t executable;
  hsa_executable_symbol_t symbol;
  hsa_kernel_dispatch_packet_t packet = {0};
  hsa_signal_t done;
  int fd = open(file, O_RDONLY), wrong = 0;
  CHECK(hsa_code_object_reader_create_from_file(fd, &reader));
  CHECK(hsa_executable_create_alt(HSA_PROFILE_BASE, HSA_DEFAULT_FLOAT_ROUNDING_MODE_DEFAULT, NULL, &executable));
  CHECK(hsa_executable_load_agent_code_object(executable, gpu, reader, NULL, NULL));
  CHECK(hsa_executable_freeze(executable, NULL));
  CHECK(hsa_executable_get_symbol_by_name(executable, "scale.kd", &gpu, &symbol));
  CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_OBJECT, &packet.kernel_object));
  CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_GROUP_SEGMENT_SIZE,
                                       &packet.group_segment_size));
  CHECK(hsa_executable_symbol_get_info(symbol, HSA_EXECUTABLE_SYMBOL_INFO_KERNEL_PRIVATE_SEGMENT_SIZE,
                                       &packet.private_segment_size));
  printf("loaded\n");
  float *memory, *own = malloc(COUNT * sizeof(float)), *seen;
  CHECK(hsa_memory_allocate(system_memory, COUNT * sizeof(float), (void **)&memory));
  CHECK(hsa_memory_allocate(kernargs, 4096, (void **)&arguments));
  CHECK(hsa_amd_memory_lock(own, COUNT * sizeof(float), &gpu, 1, (void **)&seen));  // the program's own pages
  for (int n = 0; n < COUNT; n++) own[n] = n - 0.5f, memory[n] = -1;
  arguments->out = memory, arguments->in = seen, arguments->factor = 3, arguments->count = COUNT;
  CHECK(hsa_signal_create(1, 0, NULL, &done));
  packet.workgroup_size_x = 64, packet.workgroup_size_y = packet.workgroup_size_z = 1;
  packet.grid_size_x = COUNT, packet.grid_size_y = packet.grid_size_z = 1;
  packet.kernarg_address = arguments;
  packet.completion_signal = done;
  submit(queue, &packet, HSA_PACKET_TYPE_KERNEL_DISPATCH, 1, done);
  for (int n = 0; n < COUNT; n++) wrong += memory[n] != (n - 0.5f) * 3 + n % 64 + 64 * (n / 64 == COUNT / 64);
  printf("dispatch: %d of %d values wrong\n", wrong, COUNT);
  CHECK(hsa_amd_memory_unlock(own));
  CHECK(hsa_signal_destroy(done));
  CHECK(hsa_executable_destroy(executable));
  if (wrong) exit(1);
}

int main(int count, char **words) {
  hsa_queue_t *queue;
  setvbuf(stdout, NULL, _IOLBF, 0);
  CHECK(hsa_init());
  CHECK(hsa_iterate_agents(find_gpu, NULL));
  CHECK(hsa_queue_create(gpu, 64, HSA_QUEUE_TYPE_MULTI, NULL, NULL, UINT32_MAX, UINT32_MAX, &queue));
  printf("queue of %u packets\n", queue->size);
  for (int n = 0; n < 70; n++) barrier(queue);  // once around the ring, and more
  printf("barriers done\n");
  CHECK(hsa_agent_iterate_regions(gpu, find_region, NULL));
  copies(count > 1);
  if (count > 1) dispatch(queue, words[1]);
  if (second_gpu.handle) peers();
  CHECK(hsa_queue_destroy(queue));
  CHECK(hsa_shut_down());
  printf("end\n");
  return 0;
}
