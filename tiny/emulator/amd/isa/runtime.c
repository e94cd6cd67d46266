// What every translated kernel stands on: the registers of a wave, memory with faults, workgroups and barriers.
// Before this come LANES and MASK; after it the kernels, each a function (struct run *, struct wave *) -> why it stops.

typedef unsigned char u8; typedef signed char i8; typedef unsigned short u16; typedef short i16;
typedef unsigned int u32; typedef int i32; typedef unsigned long u64; typedef long i64;
typedef _Float16 f16; typedef float f32; typedef double f64;
#define BITS(name, from, to) \
  static inline to name(from x) { to y; __builtin_memcpy(&y, &x, sizeof y); return y; }
BITS(f32_of, u32, f32) BITS(u32_of, f32, u32) BITS(f64_of, u64, f64) BITS(u64_of, f64, u64)
BITS(f16_of, u16, f16) BITS(u16_of, f16, u16)
static inline u32 clz32(u32 x) { return x ? (u32)__builtin_clz(x) : 32; }
#ifdef __clang__
#define VECTORIZE _Pragma("clang loop vectorize(assume_safety)")
#define ONE_BY_ONE _Pragma("clang loop vectorize(disable)")
#else
#define VECTORIZE _Pragma("GCC ivdep")
#define ONE_BY_ONE
#endif

struct wave {  // state.WaveHeader and the vector registers
  u32 s[128];
  u32 scc, pc, state, mode;
  u64 scratch, fault_address;
  u32 fault_size, fault_action, spare[22];
  u32 v[512][LANES];
};
struct range { u64 start, end, host, writable; };
#define HINTS 64
struct run {  // run.Run
  u64 ranges, range_count;
  u64 waves, lds, lds_bytes, scratch, scratch_bytes;
  u64 next_group, last_group, fuel;                        // fuel: backward branches until the next PAUSE
  u32 groups[3], size[3], grid[3];
  u32 wave_count, started, current;
  u32 user_count, id_place, id_enable, ids_in_ttmp, entry, mode, registers;
  u32 user_data[32], hints[HINTS];                         // hints: the range an instruction reached last
};

enum { DONE, STEP, FAULT, NEW_PLACE, PAUSE };              // why a kernel returns
enum { RUNNING, AT_BARRIER, ENDED };                       // wave.state
enum { READ, WRITE, LOCAL_READ, LOCAL_WRITE, PRIVATE_READ, PRIVATE_WRITE };
#define EACH_LANE for (u32 l = 0; l < LANES; l++)
#define NOWHERE (~0ul)
#define FULL ((MASK)~(MASK)0)
#define INLINE static inline __attribute__((always_inline))
#define CALLED static __attribute__((noinline))
#define SLOW static __attribute__((noinline, cold))

typedef u32 word __attribute__((aligned(1)));              // a dword anywhere

void *memcpy(void *, const void *, unsigned long);
void *memset(void *, int, unsigned long);

// -- memory: addresses of the card become addresses of this process, or a fault -------------------------------------
SLOW u32 fault(struct wave *w, u64 address, u32 size, u32 action) {
  w->fault_address = address, w->fault_size = size, w->fault_action = action;
  return FAULT;
}

static const struct range *find(struct run *r, u64 address) {  // the range an address lies in, 0: none
  const struct range *all = (const struct range *)r->ranges;
  u64 first = 0, count = r->range_count;
  while (count) {
    u64 half = count / 2;
    if (all[first + half].end <= address) first += half + 1, count -= half + 1;
    else count = half;
  }
  return first < r->range_count && all[first].start <= address ? all + first : 0;
}

static u64 locate(struct run *r, u64 address, u32 size, u32 writing) {  // what to add to the address
  const struct range *found = find(r, address);
  if (!found || found->end - address < size || writing && !found->writable) return NOWHERE;
  return found->host;
}

// Whether `size` bytes at the addresses of active lanes lie between start and end. Bit 63 stands for "below zero".
INLINE _Bool within(const u64 *a, MASK e, u64 start, u64 end, u32 size) {
  u64 outside = 0, limit = end - size;
  EACH_LANE outside |= (a[l] - start | limit - a[l]) & -(u64)(e >> l & 1);
  return end - start >= size && !(outside >> 63);
}

INLINE void become_pointers(u64 *a, MASK e, u64 start, u64 host) {
  EACH_LANE {
    u64 on = -(u64)(e >> l & 1);
    a[l] = (a[l] & on | start & ~on) + host;
  }
}

