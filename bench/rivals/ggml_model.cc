// The models of bench/decoders.py and bench/prefill.py on ggml, the library of tensors in llama.cpp. Not a
// part of the build: both scripts compile it where --ggml names a folder with ggml's sources and static
// libraries (bench/README.md).
//
//   ggml_model decoder TYPE BLOCKS THREADS SECONDS    tokens one by one, from position 0 on
//   ggml_model products TYPE ROWS THREADS SECONDS     two products, 2048 to 5632 and back, as one run
//
// TYPE is a type of ggml: q4_0, q8_0, f16, bf16. Prints one line of JSON: load_ms, first_ms, times (seconds),
// bytes of the matrices (the embedding excluded), and resident bytes after the first run. Weights are random
// bytes with scales that keep values finite; each goes into the buffer that llama.cpp would choose: packed
// for the processor where ggml has such a form, else plain.
#include <ggml-alloc.h>
#include <ggml-backend.h>
#include <ggml-cpu.h>
#include <ggml.h>

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace {

constexpr int kWidth = 2048, kHeads = 16, kGroups = 4, kSize = 128, kHidden = 5632, kTokens = 32000,
              kContext = 256;

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "ggml_model: %s\n", what);
  std::exit(1);
}

size_t resident() {
  size_t pages = 0, held = 0;
  FILE* file = std::fopen("/proc/self/statm", "r");
  if (!file || std::fscanf(file, "%zu %zu", &pages, &held) != 2) fail("/proc/self/statm cannot be read");
  std::fclose(file);
  return held * 4096;
}

struct Weights {
  ggml_type type;
  ggml_context* packed;  // matrices, in the processor's packed form where there is one
  ggml_context* plain;
  size_t bytes = 0;

  ggml_tensor* matrix(int in, int out) {
    ggml_tensor* t = ggml_new_tensor_2d(packed, type, in, out);
    bytes += ggml_nbytes(t);
    return t;
  }
};

struct Block {
  ggml_tensor *norm, *q, *k, *v, *o, *feed, *gate, *up, *down, *keys, *values;
};

// Random numbers of about 0.02, quantized by ggml; one row is drawn and repeated with another offset, which
// is as fast to fill.
void fill(ggml_tensor* t) {
  const int64_t columns = t->ne[0], rows = ggml_nrows(t);
  std::vector<float> drawn(static_cast<size_t>(columns) * 16);
  uint32_t state = 12345;
  for (float& x : drawn) {
    state = state * 1664525u + 1013904223u;
    x = (static_cast<float>(state >> 8) / 8388608.0f - 1.0f) * 0.03f;
  }
  const size_t row_bytes = ggml_row_size(t->type, columns);
  std::vector<char> pattern(row_bytes * 16), all(row_bytes * rows);
  ggml_quantize_chunk(t->type, drawn.data(), pattern.data(), 0, 16, columns, nullptr);
  for (int64_t row = 0; row < rows; ++row)
    std::memcpy(&all[row_bytes * row], &pattern[row_bytes * ((row * 7) % 16)], row_bytes);
  ggml_backend_tensor_set(t, all.data(), 0, all.size());
}

// The buffer type that packs weights for this processor, or null.
ggml_backend_buffer_type_t packing_buffers() {
  ggml_backend_dev_t device = ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU);
  auto* extra = reinterpret_cast<ggml_backend_dev_get_extra_bufts_t>(ggml_backend_reg_get_proc_address(
      ggml_backend_dev_backend_reg(device), "ggml_backend_dev_get_extra_bufts"));
  ggml_backend_buffer_type_t* types = extra ? extra(device) : nullptr;
  return types ? *types : nullptr;
}

bool supports_packed(ggml_type type, ggml_backend_buffer_type_t packing) {
  // Asked as llama.cpp asks: whether the product with a weight in such a buffer is supported.
  ggml_context* context = ggml_init({ggml_tensor_overhead() * 8, nullptr, true});
  ggml_tensor* w = ggml_new_tensor_2d(context, type, kWidth, kHidden);
  ggml_tensor* product = ggml_mul_mat(context, w, ggml_new_tensor_2d(context, GGML_TYPE_F32, kWidth, 1));
  w->buffer = ggml_backend_buft_alloc_buffer(packing, 0);
  const bool supported =
      ggml_backend_dev_supports_op(ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU), product);
  ggml_backend_buffer_free(w->buffer);
  ggml_free(context);
  return supported;
}

