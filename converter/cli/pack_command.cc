#include "converter/cli/pack_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>

#include "converter/cli/commands.h"
#include "converter/cli/host_session.h"
#include "converter/cli/output_paths.h"
#include "converter/cli/terminal.h"
#include "converter/diagnostics/errors.h"
#include "converter/files/pending_file.h"
#include "converter/target/native_target.h"
#include "converter/target/target_names.h"
#include "sinter/packed_weights.h"
#include "sinter/thread_pool.h"

namespace sinter::convert {

void check_packs_here(std::span<const Target> targets, bool only) {
  const Target here = native_target();
  const std::string standard = target_text(host_target());
  const char* flag = only ? "--packed-only" : "--pack";
  std::string names;
  for (const Target& target : targets) names += (names.empty() ? "" : ",") + target_text(target);
  if (only && targets.size() > 1)
    throw UsageError(fmt::format(
        "--packed-only: the file is for this machine alone, {}, and the targets are {}; give one of them",
        target_text(here), names));
  for (const Target& target : targets)
    if (target.architecture == here.architecture &&
        (target_text(target) == standard || target.features == here.features))
      return;
  const bool same = std::any_of(targets.begin(), targets.end(),
                                [&](const Target& t) { return t.architecture == here.architecture; });
  throw UsageError(fmt::format(
      "{}: weights are packed for this machine, {}, and the target is {}; {}", flag, target_text(here), names,
      same ? "limit this machine's processor by SINTER_CPU_CAP, or leave --target out"
           : fmt::format("leave {} out and call sinter::pack_file() on the device", flag)));
}

nlohmann::json PackedFile::to_json() const {
  return {{"packings", packings},
          {"added", added},
          {"constants_left_out", left_out},
          {"added_bytes", grown},
          {"file_bytes", bytes}};
}

std::string PackedFile::to_text() const {
  std::string text = fmt::format("packed    {} packings, {} of them new, for {}; {} bytes\n", packings, added,
                                 target_text(native_target()), grown);
  if (left_out > 0)
    text += fmt::format("left out  {} constants, which the file has packed for this machine\n", left_out);
  return text;
}

namespace {

// The constants that sessions of a model read packed.
class Packing {
 public:
  Packing(const std::filesystem::path& path, const PackOptions& options)
      : loaded_(path, {}, LoadedModel::Reading::kInPieces, options.custom_ops),
        backends_(host_backends(options.backend)),
        pool_(options.threads) {
    if (!pool_.status().ok()) throw UsageError(describe(pool_.status()));
    with_.backends = backends_;
    with_.backend = options.backend.empty() ? nullptr : options.backend.c_str();
    with_.threads = &pool_;
    with_.entry = kEveryEntry;
    check(packed_.pack(loaded_.model(), with_));
  }
  // Finds the constants that write() leaves out, and returns their number.
  uint32_t leave_out() {
    const AlignedMemory& memory = memory_.emplace(PackedOnlyFile::bytes(loaded_.model()));
    const Result<PackedOnlyFile> made =
        PackedOnlyFile::create(loaded_.model(), packed(), with_, memory.span());
    check(made.status());
    return only_.emplace(*made).count();
  }
  // Throws ModelFileError unless sessions of all shape sets can be created although constants are missing.
  void check_sessions() const {
    SessionOptions with = with_;
    with.packed_weights = &packed();
    for (with.entry = 0; with.entry < loaded_.model().entry_count(); ++with.entry)
      check(Session::requirements(loaded_.model(), with).status());
  }
  const PackedWeights& packed() const { return packed_.packed; }
  uint64_t file_bytes() const { return loaded_.file().size(); }

  void write(PendingFile* file) const {
    const auto put = [](void* to, std::span<const std::byte> piece) {
      static_cast<PendingFile*>(to)->write(piece.data(), piece.size());
      return ok_status();
    };
    check(only_ ? only_->write(put, file) : packed().write_file(put, file));
  }

 private:
  void check(const Status& status) const {
    if (!status.ok())
      throw ModelFileError(
          fmt::format("{}: {}", loaded_.path().string(), describe(status, &loaded_.model())));
  }

  LoadedModel loaded_;
  std::vector<Backend*> backends_;
  PthreadPool pool_;
  SessionOptions with_;
  HostPackedWeights packed_;
  std::optional<AlignedMemory> memory_;
  std::optional<PackedOnlyFile> only_;
};

}  // namespace

PackedFile pack_model(const std::filesystem::path& from, const std::filesystem::path& to,
                      const PackOptions& options) {
  Packing packing(from, options);
  const uint32_t stored = packing.packed().stored(), added = packing.packed().missing();
  PackedFile result{stored + added, added, options.only ? packing.leave_out() : 0, 0, packing.file_bytes()};
  if (added + result.left_out == 0 && from == to) return result;
  PendingFile pending(to);
  packing.write(&pending);
  pending.publish([&](const std::filesystem::path& written) {
    const Packing again(written, options);
    if (again.packed().stored() != result.packings)
      throw std::logic_error("what was packed is not found in the written file");
    if (options.only) again.check_sessions();
    result.grown = static_cast<int64_t>(again.file_bytes() - result.bytes);
    result.bytes = again.file_bytes();
  });
  return result;
}

namespace {

struct PackArguments {
  CommonOptions common;
  CustomOpsOption custom_ops;
  std::string model, out, backend;
  int threads = 1;
  bool only = false;
};

void run_pack(const PackArguments& a) {
  if (a.only && a.out.empty())
    throw UsageError("--packed-only: give -o FILE; the model has constants that the file would lack");
  const std::filesystem::path out = a.out.empty() ? a.model : a.out;
  check_output(out);
  const PackedFile packed = pack_model(
      a.model, out,
      {.backend = a.backend, .threads = a.threads, .only = a.only, .custom_ops = a.custom_ops.load()});
  nlohmann::json json = packed.to_json();
  json["model"] = a.model, json["out"] = out.string();
  if (a.common.json)
    print_json(json);
  else if (!a.common.quiet)
    print_text(fmt::format("{}wrote     {}\n", packed.to_text(), out.string()));
}

}  // namespace

void add_pack(CLI::App& app, Outcome&) {
  auto a = std::make_shared<PackArguments>();
  CLI::App* c = app.add_subcommand(
      "pack",
      "Store the weights as this machine's kernels read them, so that opening the file prepares nothing");
  c->add_option("model", a->model, "The .sinter file, not signed")->required();
  begin_group(*c, flag_group::kOutput);
  add_value(*c, "-o,--output", a->out, "FILE", "The file to write; by default the model is replaced");
  c->add_flag(
      "--packed-only", a->only,
      "Leaves out the constants that kernels read packed, so that the file is smaller and runs on this "
      "machine alone; keep the first one");
  begin_group(*c, flag_group::kTarget);
  add_threads(*c, a->threads, "The number of threads that pack");
  add_value(*c, "--backend", a->backend, "NAME",
            "Pack for sessions with this backend (sinter run --backend); by default as planned");
  a->custom_ops.add_to(*c);
  a->common.add_to(*c);
  c->footer(
      "The file runs on every machine as before; others pack when they open it (but see --packed-only). "
      "To pack for a device, call sinter::pack_file() or sinter_pack_file() there. Sign after packing.\n"
      "Examples:\n"
      "  sinter pack net.sinter\n"
      "  sinter pack net.sinter --packed-only -o here.sinter\n"
      "  SINTER_CPU_CAP=avx2 sinter pack net.sinter -o net.sinter   # and for processors with AVX2 alone");
  c->callback([a] { run_pack(*a); });
}

}  // namespace sinter::convert
