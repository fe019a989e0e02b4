// sinter compare: do two models (an ONNX file computed in float64, or .sinter files) give the same outputs?
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>

#include "converter/cli/commands.h"
#include "converter/cli/host_session.h"
#include "converter/convert.h"
#include "converter/import/arrays.h"
#include "converter/report/errors.h"
#include "runtime/model/model_state.h"

namespace sinter::convert {
namespace {

struct Arguments {
  CommonOptions common;
  std::string a, b, inputs;
  std::vector<std::string> shapes, dims;
  bool per_layer = false;
  std::optional<double> rtol, atol, min_sqnr;
};

// A file that goes when this does.
class TemporaryFile {
 public:
  explicit TemporaryFile(const char* suffix)
      : path_(std::filesystem::temp_directory_path() / fmt::format("sinter-{}{}", ::getpid(), suffix)) {}
  ~TemporaryFile() {
    std::error_code ignored;
    std::filesystem::remove(path_, ignored);
  }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct Refused {};

// The model's outputs, and with `layers` every named value that it computes on the way.
struct Computed {
  Arrays outputs, layers;
};

Arrays widened(const Arrays& arrays) {
  Arrays out;
  for (const auto& [name, array] : arrays) {
    std::vector<ConstantPtr> wide{array};
    if (is_float(array->dtype()) &&
        !evaluate(CastAttrs{static_cast<int64_t>(DType::kFloat64), 1}, {array}, 1, &wide).ok())
      throw DataError(fmt::format("array '{}' cannot be widened", name));
    out.emplace_back(name, wide[0]);
  }
  return out;
}

// Copies of what the steps of the entry program give, by the ONNX names of these values and with their axes
// in ONNX's order. A fused step gives the last of the values that it stands for, so equal names mean equal
// values, which names of nodes would not.
struct LayerCollector {
  explicit LayerCollector(const Model& model) {
    const fb::Model& root = *model.state()->root;
    const fb::Program& program = *root.programs()->Get(0);
    for (uint32_t s = 0; s < model.step_count(); ++s) {
      const auto outputs = detail::items(program.steps()->Get(s)->outputs());
      names.emplace_back();
      orders.emplace_back();
      if (outputs.empty() || outputs[0] < 0) continue;
      const fb::Value& value = *program.values()->Get(static_cast<uint32_t>(outputs[0]));
      const auto name = static_cast<uint32_t>(value.name());
      if (root.debug() == nullptr || name >= detail::length(root.debug()->names())) continue;
      names.back() = root.debug()->names()->Get(name)->str();
      if (name >= detail::length(root.debug()->orders())) continue;
      std::istringstream axes(root.debug()->orders()->Get(name)->str());
      // Dim i is axis order[i]; the other way round, as Transpose wants it.
      std::vector<int64_t> order;
      for (int64_t axis; axes >> axis;) order.push_back(axis);
      orders.back().assign(order.size(), -1);
      for (size_t i = 0; i < order.size(); ++i)
        if (static_cast<uint64_t>(order[i]) < order.size())
          orders.back()[static_cast<size_t>(order[i])] = static_cast<int64_t>(i);
    }
  }
  static void after(void* self, const StepInfo& info, const OpCall& call) {
    auto& me = *static_cast<LayerCollector*>(self);
    if (info.program != 0 || call.outputs.empty() || !call.outputs[0].present()) return;
    const TensorView& v = call.outputs[0];
    const std::string& name = me.names[info.step];
    if (!v.dense() || name.empty()) return;
    const auto bytes = static_cast<size_t>(v.dense_bytes());
    std::vector<ConstantPtr> value{
        Constant::owned(v.dtype, Dims(v.dims, v.dims + v.rank), Bytes(v.data, v.data + bytes))};
    const std::vector<int64_t>& perm = me.orders[info.step];
    if (!perm.empty()) {
      if (perm.size() != static_cast<size_t>(v.rank)) return;
      const ConstantPtr moved = value[0];
      if (!evaluate(TransposeAttrs{IntList(std::span<const int64_t>(perm))}, {moved}, 1, &value).ok()) return;
    }
    me.layers.emplace_back(name, value[0]);
  }
  std::vector<std::string> names;            // per step
  std::vector<std::vector<int64_t>> orders;  // per step: which dim is each axis of the ONNX value; empty: own
  Arrays layers;
};

Computed compute(const std::filesystem::path& file, const Arrays& inputs, bool layers) {
  const LoadedModel loaded(file);
  HostSession session(loaded, {});
  LayerCollector collector(loaded.model());
  const StepObserver observer{&collector, nullptr, LayerCollector::after};
  if (layers) session.session().set_observer(&observer);
  session.set_inputs(inputs);
  session.run();
  return {session.outputs(), collector.layers};
}

Computed compute_onnx(const Arguments& a, const std::string& path, const LoweringOptions& lowering,
                      const Arrays& inputs) {
  Diagnostics diagnostics;
  std::optional<Graph> graph = load_graph(path, lowering, diagnostics);
  if (!graph) {
    std::fputs(diagnostics.to_text(Severity::kRefusal).c_str(), stderr);
    throw Refused{};
  }
  Graph wide = to_float64(*graph);
  remove_dead_nodes(wide);
  compact_values(wide);
  const TemporaryFile file(".sinter");
  emit_model(plan_model(std::make_shared<Graph>(std::move(wide)), {}), file.path());
  return compute(file.path(), widened(inputs), a.per_layer);
}

// How two arrays differ.
struct Difference {
  double largest = 0;   // absolute
  double relative = 0;  // largest, over the largest magnitude of the first
  double sqnr_db = 0;   // signal to error
  bool within = false;
};

Difference difference(const Constant& a, const Constant& b, const Arguments& args) {
  const std::vector<double> x = a.as_doubles(), y = b.as_doubles();
  double peak = 0, signal = 0, noise = 0;
  for (const double v : x)
    if (std::isfinite(v)) peak = std::max(peak, std::fabs(v));
  const bool exact = !is_float(b.dtype()) && !args.rtol && !args.atol;
  const double rtol = args.rtol.value_or(1e-3), atol = args.atol.value_or(1e-5 * peak);
  Difference d;
  d.within = true;
  for (size_t i = 0; i < x.size(); ++i) {
    if ((std::isnan(x[i]) && std::isnan(y[i])) || x[i] == y[i]) {
      if (std::isfinite(x[i])) signal += x[i] * x[i];
      continue;
    }
    const double e = std::fabs(x[i] - y[i]);
    if (!std::isfinite(e)) {
      d.within = false;
      d.largest = std::numeric_limits<double>::infinity();
      continue;
    }
    d.largest = std::max(d.largest, e);
    signal += x[i] * x[i], noise += e * e;
    d.within &= !exact && e <= atol + rtol * std::fabs(x[i]);
  }
  d.relative = peak > 0 ? d.largest / peak : d.largest;
  d.sqnr_db = noise == 0 ? 999 : 10 * std::log10(signal / noise);
  if (args.min_sqnr) d.within = d.sqnr_db >= *args.min_sqnr && std::isfinite(d.largest);
  return d;
}

void run_compare(const Arguments& a, Outcome& outcome) {
  const Arrays inputs = read_arrays(a.inputs);
  const LoadedModel loaded(a.b);
  // The ONNX model gets the shapes that the .sinter file was converted for.
  LoweringOptions lowering;
  for (uint32_t i = 0; i < loaded.model().input_count(); ++i) {
    const PortInfo port = loaded.model().input(i);
    lowering.shapes[port.name] = Dims(port.dims.begin(), port.dims.end());
  }
  Computed first, second;
  try {
    const bool onnx = std::filesystem::path(a.a).extension() != ".sinter";
    second = compute(a.b, inputs, a.per_layer);
    first = onnx ? compute_onnx(a, a.a, lowering, inputs) : compute(a.a, inputs, a.per_layer);
  } catch (const Refused&) {
    outcome.exit_code = 3;
    return;
  }
  bool all = true;
  nlohmann::json rows = nlohmann::json::array(), layers = nlohmann::json::array();
  const auto row = [&](const std::string& name, const Constant& x, const Constant& y) {
    const Difference d = difference(x, y, a);
    return nlohmann::json{{"name", name},
                          {"max_abs", d.largest},
                          {"max_rel", d.relative},
                          {"sqnr_db", d.sqnr_db},
                          {"within", d.within}};
  };
  for (const auto& [name, x] : first.outputs) {
    const ConstantPtr y = find_array(second.outputs, name);
    if (!y || y->dims() != x->dims()) {
      all = false;
      rows.push_back(
          {{"name", name},
           {"within", false},
           {"problem", !y ? "missing in the second model"
                          : fmt::format("{} against {}", to_string(x->dims()), to_string(y->dims()))}});
      continue;
    }
    rows.push_back(row(name, *x, *y));
    all &= rows.back()["within"].get<bool>();
  }
  if (a.per_layer)
    for (const auto& [name, y] : second.layers)
      if (const ConstantPtr x = name.empty() ? nullptr : find_array(first.layers, name))
        if (x->dims() == y->dims()) layers.push_back(row(name, *x, *y));
  outcome.exit_code = all ? 0 : 1;
  if (a.common.json) {
    nlohmann::json json{{"within", all}, {"outputs", rows}};
    if (a.per_layer) json["layers"] = layers;
    fmt::print("{}\n", json.dump(2));
    return;
  }
  if (a.common.quiet) return;
  for (const auto* list : {&layers, &rows})
    for (const auto& r : *list) {
      if (r.contains("problem"))
        fmt::print("{:<32} {}\n", r["name"].get<std::string>(), r["problem"].get<std::string>());
      else
        fmt::print("{:<32} {:<5} largest difference {:.3g} ({:.3g} of the peak), {:.1f} dB\n",
                   r["name"].get<std::string>(), r["within"].get<bool>() ? "same" : "DIFF",
                   r["max_abs"].get<double>(), r["max_rel"].get<double>(), r["sqnr_db"].get<double>());
    }
}

}  // namespace

void add_compare(CLI::App& app, Outcome& outcome) {
  auto a = std::make_shared<Arguments>();
  CLI::App* c =
      app.add_subcommand("compare", "Compare two models' outputs; an ONNX model is computed in float64");
  c->add_option("first", a->a, "The reference: an .onnx or .sinter file")->required();
  c->add_option("second", a->b, "The .sinter file to judge")->required();
  c->add_option("--inputs", a->inputs, "Arrays as for run")->required();
  c->add_flag("--per-layer", a->per_layer, "Compare the results of the nodes that both models have");
  c->add_option("--rtol", a->rtol,
                "Allowed difference relative to each element (default 1e-3; integers: exact)");
  c->add_option("--atol", a->atol, "Allowed absolute difference (default 1e-5 of the largest element)");
  c->add_option("--min-sqnr", a->min_sqnr, "Judge by the signal-to-noise ratio in dB instead");
  a->common.add_to(*c);
  c->footer("Exit code 0: the same within the tolerance; 1: not.");
  c->callback([a, &outcome] { run_compare(*a, outcome); });
}

}  // namespace sinter::convert