// Each of these turns the addresses of active lanes into pointers; other lanes get a pointer that may be read.
SLOW u32 each_global(struct run *r, struct wave *w, u64 *a, MASK e, u32 size, u32 writing) {
  u64 safe = 0;
  EACH_LANE if (e >> l & 1) {
    u64 host = locate(r, a[l], size, writing);
    if (host == NOWHERE) return fault(w, a[l], size, writing ? WRITE : READ);
    a[l] += host;
    safe = a[l];
  }
  EACH_LANE if (!(e >> l & 1)) a[l] = safe;
  return 0;
}

CALLED u32 to_global(struct run *r, struct wave *w, u64 *a, MASK e, u32 size, u32 writing, u32 site) {
  const struct range *all = (const struct range *)r->ranges, *last = all + r->hints[site % HINTS];
  if (!within(a, e, last->start, last->end, size) || writing && !last->writable) {
    last = find(r, a[__builtin_ctzl(e)]);
    if (!last || !within(a, e, last->start, last->end, size) || writing && !last->writable)
      return each_global(r, w, a, e, size, writing);
    r->hints[site % HINTS] = last - all;
  }
  become_pointers(a, e, last->start, last->host);
  return 0;
}

INLINE u32 outside(struct wave *w, const u64 *a, MASK e, u64 bytes, u32 size, u32 action) {  // fault of LDS or scratch
  if (within(a, e, 0, bytes, size)) return 0;
  EACH_LANE if ((e >> l & 1) && a[l] + size > bytes) return fault(w, a[l], size, action);
  return 0;
}

CALLED u32 to_lds(struct run *r, struct wave *w, u64 *a, MASK e, u32 size, u32 writing, u32 site) {
  EACH_LANE a[l] &= 0xffffffff;
  u32 bad = outside(w, a, e, r->lds_bytes, size, writing ? LOCAL_WRITE : LOCAL_READ);
  become_pointers(a, e, 0, r->lds);
  return bad;
}

CALLED u32 to_scratch(struct run *r, struct wave *w, u64 *a, MASK e, u32 size, u32 writing, u32 site) {
  EACH_LANE a[l] &= 0xffffffff;
  u32 bad = outside(w, a, e, r->scratch_bytes, size, writing ? PRIVATE_WRITE : PRIVATE_READ);
  become_pointers(a, e, 0, w->scratch);
  EACH_LANE a[l] += l * r->scratch_bytes;
  return bad;
}

// Apertures: 1 << 48 is LDS, 2 << 48 is scratch.
SLOW u32 to_flat(struct run *r, struct wave *w, u64 *a, MASK e, u32 size, u32 writing, u32 site) {
  u64 safe = 0;
  EACH_LANE if (e >> l & 1) {
    u64 aperture = a[l] >> 32, offset = a[l] & 0xffffffff;
    if (aperture == 1 << 16) {
      if (offset + size > r->lds_bytes) return fault(w, offset, size, writing ? LOCAL_WRITE : LOCAL_READ);
      a[l] = r->lds + offset;
    } else if (aperture == 2 << 16) {
      if (offset + size > r->scratch_bytes) return fault(w, offset, size, writing ? PRIVATE_WRITE : PRIVATE_READ);
      a[l] = w->scratch + l * r->scratch_bytes + offset;
    } else {
      u64 host = locate(r, a[l], size, writing);
      if (host == NOWHERE) return fault(w, a[l], size, writing ? WRITE : READ);
      a[l] += host;
    }
    safe = a[l];
  }
  EACH_LANE if (!(e >> l & 1)) a[l] = safe;
  return 0;
}

INLINE _Bool in_a_row(const u64 *p, MASK e) {              // all lanes active, each dword behind the one before
  u64 apart = 0;
  EACH_LANE apart |= p[l] - p[0] ^ 4 * l;
  return e == FULL && !apart;
}

typedef u32 quad __attribute__((vector_size(16), aligned(4)));

INLINE void load_quads(u32 (*v)[LANES], const u64 *p) {    // four dwords of each of four lanes, transposed
  ONE_BY_ONE
  for (u32 l = 0; l < LANES; l += 4) {
    quad a = *(const quad *)p[l], b = *(const quad *)p[l + 1], c = *(const quad *)p[l + 2], d = *(const quad *)p[l + 3];
    quad ab = __builtin_shufflevector(a, b, 0, 4, 1, 5), cd = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    quad ef = __builtin_shufflevector(a, b, 2, 6, 3, 7), gh = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(quad *)&v[0][l] = __builtin_shufflevector(ab, cd, 0, 1, 4, 5);
    *(quad *)&v[1][l] = __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
    *(quad *)&v[2][l] = __builtin_shufflevector(ef, gh, 0, 1, 4, 5);
    *(quad *)&v[3][l] = __builtin_shufflevector(ef, gh, 2, 3, 6, 7);
  }
}