void allocate(const Weights& weights) {
  ggml_backend_buffer_type_t packing = packing_buffers();
  const bool packed = packing && supports_packed(weights.type, packing);
  if (!ggml_backend_alloc_ctx_tensors_from_buft(weights.packed,
                                                packed ? packing : ggml_backend_cpu_buffer_type()))
    fail("no memory for the matrices");
  if (ggml_get_first_tensor(weights.plain) &&
      !ggml_backend_alloc_ctx_tensors_from_buft(weights.plain, ggml_backend_cpu_buffer_type()))
    fail("no memory for the other tensors");
  for (ggml_context* context : {weights.packed, weights.plain})
    for (ggml_tensor* t = ggml_get_first_tensor(context); t; t = ggml_get_next_tensor(context, t)) fill(t);
  std::fprintf(stderr, "weights are %s\n", packed ? "packed" : "plain");
}

struct Decoder {
  std::vector<Block> blocks;
  ggml_tensor *embedding, *norm, *head;

  Decoder(Weights& w, int count) : blocks(count) {
    auto vector = [&] { return ggml_new_tensor_1d(w.plain, GGML_TYPE_F32, kWidth); };
    for (Block& b : blocks) {
      b.norm = vector(), b.feed = vector();
      b.q = w.matrix(kWidth, kHeads * kSize), b.k = w.matrix(kWidth, kGroups * kSize),
      b.v = w.matrix(kWidth, kGroups * kSize);
      b.o = w.matrix(kHeads * kSize, kWidth);
      b.gate = w.matrix(kWidth, kHidden), b.up = w.matrix(kWidth, kHidden),
      b.down = w.matrix(kHidden, kWidth);
      b.keys = ggml_new_tensor_2d(w.plain, GGML_TYPE_F16, kSize * kGroups, kContext);
      b.values = ggml_new_tensor_2d(w.plain, GGML_TYPE_F16, kSize * kGroups, kContext);
    }
    embedding = ggml_new_tensor_2d(w.plain, GGML_TYPE_F16, kWidth, kTokens);
    norm = vector();
    head = w.matrix(kWidth, kTokens);
  }

  static ggml_tensor* turned(ggml_context* c, ggml_tensor* x, ggml_tensor* position) {
    return ggml_rope_ext(c, x, position, nullptr, kSize, GGML_ROPE_TYPE_NEOX, 0, 10000.0f, 1, 0, 1, 0, 0);
  }

  ggml_tensor* attention(ggml_context* c, ggml_cgraph* graph, const Block& b, ggml_tensor* h,
                         ggml_tensor* position, ggml_tensor* row, int live) const {
    ggml_tensor* q = turned(c, ggml_reshape_3d(c, ggml_mul_mat(c, b.q, h), kSize, kHeads, 1), position);
    ggml_tensor* k = turned(c, ggml_reshape_3d(c, ggml_mul_mat(c, b.k, h), kSize, kGroups, 1), position);
    ggml_tensor* v = ggml_mul_mat(c, b.v, h);
    ggml_build_forward_expand(graph,
                              ggml_set_rows(c, b.keys, ggml_reshape_2d(c, k, kSize * kGroups, 1), row));
    ggml_build_forward_expand(graph, ggml_set_rows(c, b.values, v, row));
    auto seen = [&](ggml_tensor* cache) {
      return ggml_view_3d(c, cache, kSize, live, kGroups, cache->nb[1], kSize * ggml_type_size(cache->type),
                          0);
    };
    ggml_tensor* a = ggml_flash_attn_ext(c, ggml_permute(c, q, 0, 2, 1, 3), seen(b.keys), seen(b.values),
                                         nullptr, 1 / std::sqrt(float(kSize)), 0, 0);
    return ggml_mul_mat(c, b.o, ggml_reshape_2d(c, a, kHeads * kSize, 1));
  }

