#include "python/native/sinter_python.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "converter/cli/program.h"
#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/nearest_name.h"
#include "converter/diagnostics/printable.h"
#include "converter/files/ending.h"
#include "converter/files/unfinished.h"

struct sinter_python_operators {
  std::shared_ptr<const sinter::convert::CustomOperators> loaded;
  sinter::CustomOps list;
};

namespace sinter::python {
namespace {

using Words = std::vector<std::string>;

Words words_of(const char* const* words, size_t count) { return {words, words + count}; }

// Returns a copy that sinter_python_free() releases.
char* copy_of(const std::string& text) {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) throw std::bad_alloc();
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}
// Returns the same of what `make` returns; null without memory.
template <class Make>
char* copy_or_null(Make make) noexcept {
  try {
    return copy_of(make());
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

// The exception with which a listener ends a command. No handler of the converter takes it for a failure.
struct Stopped {};

class Listener final : public convert::CommandListener {
 public:
  explicit Listener(sinter_python_listener report) : report_(report) {}

  void result(const nlohmann::json& json, const std::string& text) override {
    json_ = convert::json_text(json, -1), text_ = convert::printable_lines(text);
  }
  void progress(double fraction, const std::string& stage) override {
    const sinter_python_progress progress{fraction, stage.c_str()};
    if (report_(&progress) != SINTER_PYTHON_GO_ON) throw Stopped();
  }
  const std::string& json() const { return json_; }
  const std::string& text() const { return text_; }

 private:
  const sinter_python_listener report_;
  std::string json_, text_;
};

void fail(sinter_python_failure failure, const std::exception& e, sinter_python_result* result) {
  result->text = copy_or_null([&] { return convert::one_message(e.what()); });
  result->failure = result->text != nullptr ? failure : SINTER_PYTHON_MEMORY;
}

// Calls `work`, and turns its exceptions into a result.
template <class Work>
void guard(sinter_python_result* result, Work work) noexcept {
  *result = {};
  try {
    work();
  } catch (const Stopped&) {
    result->failure = SINTER_PYTHON_STOPPED;
  } catch (const convert::UsageError& e) {
    fail(SINTER_PYTHON_USAGE, e, result);
  } catch (const convert::DataError& e) {
    fail(SINTER_PYTHON_DATA, e, result);
  } catch (const convert::ModelFileError& e) {
    fail(SINTER_PYTHON_MODEL_FILE, e, result);
  } catch (const convert::FileError& e) {
    fail(SINTER_PYTHON_FILE, e, result);
  } catch (const std::bad_alloc&) {
    result->failure = SINTER_PYTHON_MEMORY;
  } catch (const std::exception& e) {
    fail(SINTER_PYTHON_OTHER, e, result);
  }
}

nlohmann::json json_of(const convert::CommandFlag& f) {
  return {{"name", f.name},
          {"type", f.type},
          {"form", f.form},
          {"help", f.form.empty() ? f.help : f.form + ": " + f.help},
          {"takes_value", f.takes_value},
          {"repeats", f.repeats}};
}

}  // namespace
}  // namespace sinter::python

using namespace sinter::python;
namespace convert = sinter::convert;

extern "C" {

void sinter_python_start(void) {
  convert::take_thread_local_data();
  convert::cap_instruction_sets();
}
void sinter_python_free(char* text) { std::free(text); }
char* sinter_python_message(const char* text) {
  return copy_or_null([&] { return convert::one_message(text); });
}

void sinter_python_call(const char* const* words, size_t count, sinter_python_listener listener,
                        sinter_python_result* result) {
  guard(result, [&] {
    Listener reports(listener);
    result->exit_code = convert::call_command(words_of(words, count), reports);
    result->json = copy_of(reports.json());
    result->text = copy_of(reports.text());
  });
}
int32_t sinter_python_run_program(const char* const* words, size_t count) {
  const Words all = words_of(words, count);
  convert::remove_unfinished_on_signals();
  if (std::find(all.begin(), all.end(), "--json") != all.end()) convert::print_json_on_signals();
  return convert::run_program(all);
}
char* sinter_python_flags(const char* command) {
  return copy_or_null([&] {
    nlohmann::json list = nlohmann::json::array();
    for (const convert::CommandFlag& flag : convert::flags_of(command)) list.push_back(json_of(flag));
    return convert::json_text(list, -1);
  });
}
int32_t sinter_python_nearest_name(const char* const* names, size_t count, const char* wanted) {
  const Words all = words_of(names, count);
  const std::string* near = convert::nearest_name(all, wanted);
  return near != nullptr ? static_cast<int32_t>(near - all.data()) : -1;
}

sinter_python_operators* sinter_python_load_operators(const char* const* libraries, size_t count,
                                                      sinter_python_result* result) {
  sinter_python_operators* operators = nullptr;
  guard(result, [&] {
    auto loaded = convert::load_custom_operators(words_of(libraries, count));
    const sinter::CustomOps list = loaded != nullptr ? loaded->all() : sinter::CustomOps();
    operators = new sinter_python_operators{std::move(loaded), list};
  });
  return operators;
}
const sinter_custom_op* const* sinter_python_operator_list(const sinter_python_operators* operators,
                                                           size_t* count) {
  *count = operators->list.size();
  return operators->list.data();
}
void sinter_python_free_operators(sinter_python_operators* operators) { delete operators; }

sinter_code sinter_python_run(sinter_python_run_call* call) {
  const sinter_code code = call->started != 0 ? sinter_finish(call->session, &call->error)
                                              : sinter_run(call->session, &call->error);
  call->started = 0;
  if (code != SINTER_OK) return code;
  bool all_used = true;
  for (uint32_t output = 0; output < call->output_count; ++output)
    for (int32_t axis = 0; axis < SINTER_MAX_RANK; ++axis) {
      const size_t i = static_cast<size_t>(output) * SINTER_MAX_RANK + static_cast<size_t>(axis);
      call->used[i] = sinter_session_output_length_at(call->session, output, axis);
      all_used = all_used && call->used[i] == call->planned[i];
    }
  call->all_used = all_used ? 1 : 0;
  return code;
}

}  // extern "C"
