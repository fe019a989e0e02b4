#include "converter/import/caches/states.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <optional>
#include <set>

#include "converter/import/read/given_constant.h"

namespace sinter::convert {
namespace {

std::optional<size_t> index_of_name(const Graph& graph, const std::vector<ValueId>& ids,
                                    const std::string& name) {
  for (size_t i = 0; i < ids.size(); ++i)
    if (graph.value(ids[i]).name == name) return i;
  return std::nullopt;
}

class AddingStates {
 public:
  AddingStates(const ImportedGraph& model, const LoweringOptions& options, Graph& graph,
               Diagnostics& diagnostics)
      : model_(model), options_(options), graph_(graph), diagnostics_(diagnostics) {}

  bool run() {
    StatePairs pairs = options_.states;
    if (options_.all_states) add_proposed(&pairs);
    for (const auto& [output, input] : pairs) add(output, input);
    // The file lists states in the order of their inputs.
    std::sort(graph_.states.begin(), graph_.states.end(),
              [](const GraphState& a, const GraphState& b) { return a.input < b.input; });
    for (const auto& [name, array] : options_.initial_states)
      if (!set_initial(name, array)) fine_ = false;
    for (const std::string& name : options_.bindable) add_bindable(name);
    return fine_;
  }

 private:
  void refuse(const std::string& what, std::string why, std::string remedy) {
    diagnostics_.refuse("", "", fmt::format("{}: {}", what, why), std::move(remedy));
    fine_ = false;
  }

  void add_proposed(StatePairs* pairs) {
    const auto note = [&](std::string message, std::string remedy) {
      diagnostics_.add({Severity::kNote, "", "", "--state auto: " + std::move(message), std::move(remedy)});
    };
    StatePairs unrelated;
    for (const auto& found : propose_states(graph_, &unrelated)) {
      if (std::any_of(pairs->begin(), pairs->end(), [&](const auto& given) {
            return given.first == found.first || given.second == found.second;
          }))
        continue;
      pairs->push_back(found);
      note(fmt::format("input '{}' becomes output '{}' because of their names", found.second, found.first),
           "--state OUT=IN, once for each state, names them instead");
    }
    for (const auto& [output, input] : unrelated)
      note(fmt::format("input '{}' does not become output '{}', in spite of their names: the output does not "
                       "follow from it",
                       input, output),
           fmt::format("--state {}={} keeps it all the same", output, input));
  }

  void add(const std::string& output, const std::string& input) {
    const std::string what = fmt::format("--state {}={}", output, input);
    const auto in = index_of_name(graph_, graph_.inputs, input),
               out = index_of_name(graph_, graph_.outputs, output);
    if (!in || !out)
      return refuse(what, fmt::format("'{}' is a constant here", in ? output : input),
                    "remove the option, or the --const that makes it one");
    for (const GraphState& other : graph_.states) {
      if (other.input != *in && other.output != *out) continue;
      return refuse(what,
                    fmt::format("'{}' already belongs to --state {}={}", other.input == *in ? input : output,
                                other.output_name, other.input_name),
                    "an input and an output belong to one state; remove one of the two options");
    }
    const Value &begin = graph_.value(graph_.inputs[*in]), &end = graph_.value(graph_.outputs[*out]);
    const std::string types = fmt::format("'{}' is {} and '{}' is {}", output, to_string(end.dtype, end.dims),
                                          input, to_string(begin.dtype, begin.dims));
    if (!begin.bounded_dims.empty())
      return refuse(what, fmt::format("the length of '{}' is given before each run", input),
                    "a state keeps its size; give the dimension one with --dim NAME=N");
    if (!end.bounded_dims.empty())
      return refuse(what, fmt::format("the length of '{}' depends on data", output),
                    "export the model with a state of fixed size");
    if (begin.dtype != end.dtype)
      return refuse(what, types, "a state keeps its type; cast the output in the model");
    if (begin.dims != end.dims) {
      const bool grows =
          begin.dims.size() == end.dims.size() &&
          std::equal(begin.dims.begin(), begin.dims.end(), end.dims.begin(), std::less_equal<>());
      return refuse(
          what, types,
          grows ? "a state keeps its shape, and this one grows in every run: give a decoder room "
                  "with --max-context N, or export the model with a cache of fixed size, which it writes by "
                  "ScatterND or TensorScatter"
                : "a state keeps its shape");
    }
    if (is_sub_byte(begin.dtype)) return refuse(what, types, "a state has elements of whole bytes");
    graph_.states.push_back({*in, *out, input, output, nullptr});
  }

