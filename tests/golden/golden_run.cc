// golden_run FILE.sinter [--backend NAME] [--threads N] [--simd-cap NAME] [--seed N]
//
// Runs a file on made-up inputs and prints hashes, for golden.py to compare between backends, instruction
// sets, thread counts and architectures (it needs neither the converter nor Python). One line each:
//
//   target NAME            the best instruction set that the Highway kernels use
//   float N                steps that compute with float operands (Quantize and what only moves does not)
//   output NAME HASH       a public output
//   integer NAME HASH      a value that a step makes from integers alone
//
// Outputs come from a plain run. In a second run every integer value that a step makes of floats is replaced
// by made-up integers right after it: what follows is then a matter of integers, whatever the floats were.
// Exit code 77: this machine has no such instruction set or build no such backend.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "application/memory.h"
#include "runtime/kernels/reference.h"
#include "runtime/model/names.h"
#include "sinter/backends.h"
#include "sinter/file_map.h"
#include "sinter/sinter.h"
#include "sinter/thread_pool.h"
#ifdef SINTER_WITH_SIMD
#include "platforms/simd/simd_kernels.h"
#endif

namespace sinter {
namespace {

constexpr int kNotRun = 77;

[[noreturn]] void fail(const char* what, const Status& status) {
  char text[400];
  format_status(status, text);
  std::fprintf(stderr, "golden_run: %s: %s\n", what, text);
  std::exit(1);
}

uint64_t hash_bytes(std::string_view bytes, uint64_t h) {
  for (const char c : bytes) h = (h ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return h;
}
constexpr uint64_t kHashStart = 0xcbf29ce484222325u;

// The same integers on every machine.
class Numbers {
 public:
  explicit Numbers(uint64_t seed) : state_(seed) {}
  uint32_t next() {
    state_ = state_ * 6364136223846793005u + 1442695040888963407u;
    return static_cast<uint32_t>(state_ >> 33);
  }

 private:
  uint64_t state_;
};

template <class Use>
void each_element(const TensorView& v, const Use& use) {
  const int64_t count = v.size();
  int64_t at[kMaxRank] = {};
  std::byte* p = v.data;
  for (int64_t i = 0; i < count; ++i) {
    use(p);
    for (int d = v.rank - 1; d >= 0; --d) {
      p += v.strides[d];
      if (++at[d] < v.dims[d]) break;
      p -= v.strides[d] * v.dims[d], at[d] = 0;
    }
  }
}

uint64_t hash_of(const TensorView& v) {
  uint64_t h = hash_bytes({reinterpret_cast<const char*>(v.dims), sizeof(int64_t) * v.rank}, kHashStart);
  const size_t width = byte_width(v.dtype);
  each_element(v, [&](const std::byte* p) { h = hash_bytes({reinterpret_cast<const char*>(p), width}, h); });
  return h;
}

bool small_integer(DType t) { return t == DType::kInt8 || t == DType::kUint8 || t == DType::kInt16; }

// Numbers of a sixteenth or 2^-15 are the same in every type that holds them.
void make_up(const TensorView& v, uint64_t seed) {
  Numbers numbers(seed);
  each_element(v, [&](std::byte* p) {
    const uint32_t n = numbers.next();
    const auto put = [&](auto x) { std::memcpy(p, &x, sizeof(x)); };
    switch (v.dtype) {
      case DType::kFloat32:
        return put(static_cast<float>(static_cast<int32_t>(n & 0xFFFF) - 32768) / 32768);
      case DType::kFloat64:
        return put(static_cast<double>(static_cast<int32_t>(n & 0xFFFF) - 32768) / 32768);
      case DType::kInt16:
      case DType::kUint16:
        return put(static_cast<uint16_t>(n));
      case DType::kInt8:
      case DType::kUint8:
        return put(static_cast<uint8_t>(n >> 8));
      case DType::kInt32:
      case DType::kUint32:
        return put(n % 2);
      case DType::kInt64:
      case DType::kUint64:
        return put(uint64_t{n % 2});
      case DType::kBool:
        return put(static_cast<uint8_t>(n % 2));
      default:
        std::memset(p, 0, byte_width(v.dtype));
    }
  });
}

struct Watcher {
  const Model* model;
  uint64_t seed = 0;
  int float_steps = 0;

  std::string name_of(uint32_t step, size_t output) const {
    const fb::Model& root = *model->state()->root;
    const fb::Program& program = *root.programs()->Get(model->entry_program());
    const auto outputs = detail::items(program.steps()->Get(step)->outputs());
    std::string name = detail::value_name(root, program, static_cast<uint32_t>(outputs[output]));
    // Values without a name of their own: where they come from, in what order.
    if (name.empty()) name = std::string("(") + model->step_op(step) + " " + model->step_name(step) + ")";
    return name;
  }
  void see(uint32_t step, const OpCall& call) {
    bool floats = false;
    for (const TensorView& v : call.inputs) floats |= v.present() && !v.constant && is_float(v.dtype);
    const bool moves = call.op == Op::kQuantize || call.op == Op::kTranspose || call.op == Op::kView ||
                       call.op == Op::kCopy || call.op == Op::kSlice || call.op == Op::kConcat;
    float_steps += floats && !moves;
    for (size_t i = 0; i < call.outputs.size(); ++i) {
      const TensorView& v = call.outputs[i];
      if (!v.present() || v.memory != 0) continue;
      const std::string name = name_of(step, i);
      if (!floats)
        std::printf("integer %s#%zu %016llx\n", name.c_str(), i, static_cast<unsigned long long>(hash_of(v)));
      else if (small_integer(v.dtype))
        make_up(v, hash_bytes(name, seed));
    }
  }
};

struct Arguments {
  const char *file = nullptr, *backend = nullptr, *simd_cap = nullptr;
  int threads = 1;
  uint64_t seed = 1;
};

int run(const Arguments& a) {
#ifdef SINTER_WITH_SIMD
  if (a.simd_cap != nullptr && !set_simd_cap(a.simd_cap)) return kNotRun;
#else
  if (a.simd_cap != nullptr) return kNotRun;
#endif
  PthreadPool pool(a.threads);
  if (pool.thread_count() < a.threads) return kNotRun;
  Result<FileMap> file = FileMap::open(a.file);
  if (!file.ok()) fail(a.file, file.status());
  const OpenOptions open{.kernels = reference_kernels()};
  Result<size_t> need = Model::open_bytes(file->bytes(), open);
  if (!need.ok()) fail(a.file, need.status());
  const std::unique_ptr<std::byte, decltype(&free_aligned)> held(allocate_aligned(*need), &free_aligned);
  Result<Model> model = Model::open(file->bytes(), {held.get(), *need}, open);
  if (!model.ok()) fail(a.file, model.status());
  SessionOptions options;
  options.backends = default_backends();
  options.backend = a.backend;
  if (a.threads > 1) options.threads = &pool;
  Result<Requirements> needs = Session::requirements(*model, options);
  if (needs.status().code == Code::kUnsupported) return kNotRun;  // a device that is not here
  if (!needs.ok()) fail(a.file, needs.status());
  const std::unique_ptr<std::byte, decltype(&free_aligned)> memory(allocate_aligned(needs->bytes),
                                                                   &free_aligned);
  Result<Session> session = Session::create(*model, {memory.get(), needs->bytes}, options);
  if (!session.ok()) fail(a.file, session.status());

  Watcher watcher{&*model, a.seed};
  const StepObserver observer{&watcher, nullptr, [](void* self, const StepInfo& info, const OpCall& call) {
                                if (!info.in_body) static_cast<Watcher*>(self)->see(info.step, call);
                              }};
#ifdef SINTER_WITH_SIMD
  std::printf("target %s\n", simd_target());
#endif
  for (const bool watch : {false, true}) {
    for (uint32_t i = 0; i < session->input_count(); ++i)
      make_up(session->input(i), hash_bytes(model->input(i).name, a.seed));
    session->set_observer(watch ? &observer : nullptr);
    if (const Status status = session->run(); !status.ok()) fail("run", status);
    for (uint32_t i = 0; !watch && i < session->output_count(); ++i)
      std::printf("output %s %016llx\n", model->output(i).name,
                  static_cast<unsigned long long>(hash_of(session->output(i))));
  }
  std::printf("float %d\n", watcher.float_steps);
  session->destroy();
  return 0;
}

}  // namespace
}  // namespace sinter

int main(int argc, char** argv) {
  sinter::Arguments a;
  for (int i = 1; i < argc; ++i) {
    const std::string_view flag = argv[i];
    const bool value = i + 1 < argc;
    if (flag == "--backend" && value)
      a.backend = argv[++i];
    else if (flag == "--threads" && value)
      a.threads = std::atoi(argv[++i]);
    else if (flag == "--simd-cap" && value)
      a.simd_cap = argv[++i];
    else if (flag == "--seed" && value)
      a.seed = std::strtoull(argv[++i], nullptr, 10);
    else if (a.file == nullptr && !flag.starts_with("--"))
      a.file = argv[i];
    else
      a.file = nullptr, i = argc;
  }
  if (a.file == nullptr || a.threads < 1) {
    std::fputs("usage: golden_run FILE.sinter [--backend NAME] [--threads N] [--simd-cap NAME] [--seed N]\n",
               stderr);
    return 2;
  }
  return sinter::run(a);
}
