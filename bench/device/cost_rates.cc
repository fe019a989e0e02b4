// sinter_cost_rates: the rates of the converter's tables of costs (bench/README.md), measured on this
// machine, or from instructions that bench/kernel_times.py counted under an emulator.
//
//     sinter_cost_rates avx512vnni|avx2 [RUNS]        avx2 with SINTER_CPU_CAP=avx2
//     sinter_cost_rates portable [RUNS]               the reference kernels
//     sinter_cost_rates dotprod|neon|armv7|cortex-m4 COUNTS  a file of lines: operation, case, backend,
//     instructions
//
// Computes every case of op_cases.cc on the backend that is faster, in float32, on int8 and on int16, and
// prints for each row of the table the rates that fit its cases best, in the form of
// converter/cost/table_*.cc. Each case follows as a comment, with the time that the fitted and the checked-in
// rates give. A row with fewer cases than rates leaves some of them 0; a row without cases is not printed.
// Times are the lowest of RUNS (200). A counted instruction is taken for half a nanosecond: one each cycle of
// 2 GHz.
#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>

#include "bench/device/op_cases.h"
#include "bench/device/setup.h"
#include "converter/cost/node_cost.h"
#include "converter/cost/tables.h"
#include "converter/ir/op_traits.h"
#include "platforms/platforms.h"
#include "runtime/kernels/reference.h"

namespace {

using namespace sinter;
using bench::OpCase;
using bench::PreparedCase;
using convert::CallShape;
using convert::Counts;

constexpr int kTypes = 3;
constexpr const char* kTypeNames[kTypes] = {"float32", "int8", "int16"};
constexpr size_t kTerms = 5;
// Step, product, output, input, and, of Winograd's algorithm only, filter.
using Terms = std::array<double, kTerms>;

struct Sample {
  std::string name;
  Terms counts;
  double time;
};

// By operation, case and backend, in nanoseconds; empty: this machine is measured.
std::map<std::string, double> counted_times;
constexpr double kInstruction = 0.5;

std::string counted_key(const OpCase& c, const Backend& backend) {
  return std::string(op_name(c.op)) + "\t" + c.name + "\t" + backend.name();
}

// The backends whose kernels the table measures.
std::span<Backend* const> measured_backends;

bool read_counts(const char* path) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    const size_t tab = line.rfind('\t');
    if (tab == std::string::npos) return false;
    counted_times[line.substr(0, tab)] = kInstruction * std::atof(line.c_str() + tab + 1);
  }
  return !counted_times.empty();
}

double lowest_time(PreparedCase& prepared, int runs) {
  using Clock = std::chrono::steady_clock;
  double lowest = INFINITY;
  for (int i = 0; i < runs; ++i) {
    const auto start = Clock::now();
    if (const Status status = prepared.run(); !status.ok()) device::fail("the run failed", status);
    lowest = std::min(lowest, std::chrono::duration<double, std::nano>(Clock::now() - start).count());
  }
  return lowest;
}

// Infinite: the backend does not compute it.
double time_of(const OpCase& c, Backend& backend, int runs) {
  if (!counted_times.empty()) {
    const auto found = counted_times.find(counted_key(c, backend));
    return found == counted_times.end() ? INFINITY : found->second;
  }
  const auto prepared = c.prepare(backend);
  return prepared == nullptr ? INFINITY : lowest_time(*prepared, runs);
}

// Of the backend that is faster; infinite: none computes it.
double fastest(const OpCase& c, int runs) {
  double lowest = INFINITY;
  for (Backend* backend : measured_backends) lowest = std::min(lowest, time_of(c, *backend, runs));
  return lowest;
}

// Outputs of a tile along an axis; 0: the call is not one of Winograd's algorithm.
int64_t winograd_tile(const OpCall& call) {
  return call.op == Op::kConv ? call.attrs<ConvAttrs>().winograd : 0;
}

// Of the backend that uses Winograd's algorithm.
double winograd_time(const OpCase& c, int runs) {
  for (const Platform* platform : all_platforms())
    for (Backend* backend : measured_backends)
      if (platform->computes_winograd != nullptr && std::strcmp(platform->name, backend->name()) == 0)
        return time_of(c, *backend, runs);
  return INFINITY;
}

const OpCase* case_named(Op op, const std::string& name) {
  for (const OpCase& c : bench::op_cases())
    if (c.op == op && c.name == name) return &c;
  return nullptr;
}

