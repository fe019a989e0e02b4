#include "platforms/onednn/description.h"

#include <oneapi/dnnl/dnnl_threadpool.h>
#include <pthread.h>

#include <cstdlib>
#include <cstring>

#include "platforms/onednn/planning/workspace.h"

#define SINTER_DNNL(expr) SINTER_RETURN_IF_ERROR(outcome(expr))

namespace sinter::onednn {
namespace {

pthread_once_t once = PTHREAD_ONCE_INIT;
dnnl_engine_t process_engine = nullptr;
Status created;

// Returns the set to limit to; nullptr or an unknown name: no limit.
dnnl_cpu_isa_t cap_of(const char* name) {
  struct Cap {
    const char* name;
    dnnl_cpu_isa_t set;
  };
  constexpr Cap kCaps[] = {{"sse4", dnnl_cpu_isa_sse41},
                           {"sse41", dnnl_cpu_isa_sse41},
                           {"avx2", dnnl_cpu_isa_avx2},
                           {"avx512", dnnl_cpu_isa_avx512_core},
                           {"avx512vnni", dnnl_cpu_isa_avx512_core_vnni}};
  for (const Cap& cap : kCaps)
    if (name != nullptr && std::strcmp(name, cap.name) == 0) return cap.set;
  return dnnl_cpu_isa_default;
}

void create_engine() {
  const dnnl_cpu_isa_t cap = cap_of(std::getenv("SINTER_CPU_CAP"));
  created = outcome(dnnl_set_max_cpu_isa(cap));
  if (!created.ok()) return;
  // Sets of instructions are bits; those of AVX2 include its predecessors'.
  const bool avx2 = (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx2) == dnnl_cpu_isa_avx2;
  created = avx2 ? outcome(dnnl_engine_create(&process_engine, dnnl_cpu, 0))
                 : unsupported("oneDNN's kernels need a processor with AVX2");
}

bool has(int set) { return (dnnl_get_effective_cpu_isa() & set) == set; }

Status check_products(const Problem& p) {
  SINTER_RETURN_UNLESS(!p.integer || has(dnnl_cpu_isa_avx512_core_vnni) || has(dnnl_cpu_isa_avx2_vnni),
                       unsupported("int8 needs a processor with dot products of bytes"));
  SINTER_RETURN_UNLESS(!p.bfloat16 || has(dnnl_cpu_isa_avx512_core_bf16),
                       unsupported("bfloat16 needs a processor with dot products of it"));
  return ok_status();
}

dnnl_data_type_t float_type(const Problem& p) { return p.bfloat16 ? dnnl_bf16 : dnnl_f32; }
dnnl_data_type_t operand_type(const Problem& p) { return p.integer ? dnnl_s8 : float_type(p); }

// Dims are in the library's order, channels first, with the strides of channels last.
constexpr int kPixelRank = 4;

Status describe_pixels(int64_t batch, int64_t channels, const int64_t* lengths, dnnl_data_type_t type,
                       MemoryDesc* desc) {
  const int64_t h = lengths[1], w = lengths[2];
  const dnnl_dims_t dims = {batch, channels, h, w}, strides = {h * w * channels, 1, w * channels, channels};
  return outcome(dnnl_memory_desc_create_with_strides(desc->out(), kPixelRank, dims, type, strides));
}

Status describe_matrix(int64_t rows, int64_t columns, dnnl_data_type_t type, MemoryDesc* desc) {
  const dnnl_dims_t dims = {rows, columns}, strides = {columns, 1};
  return outcome(dnnl_memory_desc_create_with_strides(desc->out(), 2, dims, type, strides));
}

Status describe_bias(const Problem& p, MemoryDesc* desc) {
  if (!p.bias) return ok_status();
  const dnnl_dims_t dims = {p.convolution ? p.window.out_channels : p.n}, strides = {1};
  return outcome(dnnl_memory_desc_create_with_strides(desc->out(), 1, dims,
                                                      p.integer ? dnnl_s32 : float_type(p), strides));
}

// Writes the dims of the weights; returns their number.
int weight_dims(const Problem& p, dnnl_dims_t dims) {
  int rank = 0;
  if (!p.convolution) {
    dims[rank++] = p.n, dims[rank++] = p.k;
    return rank;
  }
  const WindowGeometry& g = p.window;
  if (p.depthwise) dims[rank++] = g.group;
  dims[rank++] = g.group_out(), dims[rank++] = g.group_in();
  dims[rank++] = g.kernel[1], dims[rank++] = g.kernel[2];
  return rank;
}

// The order is that of docs/numerics.md: multiplied, rounded, clamped; the library adds y_zero last.
Status add_integer_steps(const Problem& p, dnnl_post_ops_t steps) {
  MemoryDesc multipliers;
  SINTER_RETURN_IF_ERROR(describe_multipliers(p, &multipliers));
  SINTER_DNNL(dnnl_post_ops_append_binary(steps, dnnl_binary_mul, multipliers.get()));
  if (p.rounded) SINTER_DNNL(dnnl_post_ops_append_eltwise(steps, dnnl_eltwise_round, 0, 0));
  return ok_status();
}

// Sets the user's scratchpad, products in float32, and the steps behind the sums.
Status set_attributes(const Problem& p, Attributes* attributes) {
  SINTER_DNNL(dnnl_primitive_attr_create(attributes->out()));
  SINTER_DNNL(dnnl_primitive_attr_set_scratchpad_mode(attributes->get(), dnnl_scratchpad_mode_user));
  SINTER_DNNL(dnnl_primitive_attr_set_fpmath_mode(attributes->get(), dnnl_fpmath_mode_strict));
  // A mask of 0 means one zero point for all channels.
  if (p.x_zero != 0)
    SINTER_DNNL(dnnl_primitive_attr_set_zero_points_mask(attributes->get(), DNNL_ARG_SRC, 0));
  if (p.y_zero != 0)
    SINTER_DNNL(dnnl_primitive_attr_set_zero_points_mask(attributes->get(), DNNL_ARG_DST, 0));
  if (!p.clamped && !p.integer) return ok_status();
  PostOps steps;
  SINTER_DNNL(dnnl_post_ops_create(steps.out()));
  if (p.integer) SINTER_RETURN_IF_ERROR(add_integer_steps(p, steps.get()));
  if (p.clamped) SINTER_DNNL(dnnl_post_ops_append_eltwise(steps.get(), dnnl_eltwise_clip, p.low, p.high));
  return outcome(dnnl_primitive_attr_set_post_ops(attributes->get(), steps.get()));
}

Status describe_convolution(const Problem& p, dnnl_memory_desc_t weights, dnnl_memory_desc_t bias,
                            const Attributes& attributes, PrimitiveDesc* desc) {
  const WindowGeometry& g = p.window;
  MemoryDesc x, y;
  SINTER_RETURN_IF_ERROR(describe_pixels(g.batch, g.in_channels, g.in, operand_type(p), &x));
  SINTER_RETURN_IF_ERROR(
      describe_pixels(g.batch, g.out_channels, g.out, p.rounded ? dnnl_s8 : float_type(p), &y));
  const dnnl_dims_t strides = {g.stride[1], g.stride[2]}, begin = {g.pad[1], g.pad[2]},
                    end = {g.end_pad[1], g.end_pad[2]},
                    dilation = {g.dilation[1] - 1, g.dilation[2] - 1};  // the library counts gaps
  return outcome(dnnl_convolution_forward_primitive_desc_create(
      desc->out(), process_engine, dnnl_forward_inference, dnnl_convolution_direct, x.get(), weights, bias,
      y.get(), strides, dilation, begin, end, attributes.get()));
}

Status describe_product(const Problem& p, dnnl_memory_desc_t weights, dnnl_memory_desc_t bias,
                        const Attributes& attributes, PrimitiveDesc* desc) {
  MemoryDesc x, y;
  SINTER_RETURN_IF_ERROR(describe_matrix(p.rows, p.k, float_type(p), &x));
  SINTER_RETURN_IF_ERROR(describe_matrix(p.rows, p.n, float_type(p), &y));
  return outcome(dnnl_inner_product_forward_primitive_desc_create(desc->out(), process_engine,
                                                                  dnnl_forward_inference, x.get(), weights,
                                                                  bias, y.get(), attributes.get()));
}

// The FNV-1a hash of numbers, from two seeds.
class Hash {
 public:
  explicit Hash(uint64_t* hash) : hash_(hash) { hash[0] = 0xcbf29ce484222325, hash[1] = 0x84222325cbf29ce4; }
  void add(int64_t number) {
    for (int i = 0; i < 64; i += 8)
      for (int k = 0; k < 2; ++k)
        hash_[k] = (hash_[k] ^ (static_cast<uint64_t>(number) >> i & 255)) * 0x100000001b3;
  }
  void add(const dnnl_dims_t& numbers, int count) {
    for (int i = 0; i < count; ++i) add(numbers[i]);
  }