  bool set_initial(const std::string& name, const ConstantPtr& array) {
    const std::string what = fmt::format("--state-init {}", name);
    const auto state = std::find_if(graph_.states.begin(), graph_.states.end(),
                                    [&](const GraphState& s) { return s.input_name == name; });
    if (state == graph_.states.end())
      return refuse(what, "this is not the input of a state", "add --state OUT=" + name), false;
    const Value& value = graph_.value(graph_.inputs[state->input]);
    for (const ImportedValueInfo& input : model_.inputs) {
      if (input.name != name) continue;
      std::string problem;
      const ConstantPtr given = given_constant(array, input, &problem);
      if (!given) return refuse(what, problem, "give an array of the input's type and shape"), false;
      if (given->dtype() != value.dtype || given->dims() != value.dims)
        return refuse(
                   what,
                   fmt::format("the array is {} and the state {}", to_string(given->dtype(), given->dims()),
                               to_string(value.dtype, value.dims)),
                   "give an array of the input's type and shape"),
               false;
      state->initial = given;
    }
    return true;
  }

  void add_bindable(const std::string& name) {
    const std::string what = fmt::format("--bindable {}", name);
    const auto in = index_of_name(graph_, graph_.inputs, name),
               out = index_of_name(graph_, graph_.outputs, name);
    if (!in && !out)
      return refuse(what, "this input is a constant here",
                    "remove the option, or the --const that makes it one");
    for (const GraphState& state : graph_.states)
      if ((in && state.input == *in) || (out && state.output == *out))
        return refuse(
            what, fmt::format("the session keeps it (--state {}={})", state.output_name, state.input_name),
            "remove one of the two options");
    if (in) graph_.bindable_inputs.push_back(*in);
    if (out) graph_.bindable_outputs.push_back(*out);
  }

  const ImportedGraph& model_;
  const LoweringOptions& options_;
  Graph& graph_;
  Diagnostics& diagnostics_;
  bool fine_ = true;
};

}  // namespace

std::vector<std::string> words_of_name(const std::string& name) {
  std::vector<std::string> words;
  char before = 0;
  for (const char c : name) {
    const auto u = static_cast<unsigned char>(c);
    const auto b = static_cast<unsigned char>(before);
    if (std::isalnum(u) != 0) {
      const bool begins = std::isalnum(b) == 0 || (std::isdigit(b) != 0) != (std::isdigit(u) != 0) ||
                          (std::islower(b) != 0 && std::isupper(u) != 0);
      if (begins) words.emplace_back();
      words.back() += static_cast<char>(std::tolower(u));
    }
    before = c;
  }
  return words;
}

std::vector<std::string> state_stem(const std::string& name, bool input) {
  static const std::set<std::string> kRoles{"in",   "out",      "input",   "output", "past", "present",
                                            "prev", "previous", "old",     "new",    "next", "updated",
                                            "cur",  "current",  "initial", "init"};
  std::vector<std::string> words = words_of_name(name);
  const std::vector<std::string> caches{"key", "values"};  // past_key_values.0.key
  for (size_t i = 0; i + 2 < words.size(); ++i)
    if ((words[i] == "past" || words[i] == "present") &&
        std::equal(caches.begin(), caches.end(), words.begin() + static_cast<ptrdiff_t>(i) + 1)) {
      words.erase(words.begin() + static_cast<ptrdiff_t>(i), words.begin() + static_cast<ptrdiff_t>(i) + 3);
      break;
    }
  const size_t before = words.size();
  std::erase_if(words, [](const std::string& w) { return kRoles.count(w) != 0; });
  // h0 and hn; state and stateN.
  if (words.size() == before && !words.empty()) {
    std::string& last = words.back();
    if (input ? last == "0" : last == "n")
      words.pop_back();
    else if (!input && last.size() > 1 && last.back() == 'n')
      last.pop_back();
  }
  return words;
}

bool add_states(const ImportedGraph& model, const LoweringOptions& options, Graph& graph,
                Diagnostics& diagnostics) {
  return AddingStates(model, options, graph, diagnostics).run();
}

StatePairs propose_states(const Graph& graph, StatePairs* unrelated) {
  std::map<std::vector<std::string>, std::vector<size_t>> inputs, outputs;  // by stem
  for (size_t i = 0; i < graph.inputs.size(); ++i)
    if (graph.state_read(graph.inputs[i]) == nullptr && graph.given_length(graph.inputs[i]) == nullptr)
      inputs[state_stem(graph.value(graph.inputs[i]).name, true)].push_back(i);
  for (size_t i = 0; i < graph.outputs.size(); ++i)
    if (graph.state_written(graph.outputs[i]) == nullptr)
      outputs[state_stem(graph.value(graph.outputs[i]).name, false)].push_back(i);
  StatePairs pairs;
  for (const auto& [words, in] : inputs) {
    const auto out = outputs.find(words);
    if (words.empty() || out == outputs.end() || in.size() != 1 || out->second.size() != 1) continue;
    const ValueId from = graph.inputs[in[0]], to = graph.outputs[out->second[0]];
    const Value &begin = graph.value(from), &end = graph.value(to);
    if (begin.dtype != end.dtype || begin.dims != end.dims || !begin.bounded_dims.empty() ||
        !end.bounded_dims.empty() || is_sub_byte(begin.dtype))
      continue;
    const bool related = ancestors(graph, to).count(from) != 0;
    if (related || unrelated != nullptr) (related ? pairs : *unrelated).emplace_back(end.name, begin.name);
  }
  return pairs;
}

}  // namespace sinter::convert