Terms terms_of(const convert::Rate& rate) { return {rate.step, rate.product, rate.output, rate.input, 0}; }

double given(const Terms& rates, const Terms& counts) {
  double sum = 0;
  for (size_t i = 0; i < rates.size(); ++i) sum += rates[i] * counts[i];
  return sum;
}

// Solves the normal equations of relative errors for the terms of `subset`; false: singular.
bool solve(const std::vector<Sample>& samples, unsigned subset, Terms* rates) {
  double a[kTerms][kTerms + 1] = {};
  for (const Sample& s : samples)
    for (size_t i = 0; i < kTerms; ++i) {
      for (size_t j = 0; j < kTerms; ++j) a[i][j] += s.counts[i] * s.counts[j] / (s.time * s.time);
      a[i][kTerms] += s.counts[i] / s.time;
    }
  for (size_t i = 0; i < kTerms; ++i)
    if ((subset >> i & 1) == 0) {
      for (size_t j = 0; j < kTerms + 1; ++j) a[i][j] = 0;
      for (auto& row : a) row[i] = 0;
      a[i][i] = 1;
    }
  for (size_t i = 0; i < kTerms; ++i) {
    size_t pivot = i;
    for (size_t k = i; k < kTerms; ++k)
      if (std::abs(a[k][i]) > std::abs(a[pivot][i])) pivot = k;
    if (std::abs(a[pivot][i]) < 1e-12) return false;
    std::swap(a[i], a[pivot]);
    for (size_t k = 0; k < kTerms; ++k)
      if (k != i)
        for (size_t j = kTerms + 1; j-- > i;) a[k][j] -= a[i][j] * a[k][i] / a[i][i];
  }
  for (size_t i = 0; i < kTerms; ++i) (*rates)[i] = a[i][kTerms] / a[i][i];
  return true;
}

// None of them negative; of as many terms as there are cases, at most.
Terms fit(const std::vector<Sample>& samples) {
  Terms best = {};
  double least = INFINITY;
  // Those without a step first: from calls of one size it cannot be separated.
  constexpr unsigned kSubsets = 1 << kTerms;
  for (unsigned i = 1; i < kSubsets; ++i) {
    const unsigned subset = i < kSubsets / 2 ? i << 1 : (i - kSubsets / 2) << 1 | 1;
    Terms rates;
    if (static_cast<size_t>(__builtin_popcount(subset)) > samples.size() || !solve(samples, subset, &rates) ||
        *std::min_element(rates.begin(), rates.end()) < 0)
      continue;
    double error = 0;
    for (const Sample& s : samples) error += std::pow(given(rates, s.counts) / s.time - 1, 2);
    if (error < least - 1e-9) least = error, best = rates;
  }
  return best;
}

}  // namespace

