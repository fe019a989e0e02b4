// sinter embed: a model as source files of a program without a file system.
#include <fmt/format.h>

#include <cctype>
#include <memory>
#include <nlohmann/json.hpp>

#include "converter/cli/commands.h"
#include "converter/cli/embedded_files.h"
#include "converter/cli/output_paths.h"
#include "converter/cli/terminal.h"
#include "converter/diagnostics/errors.h"
#include "converter/files/pending_file.h"
#include "converter/target/target_names.h"

namespace sinter::convert {
namespace {

struct EmbedArguments {
  CommonOptions common;
  TrustOption trust;
  CustomOpsOption custom_ops;
  std::string model, out, target;
};

// Returns the last part of -o, which names symbols and macros.
std::string symbol_of(const std::string& out) {
  const std::string name = std::filesystem::path(out).filename().string();
  const auto good = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  if (name.empty() || std::isdigit(static_cast<unsigned char>(name[0])) != 0 ||
      !std::all_of(name.begin(), name.end(), good))
    throw UsageError(fmt::format(
        "-o {}: the name '{}' cannot be that of a C variable; use letters, digits and _, and no suffix", out,
        name));
  return name;
}

uint32_t profile_of(const Model& model, const EmbedArguments& a) {
  std::vector<std::string> names;
  for (uint32_t i = 0; i < model.profile_count(); ++i) {
    if (a.target == model.profile_name(i) || (a.target.empty() && model.profile_count() == 1)) return i;
    names.emplace_back(model.profile_name(i));
  }
  throw UsageError(
      a.target.empty()
          ? fmt::format("{}: the file is planned for several targets; give --target with one of {}", a.model,
                        fmt::join(names, ", "))
          : fmt::format("{}: the file has no profile for target '{}'; {}", a.model, a.target,
                        advise_target(names, a.target)));
}

void run_embed(const EmbedArguments& a) {
  const std::string name = symbol_of(a.out);
  const std::vector<std::string> files = {a.out + ".h", a.out + ".c", a.out + "_kernels.cc",
                                          a.out + ".cmake"};
  std::vector<NamedFile> written;
  for (const std::string& file : files) {
    check_output(file);
    written.push_back({"-o", file});
  }
  check_outputs(written, {{"the model", a.model}, {"--public-key", a.trust.file}});
  const LoadedModel loaded(a.model, a.trust.key(), LoadedModel::Reading::kMapped, a.custom_ops.load());
  require_constants(loaded, "embed");
  if (loaded.model().entry_count() > 1)
    throw DataError(
        fmt::format("{}: the file has {} shape sets, but sizes are stated for one session; convert the model "
                    "without --shapes, once for each set",
                    a.model, loaded.model().entry_count()));
  const uint32_t profile = profile_of(loaded.model(), a);
  const Embedded e = describe_embedded(loaded, profile, name);
  if (e.memory.names_backends)
    throw DataError(
        fmt::format("{}: the plan for '{}' names kernels whose memory depends on the machine, so its sizes "
                    "cannot be constants; "
                    "convert the model with --target cortex-m4 or portable, or with --backends reference",
                    a.model, e.target));
  const std::string texts[] = {embedded_header(e, loaded), embedded_array(e, loaded.file()),
                               embedded_kernels(e), embedded_cmake(e)};
  for (size_t i = 0; i < files.size(); ++i) {
    PendingFile file(files[i]);
    file.write(texts[i].data(), texts[i].size());
    file.publish();
  }
  if (a.common.json)
    print_json({{"files", files},
                {"target", e.target},
                {"operations", e.operations},
                {"element_types", e.element_types},
                {"file_bytes", loaded.file().size()},
                {"open_bytes", e.memory.stable_open},
                {"sealed_open_bytes", e.memory.sealed_open},
                {"retained_bytes", e.memory.stable_retained},
                {"session_bytes", e.memory.session},
                {"session_exact", e.memory.session_is.empty()}});
  else if (!a.common.quiet)
    print_text(fmt::format(
        "target    {}\noperations {}\ntypes     {}\nmemory    {} bytes to open, {} kept, {} for a session{}\n"
        "wrote     {}\n",
        e.target, fmt::join(e.operations, " "), fmt::join(e.element_types, " "), e.memory.stable_open,
        e.memory.stable_retained, e.memory.session,
        e.memory.session_is.empty() ? "" : " (" + e.memory.session_is + ")", fmt::join(files, ", ")));
}

}  // namespace

void add_embed(CLI::App& app, Outcome&) {
  auto a = std::make_shared<EmbedArguments>();
  CLI::App* c =
      app.add_subcommand("embed", "Write a .sinter file as C and C++ sources, with its sizes as constants");
  c->add_option("model", a->model, "The .sinter file")->required();
  begin_group(*c, flag_group::kOutput);
  add_value(*c, "-o,--output", a->out, "FILE", "Writes NAME.h, NAME.c, NAME_kernels.cc and NAME.cmake")
      ->required();
  begin_group(*c, flag_group::kTarget);
  add_value(*c, "--target", a->target, "NAME",
            "The profile whose sizes are stated; needed where the file has several");
  a->custom_ops.add_to(*c);
  c->footer("Example:\n  sinter embed net.sinter -o firmware/net --target cortex-m4");
  a->trust.add_to(*c);
  a->common.add_to(*c);
  c->callback([a] { run_embed(*a); });
}

}  // namespace sinter::convert
