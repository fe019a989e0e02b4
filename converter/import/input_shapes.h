// The dims of a model's inputs, where options or what is known of the model settle those that are open.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "converter/diagnostics/diagnostics.h"
#include "converter/import/lower.h"
#include "converter/import/read/imported_graph.h"

namespace sinter::convert {

// The shape of an input without dimensions, as --shape and --shapes take it.
inline constexpr char kScalarShape[] = "scalar";
// "1,3,224,224", as --shape takes it.
std::string shape_text(const Dims& dims);

// Decides every graph input's dims, or refuses with the list of what is open. `batches`: names of dimensions
// that are batches wherever they are.
class InputShapes {
 public:
  InputShapes(const ImportedGraph& graph, const LoweringOptions& options, std::set<std::string> batches,
              Diagnostics& diagnostics);

  // nullopt: open, or refused.
  std::optional<Dims> resolve(const ImportedValueInfo& input);
  const std::vector<SettledDim>& settled() const { return settled_; }
  bool any_open() const { return !open_.empty(); }
  void report_open();

 private:
  int64_t settle(const ImportedValueInfo& input, size_t axis, int64_t size, SettledDim::By by,
                 int64_t minimum = -1);
  bool is_batch(const ImportedDim& dim, size_t axis) const;

  const ImportedGraph& graph_;
  const LoweringOptions& options_;
  const std::set<std::string> batches_;
  Diagnostics& diagnostics_;
  std::vector<SettledDim> settled_;
  std::set<std::string> inner_;
  std::map<std::string, int64_t> symbols_;
  std::vector<std::string> open_;
  std::string without_shape_;  // an input, or ""
};

}  // namespace sinter::convert