  // Logits of one token at `at`.
  ggml_tensor* build(ggml_context* c, ggml_cgraph* graph, ggml_tensor* token, ggml_tensor* position,
                     ggml_tensor* row, int at) const {
    auto normed = [&](ggml_tensor* x, ggml_tensor* w) { return ggml_mul(c, ggml_rms_norm(c, x, 1e-5f), w); };
    ggml_tensor* x = ggml_get_rows(c, embedding, token);
    for (const Block& b : blocks) {
      x = ggml_add(c, x, attention(c, graph, b, normed(x, b.norm), position, row, at + 1));
      ggml_tensor* h = normed(x, b.feed);
      x = ggml_add(c, x,
                   ggml_mul_mat(c, b.down,
                                ggml_swiglu_split(c, ggml_mul_mat(c, b.gate, h), ggml_mul_mat(c, b.up, h))));
    }
    return ggml_mul_mat(c, head, normed(x, norm));
  }
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 6) fail("use: ggml_model decoder|products TYPE BLOCKS|ROWS THREADS SECONDS");
  const bool decoder = std::string(argv[1]) == "decoder";
  const int count = std::atoi(argv[3]), threads = std::atoi(argv[4]);
  const double seconds = std::atof(argv[5]);
  int type = 0;
  while (type < GGML_TYPE_COUNT && std::strcmp(ggml_type_name(static_cast<ggml_type>(type)), argv[2])) ++type;
  if (type == GGML_TYPE_COUNT) fail("this type does not exist");

  const size_t before = resident();
  const double begin = now();
  const size_t room = ggml_tensor_overhead() * 40 * (static_cast<size_t>(count) + 4);
  Weights weights{static_cast<ggml_type>(type), ggml_init({room, nullptr, true}),
                  ggml_init({room, nullptr, true})};
  std::vector<Decoder> model;
  ggml_tensor *first = nullptr, *second = nullptr;
  if (decoder)
    model.emplace_back(weights, count);
  else
    first = weights.matrix(kWidth, kHidden), second = weights.matrix(kHidden, kWidth);
  allocate(weights);
  ggml_backend_t backend = ggml_backend_cpu_init();
  ggml_threadpool_params pool_of = ggml_threadpool_params_default(threads);
  ggml_backend_cpu_set_n_threads(backend, threads);
  ggml_backend_cpu_set_threadpool(backend, ggml_threadpool_new(&pool_of));
  ggml_gallocr_t arena = ggml_gallocr_new(ggml_backend_cpu_buffer_type());
  std::vector<char> graph_memory(ggml_tensor_overhead() * 65536 + ggml_graph_overhead_custom(65536, false));
  const double ready = now();

  std::vector<double> times;
  size_t held = 0;
  for (int n = 0; !decoder || n < kContext; ++n) {
    const double start = now();
    ggml_context* c = ggml_init({graph_memory.size(), graph_memory.data(), true});
    ggml_cgraph* graph = ggml_new_graph_custom(c, 65536, false);
    ggml_tensor *token = nullptr, *position = nullptr, *row = nullptr, *x = nullptr, *out = nullptr;
    if (decoder) {
      token = ggml_new_tensor_1d(c, GGML_TYPE_I32, 1), position = ggml_new_tensor_1d(c, GGML_TYPE_I32, 1);
      row = ggml_new_tensor_1d(c, GGML_TYPE_I64, 1);
      for (ggml_tensor* t : {token, position, row}) ggml_set_input(t);
      out = model[0].build(c, graph, token, position, row, n);
    } else {
      x = ggml_new_tensor_2d(c, GGML_TYPE_F32, kWidth, count);
      ggml_set_input(x);
      out = ggml_mul_mat(c, second, ggml_mul_mat(c, first, x));
    }
    ggml_set_output(out);
    ggml_build_forward_expand(graph, out);
    if (!ggml_gallocr_alloc_graph(arena, graph)) fail("no memory for the graph");
    if (decoder) {
      const int32_t id = n;
      const int64_t at = n;
      ggml_backend_tensor_set(token, &id, 0, sizeof id);
      ggml_backend_tensor_set(position, &id, 0, sizeof id);
      ggml_backend_tensor_set(row, &at, 0, sizeof at);
    } else {
      std::vector<float> values(static_cast<size_t>(kWidth) * count);
      for (size_t i = 0; i < values.size(); ++i) values[i] = std::sin(0.7f * static_cast<float>(i));
      ggml_backend_tensor_set(x, values.data(), 0, values.size() * sizeof(float));
    }
    const double prepared = decoder ? start : now();
    if (ggml_backend_graph_compute(backend, graph) != GGML_STATUS_SUCCESS)
      fail("the graph could not be computed");
    times.push_back(now() - prepared);
    std::vector<float> result(ggml_nelements(out));
    ggml_backend_tensor_get(out, result.data(), 0, result.size() * sizeof(float));
    for (float value : result)
      if (!std::isfinite(value)) fail("a result is not finite");
    if (n == 0) held = resident() - before;
    ggml_free(c);
    if (now() - ready > seconds && n > 1) break;
  }
  std::printf(
      "{\"load_ms\": %.3f, \"first_ms\": %.3f, \"weight_bytes\": %zu, \"resident\": %zu, \"times\": [",
      1e3 * (ready - begin), 1e3 * times[0], weights.bytes, held);
  for (size_t i = 1; i < times.size(); ++i) std::printf("%s%.6f", i > 1 ? ", " : "", times[i]);
  std::puts("]}");
}