// Lane by lane: gathering instructions are slower than single loads on the machines this was measured on.
CALLED void load_dwords(u32 (*v)[LANES], const u64 *p, MASK e, u32 count) {
  if (count == 1 && in_a_row(p, e)) {
    memcpy(v, (const void *)p[0], 4 * LANES);
  } else if (count == 4 && e == FULL) {
    load_quads(v, p);
  } else {
    ONE_BY_ONE
    EACH_LANE if (e >> l & 1) for (u32 n = 0; n < count; n++) v[n][l] = *(const word *)(p[l] + 4 * n);
  }
}

CALLED void store_dwords(u32 (*v)[LANES], const u64 *p, MASK e, u32 count) {
  if (count == 1 && in_a_row(p, e)) {
    memcpy((void *)p[0], v, 4 * LANES);
    return;
  }
  ONE_BY_ONE
  EACH_LANE if (e >> l & 1) for (u32 n = 0; n < count; n++) *(word *)(p[l] + 4 * n) = v[n][l];
}

CALLED void clear_lanes(u32 *v, MASK e, u32 keep) {        // what a load out of range leaves
  EACH_LANE v[l] = (e >> l & 1) ? v[l] & keep : v[l];
}

#define LOAD_SMALL(type)                                                                         \
  CALLED void load_##type(u32 *v, const u64 *p, MASK e) {                                        \
    EACH_LANE {                                                                                  \
      type x;                                                                                    \
      memcpy(&x, (const void *)p[l], sizeof x);                                                  \
      v[l] = (e >> l & 1) ? (u32)(i32)x : v[l];                                                  \
    }                                                                                            \
  }                                                                                              \
  CALLED void load_low_##type(u32 *v, const u64 *p, MASK e) {                                    \
    EACH_LANE {                                                                                  \
      type x;                                                                                    \
      memcpy(&x, (const void *)p[l], sizeof x);                                                  \
      v[l] = (e >> l & 1) ? (v[l] & 0xffff0000) | (u16)x : v[l];                                 \
    }                                                                                            \
  }                                                                                              \
  CALLED void load_high_##type(u32 *v, const u64 *p, MASK e) {                                   \
    EACH_LANE {                                                                                  \
      type x;                                                                                    \
      memcpy(&x, (const void *)p[l], sizeof x);                                                  \
      v[l] = (e >> l & 1) ? (v[l] & 0xffff) | (u32)(u16)x << 16 : v[l];                          \
    }                                                                                            \
  }
LOAD_SMALL(u8) LOAD_SMALL(i8) LOAD_SMALL(u16) LOAD_SMALL(i16)
#define STORE_SMALL(type)                                                                        \
  CALLED void store_##type(const u32 *v, const u64 *p, MASK e, u32 shift) {                      \
    EACH_LANE if (e >> l & 1) {                                                                  \
      type x = (type)(v[l] >> shift);                                                            \
      memcpy((void *)p[l], &x, sizeof x);                                                        \
    }                                                                                            \
  }
STORE_SMALL(u8) STORE_SMALL(u16)

#define SCALAR(type, wide)                                                                       \
  static u32 scalar_##type(struct run *r, struct wave *w, u64 address, u32 count, u32 *s) {      \
    u64 host = locate(r, address, sizeof(type) * count, 0);                                      \
    if (host == NOWHERE) return fault(w, address, sizeof(type) * count, READ);                   \
    for (u32 n = 0; n < count; n++) {                                                            \
      type x;                                                                                    \
      memcpy(&x, (const void *)(address + host + sizeof(type) * n), sizeof x);                   \
      s[n] = (wide)x;                                                                            \
    }                                                                                            \
    return 0;                                                                                    \
  }
static u32 scalar_store(struct run *r, struct wave *w, u64 address, u32 count, const u32 *s) {
  u64 host = locate(r, address, 4 * count, 1);
  if (host == NOWHERE) return fault(w, address, 4 * count, WRITE);
  memcpy((void *)(address + host), s, 4 * count);
  return 0;
}
SCALAR(u32, u32) SCALAR(u16, u32) SCALAR(i16, i32) SCALAR(u8, u32) SCALAR(i8, i32)