 private:
  uint64_t* hash_;
};

// Hashes the properties that the library reports of a layout, whose own form has bytes that nothing sets.
Status hash_layout(dnnl_memory_desc_t desc, uint64_t hash[2]) {
  int32_t rank = 0, blocks = 0;
  dnnl_data_type_t type = dnnl_data_type_undef;
  Hash h(hash);
  SINTER_DNNL(dnnl_memory_desc_query(desc, dnnl_query_ndims_s32, &rank));
  SINTER_DNNL(dnnl_memory_desc_query(desc, dnnl_query_inner_nblks_s32, &blocks));
  SINTER_DNNL(dnnl_memory_desc_query(desc, dnnl_query_data_type, &type));
  for (const int64_t number : {int64_t{rank}, int64_t{blocks}, static_cast<int64_t>(type)}) h.add(number);
  struct List {
    dnnl_query_t what;
    int count;
  };
  for (const List& list : {List{dnnl_query_dims, rank}, List{dnnl_query_padded_dims, rank},
                           List{dnnl_query_padded_offsets, rank}, List{dnnl_query_strides, rank},
                           List{dnnl_query_inner_blks, blocks}, List{dnnl_query_inner_idxs, blocks}}) {
    const dnnl_dims_t* numbers = nullptr;
    SINTER_DNNL(dnnl_memory_desc_query(desc, list.what, &numbers));
    h.add(*numbers, list.count);
  }
  return ok_status();
}

// Returns whether the library uses the kernel as a last resort: kernels without vectors, and products that
// pack their operands in every run.
bool is_last_resort(const char* name) {
  for (const char* generic : {"ref", "gemm", "x64:gemm"})
    if (std::strncmp(name, generic, std::strlen(generic)) == 0) return true;
  return false;
}

// Chooses the first of the library's kernels, which are in the order of its preference, whose scratch memory
// is planned: those for AMX copy their input.
Status choose_kernel(const Problem& p, Description* d) {
  const size_t planned = workspace_bound(p) - kRunMemory;
  while (true) {
    const char* name = "";
    SINTER_DNNL(dnnl_primitive_desc_query(d->primitive.get(), dnnl_query_impl_info_str, 0, &name));
    SINTER_RETURN_UNLESS(!is_last_resort(name), unsupported("oneDNN has no fast kernel for this call"));
    d->scratch = dnnl_memory_desc_get_size(d->operand(dnnl_query_scratchpad_md));
    if (align_up(d->scratch, kBufferAlignment) <= planned) return ok_status();
    const int64_t needed = static_cast<int64_t>(d->scratch);
    SINTER_RETURN_UNLESS(dnnl_primitive_desc_next_impl(d->primitive.get()) == dnnl_success,
                         unsupported("oneDNN needs %a bytes of workspace on this processor, not %b", needed,
                                     static_cast<int64_t>(planned)));
  }
}

}  // namespace

Status outcome(dnnl_status_t status) {
  switch (status) {
    case dnnl_success:
      return ok_status();
    case dnnl_unimplemented:
      return unsupported("oneDNN has no kernel for this call on this processor");
    case dnnl_out_of_memory:
      return error(Code::kOutOfMemory, "oneDNN finds no memory on the heap");
    default:
      return error(Code::kInternal, "oneDNN fails with status %a", static_cast<int64_t>(status));
  }
}

Status engine_of_process(dnnl_engine_t* engine) {
  pthread_once(&once, create_engine);
  *engine = process_engine;
  return created;
}

Status describe_multipliers(const Problem& p, MemoryDesc* desc) {
  const dnnl_dims_t dims = {1, p.one_multiplier ? 1 : p.window.out_channels, 1, 1};
  return outcome(dnnl_memory_desc_create_with_tag(desc->out(), kPixelRank, dims, dnnl_f32, dnnl_nhwc));
}

Status describe_number(MemoryDesc* desc) {
  const dnnl_dims_t dims = {1}, strides = {1};
  return outcome(dnnl_memory_desc_create_with_strides(desc->out(), 1, dims, dnnl_s32, strides));
}

dnnl_memory_desc_t Description::operand(dnnl_query_t what, int index) const {
  return const_cast<dnnl_memory_desc_t>(dnnl_primitive_desc_query_md(primitive.get(), what, index));
}

Status describe(const Problem& p, Description* d) {
  SINTER_RETURN_IF_ERROR(check_products(p));
  SINTER_DNNL(dnnl_threadpool_interop_set_max_concurrency(kParts));
  Attributes attributes;
  MemoryDesc weights, bias;
  dnnl_dims_t dims;
  const int rank = weight_dims(p, dims);
  SINTER_RETURN_IF_ERROR(set_attributes(p, &attributes));
  SINTER_DNNL(
      dnnl_memory_desc_create_with_tag(weights.out(), rank, dims, operand_type(p), dnnl_format_tag_any));
  SINTER_RETURN_IF_ERROR(describe_bias(p, &bias));
  SINTER_RETURN_IF_ERROR((p.convolution ? describe_convolution : describe_product)(
      p, weights.get(), bias.get(), attributes, &d->primitive));
  SINTER_RETURN_IF_ERROR(choose_kernel(p, d));
  d->packed = dnnl_memory_desc_get_size(d->operand(dnnl_query_weights_md));
  return hash_layout(d->operand(dnnl_query_weights_md), d->layout);
}

Status describe_weights(const Problem& p, MemoryDesc* weights) {
  dnnl_dims_t dims;
  const int rank = weight_dims(p, dims);
  dnnl_dims_t strides = {p.n_step, p.k_step, 1, 1};
  const WindowGeometry& g = p.window;
  const int64_t pixel = p.depthwise ? g.out_channels : g.in_channels;
  if (p.depthwise) {  // [spatial..., O]
    const dnnl_dims_t of_channels = {1, 1, 1, g.kernel[2] * pixel, pixel};
    std::memcpy(strides, of_channels, sizeof strides);
  } else if (p.convolution && p.k == 0) {  // [O, spatial..., I]
    const dnnl_dims_t of_filters = {g.taps() * pixel, 1, g.kernel[2] * pixel, pixel};
    std::memcpy(strides, of_filters, sizeof strides);
  }
  return outcome(dnnl_memory_desc_create_with_strides(weights->out(), rank, dims, operand_type(p), strides));
}

}  // namespace sinter::onednn
