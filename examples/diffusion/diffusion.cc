// Makes pictures with a diffusion model, step by step from noise.
//
//   diffusion MODEL.sinter OUT.pgm [--label N] [--count N] [--seed N] [--steps N] [--guidance G] [--enlarge
//   N]
//             [--threads N]
//
// The model is one step: the inputs label and steps, int64 [1], and guidance, float32 [1]; the states latent,
// float32 [1, 1, height, width], and step, int64 [1] (`sinter convert --state latent_next=latent
// --state step_next=step`). The application puts noise into the latent, and each run changes it in place.
//
// --count pictures stand beside each other, the first with the noise of --seed, the next with that of the
// next number. Without --label, the first is a 0, the next a 1, and so on. Exit code 0; 1: the model cannot
// be used, a run failed, or OUT.pgm cannot be written; 2: wrong use.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "sinter/runner.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr long kLabels = 10;  // that the model was trained with

struct Options {
  const char *model = nullptr, *out = nullptr;
  long label = -1;  // -1: one after the other
  long count = 1, seed = 1, steps = 20, enlarge = 8, threads = 1;
  double guidance = 2;
};

constexpr char kUsage[] =
    "usage: diffusion MODEL.sinter OUT.pgm [--label N] [--count N] [--seed N] [--steps N] [--guidance G]\n"
    "                 [--enlarge N] [--threads N]\n";

struct Flag {
  const char* name;
  long Options::*value;
  long min, max;
};
constexpr Flag kFlags[] = {
    {"--label", &Options::label, 0, kLabels - 1}, {"--count", &Options::count, 1, 100},
    {"--seed", &Options::seed, 0, 1000000000},    {"--steps", &Options::steps, 1, 10000},
    {"--enlarge", &Options::enlarge, 1, 64},      {"--threads", &Options::threads, 0, 64},
};

bool parse(int argc, char** argv, Options* o) {
  int files = 0;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    if (flag.rfind("--", 0) != 0) {
      if (files == 2) return std::fprintf(stderr, "diffusion: '%s' is one file too many\n", argv[i]), false;
      (files++ == 0 ? o->model : o->out) = argv[i];
      continue;
    }
    const Flag* known = std::find_if(std::begin(kFlags), std::end(kFlags),
                                     [&](const Flag& candidate) { return flag == candidate.name; });
    if (known == std::end(kFlags) && flag != "--guidance")
      return std::fprintf(stderr, "diffusion: %s is not an option\n", argv[i]), false;
    if (i + 1 == argc) return std::fprintf(stderr, "diffusion: %s needs a value\n", argv[i]), false;
    const char* text = argv[++i];
    char* end = nullptr;
    if (known == std::end(kFlags)) {
      o->guidance = std::strtod(text, &end);
      if (end == text || *end != '\0' || !(o->guidance >= 0 && o->guidance <= 100))
        return std::fprintf(stderr, "diffusion: --guidance takes a number from 0 to 100, not '%s'\n", text),
               false;
      continue;
    }
    const long value = std::strtol(text, &end, 10);
    if (end == text || *end != '\0' || value < known->min || value > known->max)
      return std::fprintf(stderr, "diffusion: %s takes a whole number from %ld to %ld, not '%s'\n",
                          known->name, known->min, known->max, text),
             false;
    o->*known->value = value;
  }
  return files == 2;
}

// Normally distributed numbers, the same for a seed with every standard library.
void fill_with_noise(std::span<float> values, long seed) {
  std::mt19937_64 random(static_cast<uint64_t>(seed));
  const auto uniform = [&] { return (static_cast<double>(random() >> 11) + 0.5) * 0x1p-53; };
  for (float& v : values) {
    const double radius = std::sqrt(-2 * std::log(uniform()));
    v = static_cast<float>(radius * std::cos(2 * std::numbers::pi * uniform()));
  }
}

// The latent: a state of the model, written and read between runs. Empty if the model has none.
struct Latent {
  std::span<float> values;
  int64_t height = 0, width = 0;
};

Latent latent_of(sinter::Runner& net) {
  const sinter::Model& model = net.model();
  for (uint32_t i = 0; i < model.state_count(); ++i) {
    const sinter::StateInfo info = model.state(i);
    const sinter::TensorView memory = net.session().state(i);
    const auto dims = info.dims;
    if (std::strcmp(info.input, "latent") != 0 || memory.dtype != sinter::DType::kFloat32 ||
        dims.size() != 4 || dims[0] * dims[1] != 1 || !memory.dense())
      continue;
    return {{memory.as<float>(), static_cast<size_t>(memory.size())}, dims[2], dims[3]};
  }
  return {};
}

