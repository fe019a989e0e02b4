#include "converter/cli/step_trace.h"

#include <fmt/format.h>

#include <map>
#include <utility>

#include "converter/cli/file_view.h"
#include "converter/diagnostics/printable.h"
#include "converter/files/pending_file.h"
#include "runtime/model/model_state.h"

namespace sinter::convert {
namespace {

constexpr int kProcess = 1, kThread = 1;  // of the trace, which has one of each

// Returns what a step's events have in common: its name, and its operands by type.
nlohmann::json step_arguments(const FileView& view, uint32_t program, uint32_t step) {
  const fb::Program& of = view.program(program);
  const fb::Step& s = *of.steps()->Get(step);
  uint64_t bytes = 0;
  const auto types = [&](const auto& ids) {
    nlohmann::json list = nlohmann::json::array();
    for (const int32_t id : detail::items(ids)) {
      if (id < 0) continue;
      const fb::Value& value = *of.values()->Get(static_cast<uint32_t>(id));
      const auto dims = detail::items(value.dims());
      bytes += dense_bytes(static_cast<DType>(value.dtype()), Dims(dims.begin(), dims.end()));
      list.push_back(FileView::type(value));
    }
    return list;
  };
  nlohmann::json json{{"step", fmt::format("{}.{}", program, step)}, {"name", view.step_name(of, step)}};
  json["inputs"] = types(s.inputs()), json["outputs"] = types(s.outputs());
  json["bytes"] = bytes;
  return json;
}

}  // namespace

void StepTrace::attach(Session& session) {
  observer_.context = this;
  observer_.before = [](void* self, const StepInfo&) {
    static_cast<StepTrace*>(self)->open_.push_back(Clock::now());
  };
  observer_.after = [](void* self, const StepInfo& info, const OpCall&) {
    static_cast<StepTrace*>(self)->add(info);
  };
  session.set_observer(&observer_);
}

void StepTrace::begin_run() {
  open_.clear();
  runs_.push_back({Clock::now(), {}});
}
void StepTrace::end_run() { runs_.back().end = Clock::now(); }

void StepTrace::add(const StepInfo& info) {
  const Clock::time_point now = Clock::now(), begin = open_.back();
  open_.pop_back();
  if (full())
    ++left_out_;
  else
    steps_.push_back({{begin, now}, info.program, info.step, info.backend, info.kernel});
}

double StepTrace::microseconds(Clock::time_point time) const {
  return std::chrono::duration<double, std::micro>(time - runs_.front().begin).count();
}

nlohmann::json StepTrace::event(const std::string& name, const char* category, const Span& time) const {
  return {{"name", name},
          {"cat", category},
          {"ph", "X"},
          {"pid", kProcess},
          {"tid", kThread},
          {"ts", microseconds(time.begin)},
          {"dur", microseconds(time.end) - microseconds(time.begin)}};
}

void StepTrace::write(const std::filesystem::path& path, const HostSession& host, const LoadedModel& loaded,
                      int threads) const {
  const Model& model = loaded.model();
  const FileView view(model, host.profile(), host.entry());
  const auto name_of = [&](const char* kind, const std::string& name) {
    return nlohmann::json{
        {"name", kind}, {"ph", "M"}, {"pid", kProcess}, {"tid", kThread}, {"args", {{"name", name}}}};
  };
  std::string text =
      "{\"displayTimeUnit\":\"ns\",\"otherData\":" +
      json_text({{"model", loaded.path().string()}, {"threads", threads}, {"left_out", left_out_}}, -1) +
      ",\"traceEvents\":[\n";
  const auto put = [&](const nlohmann::json& event) { text += json_text(event, -1) + ",\n"; };
  put(name_of("process_name", "sinter bench"));
  put(name_of("thread_name", fmt::format("session of {} thread{}", threads, threads == 1 ? "" : "s")));
  for (size_t i = 0; i < runs_.size(); ++i) {
    nlohmann::json run = event(fmt::format("run {}", i), "run", runs_[i]);
    run["args"] = {{"threads", threads}};
    put(run);
  }
  std::map<std::pair<uint32_t, uint32_t>, nlohmann::json> arguments;
  for (const Step& s : steps_) {
    const auto [at, fresh] = arguments.try_emplace({s.program, s.step});
    if (fresh) at->second = step_arguments(view, s.program, s.step);
    const char* kernel = s.kernel != nullptr ? s.kernel : s.backend;
    nlohmann::json step =
        event(fmt::format("{} {}", model.step_op(s.step, s.program), kernel), "step", s.time);
    step["args"] = at->second;
    step["args"]["backend"] = s.backend, step["args"]["threads"] = threads;
    put(step);
  }
  text.replace(text.size() - 2, 2, "\n]}\n");  // the comma behind the last event
  write_whole(path, text);
}

nlohmann::json StepTrace::json() const {
  return {{"runs", runs_.size()}, {"steps", steps_.size()}, {"left_out", left_out_}};
}

std::string StepTrace::text() const {
  return fmt::format("trace     {} runs, {} steps{}\n", runs_.size(), steps_.size(),
                     left_out_ == 0 ? "" : fmt::format("; {} more of the last run are left out", left_out_));
}

}  // namespace sinter::convert
