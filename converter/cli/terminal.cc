#include "converter/cli/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <charconv>
#include <cstdlib>
#include <mutex>
#include <nlohmann/json.hpp>
#include <string>

#include "converter/diagnostics/printable.h"
#include "converter/report/columns.h"

namespace sinter::convert {
namespace {

constexpr size_t kMessageIndent = 2;

std::mutex status_mutex;
bool status_shown = false;

void put(std::string_view text, std::FILE* to) { std::fwrite(text.data(), 1, text.size(), to); }

void print_lines(std::string_view given, std::FILE* to, size_t indent) {
  clear_status();
  const std::string text = printable_lines(given);
  put(::isatty(::fileno(to)) != 0 ? wrapped_lines(text, terminal_columns(to), indent) : text, to);
}

}  // namespace

size_t terminal_columns(std::FILE* to) {
  const int file = ::fileno(to);
  if (::isatty(file) == 0) return kUsualColumns;
  winsize size = {};
  if (::ioctl(file, TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  size_t columns = 0;
  if (const char* given = std::getenv("COLUMNS")) {
    const std::string_view text = given;
    std::from_chars(text.data(), text.data() + text.size(), columns);
  }
  return columns > 0 ? columns : kUsualColumns;
}

void print_messages(std::string_view text) { print_lines(text, stderr, kMessageIndent); }
void print_text(std::string_view text) { print_lines(text, stdout, kLabelColumns); }

void print_json(const nlohmann::json& json) {
  clear_status();
  std::puts(json_text(json).c_str());
}

void show_status(std::string_view line) {
  // A full row would leave the cursor in the next one on some terminals.
  const std::string text = cut_to(printable(line), terminal_columns(stderr) - 1);
  const std::lock_guard lock(status_mutex);
  put("\r\033[K" + text, stderr);
  status_shown = true;
}

void clear_status() {
  const std::lock_guard lock(status_mutex);
  if (status_shown) put("\r\033[K", stderr);
  status_shown = false;
}

}  // namespace sinter::convert