// A row of grey pictures, -1 for black and 1 for white.
struct Picture {
  int64_t height, width;
  std::vector<float> pixels;

  void paste(std::span<const float> from, int64_t columns, int64_t at) {
    for (int64_t y = 0; y < height; ++y)
      std::copy_n(from.begin() + y * columns, columns, pixels.begin() + y * width + at);
  }

  // Between the centres of pixels, linear.
  float at(double y, double x) const {
    const auto split = [](double place, int64_t size, int64_t* first, int64_t* next) {
      place = std::clamp(place, 0.0, static_cast<double>(size - 1));
      *first = static_cast<int64_t>(place);
      *next = std::min(*first + 1, size - 1);
      return static_cast<float>(place - static_cast<double>(*first));
    };
    int64_t top = 0, bottom = 0, left = 0, right = 0;
    const float down = split(y, height, &top, &bottom), across = split(x, width, &left, &right);
    const auto on = [&](int64_t row) {
      const float* p = pixels.data() + row * width;
      return p[left] + across * (p[right] - p[left]);
    };
    return on(top) + down * (on(bottom) - on(top));
  }

  bool write(const char* path, int64_t enlarge) const {
    std::FILE* file = std::fopen(path, "wb");
    if (file == nullptr) return false;
    std::fprintf(file, "P5\n%lld %lld\n255\n", static_cast<long long>(width * enlarge),
                 static_cast<long long>(height * enlarge));
    const auto place = [&](int64_t i) {
      return (static_cast<double>(i) + 0.5) / static_cast<double>(enlarge) - 0.5;
    };
    for (int64_t y = 0; y < height * enlarge; ++y)
      for (int64_t x = 0; x < width * enlarge; ++x)
        std::fputc(
            static_cast<int>(std::lround(127.5F * (std::clamp(at(place(y), place(x)), -1.0F, 1.0F) + 1))),
            file);
    const bool written = std::ferror(file) == 0;
    return std::fclose(file) == 0 && written;
  }
};

struct Times {
  long count = 0;
  double total = 0, fastest = 1e30;  // seconds
  void add(double seconds) {
    ++count;
    total += seconds;
    fastest = std::min(fastest, seconds);
  }
};

// From noise to a picture, which the latent then is.
bool denoise(sinter::Runner& net, std::span<float> latent, const Options& o, long number, Times* times) {
  net.reset();  // the step is 0 again
  fill_with_noise(latent, o.seed + number);
  for (long i = 0; i < o.steps; ++i) {
    const auto began = Clock::now();
    net.set("label", int64_t{o.label >= 0 ? o.label : number % kLabels});  // a run may reuse their memory
    net.set("steps", int64_t{o.steps});
    net.set("guidance", static_cast<float>(o.guidance));
    if (!net.run()) return false;
    times->add(std::chrono::duration<double>(Clock::now() - began).count());
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  if (!parse(argc, argv, &o)) return std::fputs(kUsage, stderr), 2;
  sinter::RunnerOptions options;
  options.threads = static_cast<int>(o.threads);
  auto net = sinter::Runner::open(o.model, options);
  if (!net) return std::fprintf(stderr, "diffusion: %s\n", net.error()), 1;
  const Latent latent = latent_of(net);
  if (latent.values.empty())
    return std::fprintf(stderr,
                        "diffusion: %s does not keep the float32 latent of one picture; convert the model of "
                        "examples/diffusion with --state latent_next=latent --state step_next=step\n",
                        o.model),
           1;
  const int64_t row = latent.width * o.count;
  Picture picture{latent.height, row, std::vector<float>(static_cast<size_t>(latent.height * row))};
  Times times;
  for (long i = 0; i < o.count; ++i) {
    if (!denoise(net, latent.values, o, i, &times))
      return std::fprintf(stderr, "diffusion: %s\n", net.error()), 1;
    picture.paste(latent.values, latent.width, i * latent.width);
  }
  if (!picture.write(o.out, o.enlarge))
    return std::fprintf(stderr, "diffusion: %s cannot be written; give a file in a folder that can be\n",
                        o.out),
           1;
  std::fprintf(stderr, "%ld steps of %.0f us (the fastest %.0f us); memory: %.2f MB beside the mapped file\n",
               times.count, 1e6 * times.total / static_cast<double>(times.count), 1e6 * times.fastest,
               static_cast<double>(net.bytes()) / 1e6);
  return 0;
}