// -- matrices: d += a b, with tables of the lanes that hold rows of a and columns of b (c_matrix.py) -----------------
#define MULTIPLY(name, type, width, product, finish)                                                                    \
  CALLED void multiply_##name##_##width(type (*d)[LANES], type (*a)[LANES], type (*b)[LANES], const u8 *lane_a,         \
                                        const u8 *lane_b, const u8 *place_a, const u8 *place_b, const u32 *choices,     \
                                        u32 shift, u32 elements, u32 terms, u32 clamp) {                                \
    for (u32 n = 0; n < elements; n++)                                                                                  \
      for (u32 g = 0; g < LANES / width; g++) {                                                                         \
        type sums[width], *into = d[n] + g * width;                                                                     \
        for (u32 j = 0; j < width; j++) sums[j] = into[j];                                                              \
        for (u32 k = 0; k < terms; k++) {                                                                               \
          u32 lane = lane_a[(n * terms + k) * (LANES / width) + g], place = place_b[k];                                 \
          if (choices) place += choices[lane] >> (shift + 2 * place_a[k]) & 3;                                          \
          type x = a[place_a[k]][lane];                                                                                 \
          const type *y = b[place] + lane_b[(n * terms + k) * (LANES / width) + g];                                     \
          for (u32 j = 0; j < width; j++) sums[j] = product;                                                            \
        }                                                                                                               \
        for (u32 j = 0; j < width; j++) into[j] = finish;                                                               \
      }                                                                                                                 \
  }
#define BOTH(name, type, product, finish) MULTIPLY(name, type, 16, product, finish) MULTIPLY(name, type, 4, product, finish)
BOTH(f32, f32, sums[j] + x * y[j], sums[j])
BOTH(fused_f32, f32, __builtin_fmaf(x, y[j], sums[j]), sums[j])
BOTH(fused_f64, f64, __builtin_fma(x, y[j], sums[j]), sums[j])
static inline i32 limited(i64 x) { return x > 0x7fffffff ? 0x7fffffff : x < -0x7fffffff - 1 ? -0x7fffffff - 1 : (i32)x; }
#define SUM (sums[j] - (u32)into[j])                       // of the products alone, which fit
BOTH(i32, i32, (i32)((u32)sums[j] + (u32)x * (u32)y[j]), clamp ? limited((i64)into[j] + (i32)SUM) : sums[j])

// -- workgroups -----------------------------------------------------------------------------------------------------
static void start_group(struct run *r) {
  u64 number = r->next_group;
  u32 id[3] = {number % r->groups[0], number / r->groups[0] % r->groups[1], number / r->groups[0] / r->groups[1]}, size[3];
  for (u32 n = 0; n < 3; n++) {                            // the last workgroups of a grid may be smaller
    u32 left = r->grid[n] - id[n] * r->size[n];
    size[n] = left < r->size[n] ? left : r->size[n];
  }
  u32 items = size[0] * size[1] * size[2];
  memset((void *)r->lds, 0xa5, r->lds_bytes);
  r->wave_count = (items + LANES - 1) / LANES;
  for (u32 n = 0; n < r->wave_count; n++) {
    struct wave *w = (struct wave *)r->waves + n;
    u32 first = n * LANES, lanes = items - first < LANES ? items - first : LANES, place = r->id_place;
    memset(w->s, 0xa5, sizeof w->s);
    memset(w->v, 0xa5, r->registers * sizeof w->v[0]);
    for (u32 i = 0; i < r->user_count; i++) w->s[i] = r->user_data[i];
    if (r->ids_in_ttmp) w->s[108 + 9] = id[0], w->s[108 + 7] = id[1] | id[2] << 16;
    else for (u32 i = 0; i < 3; i++) if (r->id_enable >> i & 1) w->s[place++] = id[i];
    u64 mask = lanes == 64 ? ~0ul : (1ul << lanes) - 1;
    w->s[126] = mask, w->s[127] = mask >> 32;
    w->scc = 0, w->pc = r->entry, w->state = RUNNING, w->mode = r->mode;
    w->scratch = r->scratch + (u64)n * LANES * r->scratch_bytes;
    EACH_LANE {
      u32 item = first + l;
      w->v[0][l] = item % size[0] | item / size[0] % size[1] << 10 | item / (size[0] * size[1]) << 20;
    }
  }
}

// From where it stopped; the wave in question is r->current.
INLINE u32 run_groups(struct run *r, u32 (*kernel)(struct run *, struct wave *)) {
  for (; r->next_group < r->last_group; r->next_group++, r->started = 0) {
    if (!r->started) start_group(r), r->started = 1, r->current = 0;
    for (;;) {
      u32 waiting = 0;
      for (; r->current < r->wave_count; r->current++) {
        struct wave *w = (struct wave *)r->waves + r->current;
        if (w->state == RUNNING) {
          u32 why = kernel(r, w);
          if (why) return why;
        }
      }
      for (u32 n = 0; n < r->wave_count; n++) {
        struct wave *w = (struct wave *)r->waves + n;
        if (w->state == AT_BARRIER) w->state = RUNNING, waiting++;
      }
      r->current = 0;
      if (!waiting) break;
    }
  }
  return DONE;
}
