#include "converter/cli/embedded_files.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <set>

#include "converter/diagnostics/printable.h"
#include "runtime/model/model_state.h"

namespace sinter::convert {
namespace {

std::string capitals(std::string text) {
  std::transform(text.begin(), text.end(), text.begin(), [](unsigned char c) { return std::toupper(c); });
  return text;
}

std::string written_by(const Embedded& e, const char* comment) {
  return fmt::format("{} Written by `sinter embed` from {}, planned for {}.\n", comment, printable(e.source),
                     printable(e.target));
}

// Returns a macro for each size, with its meaning.
std::string sizes(const Embedded& e, const LoadedModel& loaded) {
  const std::string prefix = capitals(e.name);
  const TargetMemory& m = e.memory;
  std::string text;
  const auto size = [&](const char* what, size_t bytes, const std::string& meaning) {
    text += fmt::format("/* {} */\n#define {}_{} {}u\n", meaning, prefix, what, bytes);
  };
  const auto memory_bytes = [&](size_t open) { return std::max(open, m.stable_retained + m.session); };
  const std::string session =
      m.session_is.empty() ? "exactly" : fmt::format("a bound: exact {}", m.session_is);
  size("FILE_BYTES", loaded.file().size(), fmt::format("The array {}_model.", e.name));
  text += "#ifdef SINTER_SEALED\n";
  size("OPEN_BYTES", m.sealed_open, "Memory that opening takes (OpenOptions::stable), without the verifier.");
  size("MEMORY_BYTES", memory_bytes(m.sealed_open), "One block for opening, then the model and a session.");
  text += "#else\n";
  size("OPEN_BYTES", m.stable_open, "Memory that opening takes (OpenOptions::stable).");
  size("MEMORY_BYTES", memory_bytes(m.stable_open), "One block for opening, then the model and a session.");
  text += "#endif\n";
  size("RETAINED_BYTES", m.stable_retained, "Of it, what stays taken by the model.");
  size("SESSION_BYTES", m.session, fmt::format("A session on one thread, {}.", session));
  size("STACK_BYTES", kCortexStackBytes,
       "Stack that opening, creating and running take at most on Cortex-M (GCC 12, -Os).");
  const Model& model = loaded.model();
  const auto port = [&](const char* kind, uint32_t i, const PortInfo& info, const std::string& type) {
    int64_t bytes = 0;
    (void)checked_bytes(info.dtype, info.dims, &bytes);
    size(fmt::format("{}_{}_BYTES", kind, i).c_str(), static_cast<size_t>(bytes),
         fmt::format("{} {}: {}", kind[0] == 'I' ? "Input" : "Output", i, type));
    if (info.scale > 0)
      text += fmt::format(
          "/* An integer q is the number (q - zero point) * scale. */\n#define {0}_{1}_{2}_SCALE {3:#.9g}f\n"
          "#define {0}_{1}_{2}_ZERO_POINT ({4})\n",
          prefix, kind, i, info.scale, info.zero_point);
  };
  for (uint32_t i = 0; i < model.input_count(); ++i)
    port("INPUT", i, model.input(i), input_type(model, i, 0));
  for (uint32_t i = 0; i < model.output_count(); ++i)
    port("OUTPUT", i, model.output(i), port_type(model.output(i)));
  return text;
}

}  // namespace

Embedded describe_embedded(const LoadedModel& loaded, uint32_t profile, const std::string& name) {
  const Model& model = loaded.model();
  Embedded e{name, loaded.path().filename().string(), model.profile_target(profile), {}, {}, {}};
  std::set<int> rows, types;
  for (const fb::Program* program : *model.state()->root->programs()) {
    for (uint32_t v = 0; v < detail::length(program->values()); ++v)
      types.insert(program->values()->Get(v)->dtype());
    for (const auto* steps : {program->steps(), program->prepare()})
      for (uint32_t s = 0; s < detail::length(steps); ++s)
        rows.insert(op_index(detail::step_op(*steps->Get(s))));
  }
  for (const int row : rows) e.operations.push_back(op_info_at(row).name);
  for (const int type : types) e.element_types.push_back(dtype_name(static_cast<DType>(type)));
  e.memory = target_memory(loaded, profile);
  return e;
}

std::string embedded_header(const Embedded& e, const LoadedModel& loaded) {
  const std::string guard = capitals(e.name) + "_H_";
  return fmt::format(
      "{}#ifndef {}\n#define {}\n\n{}\n#ifdef __cplusplus\n#include \"runtime/kernels/reference.h\"\n\n// "
      "The "
      "kernels of the model's operations, and no others: OpenOptions::kernels.\nsinter::KernelTable "
      "{}_kernels();\n\nextern \"C\" {{\n#endif\n\n/* The model file, aligned as Model::open() needs it. "
      "*/\nextern const unsigned char {}_model[{}_FILE_BYTES];\n\n#ifdef __cplusplus\n}}\n#endif\n\n#endif\n",
      written_by(e, "//"), guard, guard, sizes(e, loaded), e.name, e.name, capitals(e.name));
}

std::string embedded_array(const Embedded& e, std::span<const std::byte> file) {
  std::string text = written_by(e, "//");
  text += fmt::format("#include \"{}.h\"\n\n", e.name);
  text += fmt::format("#ifdef __cplusplus\nalignas({0})\n#else\n_Alignas({0})\n#endif\n", kBufferAlignment);
  text += fmt::format("const unsigned char {}_model[{}] = {{", e.name, file.size());
  for (size_t i = 0; i < file.size(); ++i)
    text += fmt::format("{}{},", i % 24 == 0 ? "\n" : "", static_cast<unsigned>(file[i]));
  return text + "\n};\n";
}

std::string embedded_kernels(const Embedded& e) {
  std::string rows;
  for (const std::string& op : e.operations)
    rows += fmt::format(
        "template <>\nconstexpr const sinter::Kernel* kernel<sinter::Op::k{0}> = &sinter::k{0}Kernel;\n", op);
  return fmt::format(
      "{}#include \"{}.h\"\n\nnamespace {{\n\ntemplate <sinter::Op op>\nconstexpr const sinter::Kernel* "
      "kernel = "
      "nullptr;\n{}\nconstexpr const sinter::Kernel* kTable[] = {{\n#define SINTER_OP(name, ...) "
      "kernel<sinter::Op::k##name>,\n#include \"schemas/ops.def\"\n#undef SINTER_OP\n}};\n\n}}  // "
      "namespace\n\nsinter::KernelTable {}_kernels() {{ return kTable; }}\n",
      written_by(e, "//"), e.name, rows, e.name);
}

std::string embedded_cmake(const Embedded& e) {
  return fmt::format(
      "{}# Include it before add_subdirectory() of Sinter, which then builds what the model needs and "
      "nothing else; "
      "an installed\n# Sinter keeps what it was built with.\nlist(APPEND SINTER_OPERATIONS {})\nlist(APPEND "
      "SINTER_ELEMENT_TYPES {})\n# For a target that links Sinter::sinter.\nset({}_SOURCES "
      "\"${{CMAKE_CURRENT_LIST_DIR}}/{}.c\" \"${{CMAKE_CURRENT_LIST_DIR}}/{}_kernels.cc\")\n",
      written_by(e, "#"), fmt::join(e.operations, " "), fmt::join(e.element_types, " "), e.name, e.name,
      e.name);
}

}  // namespace sinter::convert
