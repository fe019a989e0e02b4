// Shared objects with custom operators (--custom-ops).
#include <dlfcn.h>
#include <fmt/format.h>

#include <filesystem>

#include "converter/cli/commands.h"
#include "converter/cli/host_session.h"
#include "converter/cli/program.h"
#include "converter/diagnostics/errors.h"
#include "converter/import/onnx_operator.h"

namespace sinter::convert {
namespace {

// Returns a path with a slash, because a name without one is searched for in the system's folders.
std::string path_of(const std::string& library) {
  return library.find('/') == std::string::npos ? "./" + library : library;
}

// Returns the library's operators. It is never unloaded, because models and messages refer to its memory.
CustomOps operators_in(const std::string& library) {
  std::error_code none;
  if (const auto kind = std::filesystem::status(path_of(library), none).type();
      kind != std::filesystem::file_type::not_found && kind != std::filesystem::file_type::regular)
    throw UsageError(fmt::format("--custom-ops {}: is not a file; give the name of a library", library));
  void* handle = ::dlopen(path_of(library).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    throw UsageError(fmt::format("--custom-ops {}: the library cannot be loaded: {}", library, ::dlerror()));
  void* symbol = ::dlsym(handle, SINTER_CUSTOM_OPS_FUNCTION);
  if (symbol == nullptr)
    throw UsageError(
        fmt::format("--custom-ops {}: the library does not export the function {}, which gives its "
                    "operators (sinter/custom_op.h)",
                    library, SINTER_CUSTOM_OPS_FUNCTION));
  size_t count = 0;
  const sinter_custom_op* const* ops = reinterpret_cast<sinter_custom_ops_function>(symbol)(&count);
  if (ops == nullptr || count == 0)
    throw UsageError(
        fmt::format("--custom-ops {}: {} gives no operators", library, SINTER_CUSTOM_OPS_FUNCTION));
  return {ops, count};
}

}  // namespace

std::shared_ptr<const CustomOperators> load_custom_operators(const std::vector<std::string>& libraries) {
  if (libraries.empty()) return nullptr;
  auto all = std::make_shared<CustomOperators>();
  for (const std::string& library : libraries) {
    const CustomOps ops = operators_in(library);
    if (const Status status = all->add(ops); !status.ok())
      throw UsageError(fmt::format("--custom-ops {}: {}", library, describe(status)));
    for (const sinter_custom_op* op : ops)
      if (find_operator(op->domain, op->name) != nullptr)
        throw UsageError(
            fmt::format("--custom-ops {}: {}.{} is an operator that Sinter has itself; give yours another "
                        "domain or name",
                        library, op->domain, op->name));
  }
  return all;
}

std::shared_ptr<const CustomOperators> CustomOpsOption::load() const {
  return load_custom_operators(libraries);
}

}  // namespace sinter::convert
