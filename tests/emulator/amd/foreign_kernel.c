// The kernel of foreign_client.c. It reads the dispatch packet and uses local memory, so that registers which the
// packet processor sets up and the local memory it reserves are tested as well.
struct packet { unsigned short header, setup, workgroup[3], reserved; unsigned grid[3]; };
static __attribute__((address_space(3), loader_uninitialized)) int numbers[64];

__attribute__((amdgpu_kernel, amdgpu_flat_work_group_size(1, 64)))
void scale(float *out, const float *in, float factor, int count) {
  const struct packet *packet = (const struct packet *)__builtin_amdgcn_dispatch_ptr();
  int item = __builtin_amdgcn_workitem_id_x(), group = __builtin_amdgcn_workgroup_id_x();
  int place = group * packet->workgroup[0] + item;
  numbers[63 - item] = item + (group == packet->grid[0] / packet->workgroup[0] ? 64 : 0);
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
  if (place < count) out[place] = in[place] * factor + numbers[63 - item];
}
