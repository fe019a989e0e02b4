#include "converter/cli/check_written.h"

#include <fmt/format.h>

#include <stdexcept>

#include "converter/cli/device_places.h"
#include "sinter/backends.h"

namespace sinter::convert {

namespace {

WrittenCheck check_entry(const LoadedModel& loaded, const std::string& backend, uint32_t entry,
                         std::span<const PlannedModel> plans, const CheckOptions& options,
                         Diagnostics& diagnostics) {
  SessionOptions session_options;
  session_options.backends = default_backends();
  session_options.entry = entry;
  if (!backend.empty()) session_options.backend = backend.c_str();
  const Result<Requirements> need = Session::requirements(loaded.model(), session_options);
  if (!need.ok()) throw std::runtime_error(describe(need.status(), &loaded.model()));
  WrittenCheck check;
  check.arena_bytes = need.value().arena, check.session_bytes = need.value().bytes;
  if (check.session_bytes + loaded.file().size() > kMostCheckedBytes) {
    check.trial.note =
        fmt::format("no session was created: the session and its file take {} MB, more than {}",
                    (check.session_bytes + loaded.file().size()) >> 20, kMostCheckedBytes >> 20);
    return check;
  }
  HostSession session(loaded, {.backend = backend, .entry = entry});
  check.session_created = true;
  const PlannedModel& plan = plans[session.session().profile()];
  if (const double work = trial_work(plan, entry); !options.trial)
    check.trial.note = "skipped by --no-trial";
  else if (work > kMostTrialWork)
    check.trial.note =
        fmt::format("one run takes the time of {:.2g} multiply-adds, more than {:.2g}", work, kMostTrialWork);
  else
    check.trial = try_once(options.onnx, options.lowerings[entry], plan, loaded.model(), session,
                           options.not_compared, diagnostics);
  return check;
}

}  // namespace

std::vector<WrittenCheck> check_written(const std::filesystem::path& file,
                                        std::span<const PlannedModel> plans, const CheckOptions& options,
                                        Diagnostics& diagnostics) {
  const LoadedModel loaded(file, options.signer, LoadedModel::Reading::kInPieces,
                           options.lowerings.front().custom_ops);
  const std::string backend = backend_here(loaded.model(), loaded.model().default_profile());
  std::vector<WrittenCheck> checks;
  for (uint32_t entry = 0; entry < loaded.model().entry_count(); ++entry)
    checks.push_back(check_entry(loaded, backend, entry, plans, options, diagnostics));
  return checks;
}

}  // namespace sinter::convert
