#include "converter/data/stated_preprocessing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "converter/diagnostics/errors.h"
#include "converter/diagnostics/printable.h"

namespace sinter::convert {
namespace {

using Text = PreprocessingText;

constexpr std::pair<const char*, std::string Text::*> kParts[] = {{"resize", &Text::resize},
                                                                  {"mean", &Text::mean},
                                                                  {"scale", &Text::scale},
                                                                  {"layout", &Text::layout},
                                                                  {"channel_order", &Text::channel_order}};
constexpr char kBytes[] = "uint8";  // inputs of bytes take pixels as they are

std::string key_of(const char* name) { return std::string(kOwnKeys) + name; }

// Returns the texts of which parse_preprocessing() makes it.
Text text_of(const Preprocessing& how) {
  using Resize = Preprocessing::Resize;
  using Layout = Preprocessing::Layout;
  Text text;
  if (how.resize == Resize::kExact) text.resize = "exact";
  if (how.resize == Resize::kCrop) text.resize = how.side > 0 ? fmt::format("crop={}", how.side) : "crop";
  if (how.resize == Resize::kLetterbox) text.resize = fmt::format("letterbox={}", how.fill);
  if (how.layout != Layout::kByShape) text.layout = how.layout == Layout::kChannelsLast ? "nhwc" : "nchw";
  text.mean = fmt::format("{}", fmt::join(how.mean, ","));
  text.scale = fmt::format("{}", fmt::join(how.scale, ","));
  if (how.bgr) text.channel_order = "bgr";
  return text;
}

}  // namespace

std::map<std::string, std::string> stated_preprocessing(const Preprocessing& how, bool numbers) {
  Text text = text_of(how);
  if (!numbers) text.mean.clear(), text.scale.clear(), text.channel_order.clear();
  std::map<std::string, std::string> metadata;
  for (const auto& [name, part] : kParts)
    if (!(text.*part).empty()) metadata[key_of(name)] = text.*part;
  if (how.built_in) metadata[key_of(kBytes)] = "pixels";
  return metadata;
}

Preprocessing read_preprocessing(const std::function<const char*(const char*)>& metadata) {
  Text text;
  for (const auto& [name, part] : kParts)
    if (const char* value = metadata(key_of(name).c_str()); value != nullptr) text.*part = value;
  try {
    Preprocessing how = parse_preprocessing(text);
    how.built_in = metadata(key_of(kBytes).c_str()) != nullptr;
    return how;
  } catch (const UsageError& e) {
    throw DataError(fmt::format("the file's preprocessing cannot be read: {}", printable(e.what())));
  }
}

}  // namespace sinter::convert