int main(int argc, char** argv) {
  const Cpu* cpu = std::find_if(std::begin(kCpus), std::end(kCpus),
                                [&](Cpu c) { return argc > 1 && std::strcmp(argv[1], cpu_name(c)) == 0; });
  if (cpu == std::end(kCpus)) {
    std::fprintf(
        stderr,
        "usage: sinter_cost_rates avx512vnni|avx2|portable [RUNS] | dotprod|neon|armv7|cortex-m4 COUNTS\n");
    return 2;
  }
  KernelBackend reference("reference", reference_kernels());
  Backend* const references[] = {&reference};
  measured_backends = is_on_reference_kernels(*cpu) ? references : default_backends();
  const bool counts_instructions = *cpu >= Cpu::kDotprod && *cpu != Cpu::kPortable;
  if (counts_instructions && (argc != 3 || !read_counts(argv[2]))) {
    std::fprintf(stderr, "COUNTS must be a file that bench/kernel_times.py --counts has written\n");
    return 2;
  }
  const char* provenance = counts_instructions ? "kCounted" : "kMeasured";
  const int runs = argc > 2 ? std::max(1, std::atoi(argv[2])) : 200;
  device::cap_instruction_sets();
  std::map<std::string, std::array<std::vector<Sample>, kTypes>> rows;
  std::map<std::string, const convert::Rates*> checked_in;
  // Quantize and Dequantize have one rate, which is not for a type.
  const convert::Rates boundary = {convert::cost_table(*cpu).boundary, {}, {}};
  std::vector<Sample> winograd;
  for (const OpCase& c : bench::op_cases()) {
    const convert::IntegerRow integers = convert::integer_row(c.op);
    std::unique_ptr<PreparedCase> prepared;
    for (Backend* backend : measured_backends)
      if (prepared == nullptr) prepared = c.prepare(*backend);
    if (prepared == nullptr || prepared->call().in(0).dtype != DType::kFloat32) continue;
    if (const int64_t tile = winograd_tile(prepared->call()); tile != 0) {
      const auto dims = [](const TensorView& v) { return convert::Dims(v.shape().begin(), v.shape().end()); };
      const convert::WinogradCounts n =
          convert::winograd_counts(convert::cost_table(*cpu).vector, dims(prepared->call().in(1)),
                                   dims(prepared->call().out(0)), tile);
      const double time = winograd_time(c, runs);
      if (std::isfinite(time))
        winograd.push_back({"Conv " + c.name, {1, n.products, n.outputs, n.inputs, n.filters}, time});
      continue;
    }
    Counts counts = counts_of(*cpu, CallShape(prepared->call()));
    if (convert::work_kind(c.op) == convert::WorkKind::kConversion)
      counts.row = "boundary", counts.rates = &boundary, counts.inputs = 0;
    if (std::strcmp(counts.row, "other") == 0) continue;  // of many kinds of work
    checked_in[counts.row] = counts.rates;
    const auto add = [&](int type, const OpCase* of) {
      const double time = of == nullptr ? INFINITY : fastest(*of, runs);
      if (std::isfinite(time))
        rows[counts.row][static_cast<size_t>(type)].push_back(
            {std::string(op_name(of->op)) + " " + of->name,
             {1, type == 0 ? counts.float_products : counts.int8_products, counts.outputs, counts.inputs, 0},
             time});
    };
    add(0, &c);
    const Op twin = integers.kind == convert::IntegerRow::kTable  ? Op::kLut
                    : integers.kind == convert::IntegerRow::kNone ? Op{}
                    : integers.kind == convert::IntegerRow::kSame ? c.op
                                                                  : integers.row;
    const OpCase* plain = twin == c.op ? nullptr : case_named(twin, c.name);
    const OpCase* int8 = case_named(twin, c.name + " int8");
    add(1, int8 != nullptr ? int8 : plain);
    add(2, case_named(twin, c.name + " int16"));
  }
  const Terms rates = fit(winograd);
  const convert::WinogradRate& w = convert::cost_table(*cpu).winograd;
  const Terms old_rates = {w.step, w.product, w.output, w.input, w.filter};
  std::printf("    .winograd = {%.0f, %.3g, %.3g, %.3g, %.3g, %s},\n", rates[0], rates[1], rates[3], rates[2],
              rates[4], provenance);
  for (const Sample& s : winograd)
    std::printf("    //   %-40s %-8s %10.0f ns; fitted %10.0f, checked in %10.0f\n", s.name.c_str(),
                "float32", s.time, given(rates, s.counts), given(old_rates, s.counts));
  for (const auto& [row, types] : rows) {
    const convert::Rates& old = *checked_in[row];
    const convert::Rate* olds[kTypes] = {&old.float32, &old.int8, &old.int16};
    std::array<Terms, kTypes> fitted = {};
    const bool single = row == "boundary";
    std::printf("    .%s = %s", row.c_str(), single ? "" : "{");
    for (size_t t = 0; t < (single ? 1 : kTypes); ++t) {
      const bool measured = !types[t].empty();
      fitted[t] = measured ? fit(types[t]) : terms_of(*olds[t]);
      std::printf("%s{%.0f, %.3g, %.3g, %.3g, %s}", t > 0 ? ", " : "", fitted[t][0], fitted[t][1],
                  fitted[t][2], fitted[t][3], measured ? provenance : "kUnmeasured");
    }
    std::printf("%s,\n", single ? "" : "}");
    for (size_t t = 0; t < kTypes; ++t)
      for (const Sample& s : types[t])
        std::printf("    //   %-40s %-8s %10.0f ns; fitted %10.0f, checked in %10.0f\n", s.name.c_str(),
                    kTypeNames[t], s.time, given(fitted[t], s.counts), given(terms_of(*olds[t]), s.counts));
  }
  return 0;
}
