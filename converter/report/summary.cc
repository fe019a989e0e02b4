#include "converter/report/summary.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "converter/report/columns.h"
#include "converter/report/quantize_report.h"

namespace sinter::convert {
namespace {

constexpr size_t kMostPorts = 4, kMostPairs = 4, kMostRules = 6, kMostPasses = 6, kMostStates = 4;

// Returns the first lines of a list, each with the label, and the number of further ones. `things` is their
// name, `where` the command or file that lists all of them.
std::string first_lines(const char* label, const std::vector<std::string>& lines, size_t most,
                        std::string_view things, std::string_view where) {
  std::string text;
  for (size_t i = 0; i < lines.size() && i < most; ++i) text += labelled(label, lines[i]);
  if (lines.size() > most)
    text += labelled("", fmt::format("and {} more {}; {}", lines.size() - most, things, where));
  return text;
}

std::string ports_text(const char* label, const std::vector<PortReport>& ports) {
  std::vector<std::string> lines;
  for (const PortReport& p : ports) {
    std::string line = fmt::format("{}  {}", p.name, to_string(p.dtype, p.dims));
    if (p.declared != DType::kNone && p.declared != p.dtype)
      line += fmt::format(", {} in the ONNX file", dtype_name(p.declared));
    if (p.integers.scale > 0)
      line += fmt::format(": (q {} {}) * {}", p.integers.zero_point < 0 ? '+' : '-',
                          std::abs(p.integers.zero_point), static_cast<float>(p.integers.scale));
    else if (p.dtype == DType::kUint8 && is_float(p.declared))
      line += "; (pixel - mean) * scale is built into the model";
    lines.push_back(std::move(line));
  }
  return first_lines(label, lines, kMostPorts, fmt::format("{}s", label), "sinter inspect lists them");
}

const char* way_of(SettledDim::By by) {
  switch (by) {
    case SettledDim::By::kDim:
      return "--dim";
    case SettledDim::By::kShape:
      return "--shape";
    case SettledDim::By::kShapes:
      return "--shapes";
    case SettledDim::By::kReader:
      return "the heads of the attention that reads it";
    default:
      return "default";
  }
}

// Returns a line for each name; dimensions without a name are named by their input and axis.
std::string dims_text(const std::vector<SettledDim>& dims, size_t sets) {
  std::vector<std::string> lines, known;
  for (const SettledDim& d : dims) {
    const std::string place = fmt::format("dim {} of {}", d.axis, d.input);
    const std::string name = d.symbol.empty() ? place : fmt::format("'{}'", d.symbol);
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    known.push_back(name);
    if (d.minimum >= 0)
      lines.push_back(fmt::format("{} is {} to {}, by {}; callers give it with the inputs", name, d.minimum,
                                  d.size, way_of(d.by)));
    else if (d.by != SettledDim::By::kDefault)
      lines.push_back(fmt::format(
          "{} is {}{}, by {}", name, d.size,
          d.by == SettledDim::By::kShapes && sets > 1 ? " in the first shape set" : "", way_of(d.by)));
    else
      lines.push_back(fmt::format(
          "{} is 1, because the model leaves it open; {} sets another size", name,
          d.symbol.empty() ? fmt::format("--shape {}=N,...", d.input) : fmt::format("--dim {}=N", d.symbol)));
  }
  return first_lines("open dim", lines, kMostPorts, "open dimensions", "--json has all of them");
}

// Returns "int8 82 %, float32 18 %", the largest share first.
std::string shares_text(const TypedProducts& products) {
  std::vector<std::pair<double, DType>> shares;
  for (const auto& [dtype, count] : products) shares.emplace_back(count, dtype);
  std::stable_sort(shares.begin(), shares.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  const double all = total(products);
  if (shares.size() == 1) return fmt::format("all in {}", dtype_name(shares.front().second));
  std::string text;
  for (const auto& [count, dtype] : shares)
    text += fmt::format("{}{} {:.3g} %", text.empty() ? "" : ", ", dtype_name(dtype), 100 * count / all);
  return text;
}

std::string work_text(const ConversionReport& r) {
  const double after = total(r.multiply_adds);
  if (r.onnx_multiply_adds == 0 && after == 0) return {};
  std::string text = readable_count(r.onnx_multiply_adds) + " multiply-adds in the ONNX graph, " +
                     readable_count(after) + " in the file";
  if (after > 0) text += ": " + shares_text(r.multiply_adds);
  return labelled("work", text);
}

// The last rewrite before --stop-after PASS:N.
std::string stopped_text(const ConversionReport& r) {
  const PassReport::Entry* pass = r.passes.stopped();
  if (pass == nullptr) return {};
  const std::string node = pass->rewrites.last.empty() ? "" : fmt::format(" at node {}", pass->rewrites.last);
  return labelled("stopped", fmt::format("after rewrite {} of {}{}", pass->rewrites.made, pass->name, node));
}

std::string passes_text(const ConversionReport& r) {
  std::vector<std::pair<int64_t, std::string>> changes;
  for (const PassReport::Entry& e : r.passes.entries)
    if (e.changes > 0) changes.emplace_back(e.changes, e.name);
  if (changes.empty()) return stopped_text(r);
  std::stable_sort(changes.begin(), changes.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> items;
  for (const auto& [count, name] : changes) items.push_back(fmt::format("{} {}", name, count));
  return labelled("passes", some_of(items, kMostPasses)) + stopped_text(r);
}

// Returns the numbers of values whose type changed, by the types, and of decisions, by rule.
std::string types_text(const ConversionReport& r) {
  if (!r.ledger || r.ledger->size() == 0) return {};
  std::map<std::pair<DType, DType>, size_t> changes;
  for (const TypeDecision& d : r.ledger->all())
    if (d.before != d.after && d.before != DType::kNone && d.after != DType::kNone)
      ++changes[{d.before, d.after}];
  std::vector<std::pair<size_t, std::string>> ranked;
  for (const auto& [types, count] : changes)
    ranked.emplace_back(count,
                        fmt::format("{} -> {} {}", dtype_name(types.first), dtype_name(types.second), count));
  std::stable_sort(ranked.begin(), ranked.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> pairs, rules;
  for (const auto& [count, text] : ranked) pairs.push_back(text);
  for (const auto& [rule, count] : r.ledger->by_rule()) rules.push_back(fmt::format("{} {}", rule, count));
  std::string text = fmt::format("{} decision{}: {}", r.ledger->size(), r.ledger->size() == 1 ? "" : "s",
                                 some_of(rules, kMostRules));
  if (!pairs.empty()) text += "; " + some_of(pairs, kMostPairs);
  return labelled("types", text + " (sinter explain FILE NAME gives the reasons)");
}

std::string states_text(const ConversionReport& r) {
  std::vector<std::string> lines;
  for (const StateReport& s : r.states)
    lines.push_back(
        fmt::format("'{}' <- '{}' {}: {}", s.input, s.output, to_string(s.dtype, s.dims),
                    s.in_place ? "updated in place" : fmt::format("copied, {} bytes a run", s.bytes)));
  std::string text = first_lines("state", lines, kMostStates, "states", "sinter inspect lists them");
  if (!r.proposed_states.empty()) {
    std::string flags;
    for (const auto& [output, input] : r.proposed_states)
      flags += fmt::format(" --state {}={}", output, input);
    text += labelled("",
                     "by their names and shapes these outputs become inputs of the next run; for a session "
                     "to keep them:" +
                         (r.proposed_states.size() > kMostStates ? " --state auto" : flags));
  }
  return text;
}

std::string arena_text(const ConversionReport& r) {
  std::string text = fmt::format("{} bytes ", r.arena_bytes);
  text +=
      r.arena_bytes == r.arena_lower_bound
          ? "(no plan of these steps can use less)"
          : fmt::format(
                "({:.1f} % above the lower bound of {})",
                100.0 * (static_cast<double>(r.arena_bytes) / static_cast<double>(r.arena_lower_bound) - 1),
                r.arena_lower_bound);
  if (r.given_order_arena_bytes > r.arena_bytes)
    text += fmt::format(", {} less than in the model's order of steps",
                        r.given_order_arena_bytes - r.arena_bytes);
  return labelled("arena", text);
}

// Returns the targets of the file, and the sizes of their plans if there are several.
std::string targets_text(const ConversionReport& r) {
  std::string text;
  for (const ProfileReport& p : r.profiles)
    text += labelled("target", r.profiles.size() == 1 ? p.target
                                                      : fmt::format("{}: {} steps, arena {} bytes", p.target,
                                                                    p.steps, p.arena_bytes));
  return text;
}

}  // namespace

std::string products_text(const TypedProducts& products) {
  const double all = total(products);
  return readable_count(all) + " multiply-adds" + (all > 0 ? ": " + shares_text(products) : "");
}

std::string to_text(const ConversionReport& r, size_t columns) {
  std::string text = ports_text("input", r.inputs) + ports_text("output", r.outputs) +
                     dims_text(r.settled_dims, r.entries.size());
  text += targets_text(r);
  for (const EntryReport& e : r.entries)
    text += labelled("shapes", fmt::format("{}: {} steps, {} multiply-adds, arena {} bytes", e.shapes,
                                           e.steps, readable_count(e.multiply_adds), e.arena_bytes));
  if (r.onnx)
    text += labelled("graph", fmt::format("{} ONNX nodes -> {} operations -> {} ONNX nodes", r.onnx_nodes,
                                          r.lowered_nodes, r.onnx->nodes));
  else
    text += labelled("graph", fmt::format("{} ONNX nodes -> {} operations -> {} steps, {} of them free",
                                          r.onnx_nodes, r.lowered_nodes, r.steps, r.elided_steps));
  text += passes_text(r) + (r.onnx ? "" : work_text(r)) + types_text(r);
  std::string result = wrapped_lines(text, columns, kLabelColumns);
  if (r.quantized) result += to_text(*r.quantized);
  text.clear();
  if (r.metric)
    text += labelled("metric",
                     fmt::format("{}: {:g} in float, {:g} now; the accuracy above is the share of the float "
                                 "one",
                                 r.metric->name, r.metric->in_float, r.metric->now));
  if (r.onnx) {
    text +=
        labelled("file", fmt::format("{} bytes{} (before: {}), opset {}", r.onnx->bytes,
                                     r.onnx->data_bytes > 0
                                         ? fmt::format(" and {} bytes of external data", r.onnx->data_bytes)
                                         : std::string(),
                                     r.onnx_bytes, r.onnx->opset));
    return result + wrapped_lines(text, columns, kLabelColumns);
  }
  text += labelled("file", fmt::format("{} bytes (ONNX: {}), weights {}", r.file.file_bytes, r.onnx_bytes,
                                       r.file.weight_bytes));
  text += arena_text(r) + states_text(r);
  for (const StripedSteps& s : r.stripes)
    text += labelled("stripes", s.steps == 1 ? fmt::format("'{}' in {} parts", s.last, s.parts)
                                             : fmt::format("{} operations from '{}' to '{}' in {} parts",
                                                           s.steps, s.first, s.last, s.parts));
  if (!r.stripes.empty()) text += labelled("", fmt::format("{:+.1f} % work", 100 * r.extra_work));
  return result + wrapped_lines(text, columns, kLabelColumns);
}

nlohmann::json summary_json(const ConversionReport& r) {
  const auto ports = [](const std::vector<PortReport>& all) {
    nlohmann::json list = nlohmann::json::array();
    for (const PortReport& p : all) {
      list.push_back({{"name", p.name}, {"type", dtype_name(p.dtype)}, {"shape", p.dims}});
      if (p.declared != DType::kNone && p.declared != p.dtype)
        list.back()["onnx_type"] = dtype_name(p.declared);
      if (p.integers.scale > 0)
        list.back()["scale"] = static_cast<float>(p.integers.scale),
        list.back()["zero_point"] = p.integers.zero_point;
    }
    return list;
  };
  nlohmann::json dims = nlohmann::json::array(), by_type = nlohmann::json::object();
  for (const SettledDim& d : r.settled_dims) {
    dims.push_back({{"input", d.input}, {"axis", d.axis}, {"size", d.size}, {"by", way_of(d.by)}});
    if (!d.symbol.empty()) dims.back()["name"] = d.symbol;
    if (d.minimum >= 0) dims.back()["minimum"] = d.minimum;
  }
  for (const auto& [dtype, count] : r.multiply_adds) by_type[dtype_name(dtype)] = count;
  return {{"inputs", ports(r.inputs)},
          {"outputs", ports(r.outputs)},
          {"open_dims", dims},
          {"multiply_adds",
           {{"onnx", r.onnx_multiply_adds}, {"file", total(r.multiply_adds)}, {"by_type", by_type}}}};
}

}  // namespace sinter::convert
