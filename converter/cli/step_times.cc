#include "converter/cli/step_times.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <map>
#include <sstream>
#include <tuple>

#include "converter/cli/file_view.h"
#include "converter/diagnostics/errors.h"
#include "converter/files/input_file.h"

namespace sinter::convert {
namespace {

using Clock = std::chrono::steady_clock;
using StepKey = std::pair<uint32_t, uint32_t>;

double elapsed_seconds(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A session on one backend, whose runs are timed step by step.
class TimedSession {
 public:
  TimedSession(const LoadedModel& loaded, uint32_t entry, const std::string& backend, int threads)
      : backend_(backend), host_(loaded, {.threads = threads, .backend = backend, .entry = entry}) {
    observer_.context = this;
    observer_.before = [](void* self, const StepInfo&) {
      static_cast<TimedSession*>(self)->start_ = Clock::now();
    };
    observer_.after = [](void* self, const StepInfo& info, const OpCall&) {
      auto& session = *static_cast<TimedSession*>(self);
      const StepKey key{info.program, info.step};
      if (session.backend_ != info.backend) return;
      session.run_[key] += elapsed_seconds(session.start_);
      if (info.kernel != nullptr) session.kernels_[key] = info.kernel;
    };
    host_.session().set_observer(&observer_);
  }
  ~TimedSession() { host_.session().set_observer(nullptr); }
  TimedSession(const TimedSession&) = delete;
  TimedSession& operator=(const TimedSession&) = delete;

  void run(const Arrays& inputs) {
    run_.clear();
    host_.set_inputs(inputs);
    host_.run();
    for (const auto& [key, seconds] : run_) {
      const auto [at, added] = lowest_.try_emplace(key, seconds);
      if (!added) at->second = std::min(at->second, seconds);
    }
  }
  void append_to(std::vector<StepTime>* times) const {
    for (const auto& [key, seconds] : lowest_)
      times->push_back({key.first, key.second, backend_, 1e9 * seconds, kernel_of(key)});
  }

 private:
  std::string kernel_of(const StepKey& key) const {
    const auto at = kernels_.find(key);
    return at == kernels_.end() ? "" : at->second;
  }

  std::string backend_;
  HostSession host_;
  StepObserver observer_;
  Clock::time_point start_;
  std::map<StepKey, double> run_, lowest_;
  std::map<StepKey, const char*> kernels_;
};

}  // namespace

std::vector<StepTime> measure_steps(const LoadedModel& loaded, uint32_t entry, const Arrays& inputs,
                                    int threads, double seconds) {
  const FileView view(loaded.model());
  const std::vector<std::string> here = host_backend_names();
  std::vector<std::unique_ptr<TimedSession>> sessions;
  for (const auto* name : *view.profile().backends())
    if (std::find(here.begin(), here.end(), name->str()) != here.end())
      sessions.push_back(std::make_unique<TimedSession>(loaded, entry, name->str(), threads));
  constexpr int kMinRounds = 3;
  const auto begin = Clock::now();
  for (int round = 0; !sessions.empty() && (round < kMinRounds || elapsed_seconds(begin) < seconds); ++round)
    for (const auto& session : sessions) session->run(inputs);
  std::vector<StepTime> times;
  for (const auto& session : sessions) session->append_to(&times);
  std::stable_sort(times.begin(), times.end(), [](const StepTime& a, const StepTime& b) {
    return std::tie(a.program, a.step) < std::tie(b.program, b.step);
  });
  return times;
}

std::vector<StepTime> read_step_times(const std::filesystem::path& path, std::string* profile) {
  const std::vector<std::byte> bytes = bytes_of_file(path);
  std::istringstream file(std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
  const auto fail = [&](int line, const char* what) {
    throw DataError(fmt::format("{}: line {} is not {}; give the output of sinter_time_steps", path.string(),
                                line, what));
  };
  std::vector<StepTime> times;
  std::string text, word;
  int line = 1;
  std::getline(file, text);
  std::istringstream first(text);
  if (!(first >> word) || word != "profile" || !(first >> *profile)) fail(line, "'profile NAME'");
  while (std::getline(file, text)) {
    ++line;
    std::istringstream fields(text);
    StepTime t;
    if (!(fields >> t.program >> t.step >> t.backend >> t.nanoseconds) || (fields >> word) ||
        !(t.nanoseconds >= 0))
      fail(line, "'PROGRAM STEP BACKEND NANOSECONDS'");
    times.push_back(t);
  }
  return times;
}

}  // namespace sinter::convert
