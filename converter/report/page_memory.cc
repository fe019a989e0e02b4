// Memory over time: every value as a rectangle from its first to its last step, at its offset in the arena.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "converter/plan/covered.h"
#include "converter/report/page.h"

namespace sinter::convert {
namespace {

constexpr double kLeft = 74, kRight = 14, kTop = 12, kBottom = 40, kWidth = 1080, kHeight = 420;
// The width of a label's letter and the height of its line.
constexpr double kLetter = 6.6, kLine = 13;

// Returns 1, 2 or 5 times a power of ten (for bytes, of `base`), about `parts` of which make `whole`.
double step_of(double whole, int parts) {
  const double raw = whole / parts, power = std::pow(10, std::floor(std::log10(std::max(raw, 1e-9))));
  for (const double m : {1.0, 2.0, 5.0})
    if (m * power >= raw) return m * power;
  return 10 * power;
}

struct Workspace {
  uint32_t region = 0;
  uint64_t offset = 0, bytes = 0;
};
// Returns a step's own workspace, and those of its bodies in device memory.
std::vector<Workspace> workspaces_of(const nlohmann::json& step) {
  std::vector<Workspace> all{
      {step.at("workspace_region"), step.at("workspace_offset"), step.at("workspace_bytes")}};
  if (step.contains("device_workspaces"))
    for (const auto& w : step.at("device_workspaces"))
      all.push_back({w.at("region"), w.at("offset"), w.at("bytes")});
  return all;
}

// The names, drawn above all rectangles, because those that share memory overlap; names do not.
class Labels {
 public:
  // Adds a name in the middle of a rectangle, or on a line above or below, if a line is free.
  void add(double x, double top, double height, const std::string& text) {
    const double width = kLetter * static_cast<double>(text.size());
    for (const double shift : {0.0, kLine, -kLine, 2 * kLine, -2 * kLine}) {
      const double y = top + (height - kLine) / 2 + shift;
      if (y < top || y + kLine > top + height) continue;
      const Place place{x, x + width, y, y + kLine};
      if (std::any_of(taken_.begin(), taken_.end(), [&](const Place& p) { return p.meets(place); })) continue;
      taken_.push_back(place);
      svg_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>", x, y + kLine - 3, escaped(text));
      return;
    }
  }
  const std::string& svg() const { return svg_; }

 private:
  struct Place {
    double left, right, top, bottom;
    bool meets(const Place& p) const {
      return left < p.right && p.left < right && top < p.bottom && p.top < bottom;
    }
  };
  std::vector<Place> taken_;
  std::string svg_;
};

}  // namespace

std::vector<uint64_t> live_bytes(const nlohmann::json& report, uint32_t region) {
  std::vector<uint64_t> live;
  for (const auto& step : report.at("plan")) {
    const auto now = static_cast<int64_t>(live.size());
    std::vector<std::pair<uint64_t, uint64_t>> spans;
    const auto add = [&](uint64_t offset, uint64_t bytes) { spans.emplace_back(offset, offset + bytes); };
    for (const Workspace& w : workspaces_of(step))
      if (w.region == region) add(w.offset, w.bytes);
    for (const auto& p : report.at("placements"))
      if (p.at("region") == region && p.at("first_step").get<int64_t>() <= now &&
          now <= p.at("last_step").get<int64_t>())
        add(p.at("offset"), p.at("bytes"));
    live.push_back(covered_bytes(spans));
  }
  return live;
}

std::string memory_drawings(const nlohmann::json& report) {
  if (!report.contains("placements") || report.at("placements").empty()) return {};
  const auto& regions = report.at("regions");
  std::string out;
  for (uint32_t r = 0; r < regions.size(); ++r)
    out += (regions.size() > 1
                ? fmt::format("<h3>{} memory: {}</h3>\n", escaped(regions[r].at("memory").get<std::string>()),
                              bytes_words(regions[r].at("bytes")))
                : std::string()) +
           "<div class=\"scroll\">\n" + memory_drawing(report, r) + "</div>\n";
  return out;
}

std::string memory_drawing(const nlohmann::json& report, uint32_t region) {
  const auto& steps = report.at("plan");
  const double arena = std::max(report.at("regions")[region].at("bytes").get<double>(), 1.0);
  const double count = static_cast<double>(steps.size()) + 2;  // with one before and one after all steps
  const auto x_of = [&](double step) { return kLeft + (step + 1) / count * (kWidth - kLeft - kRight); };
  const auto y_of = [&](double bytes) { return kTop + (1 - bytes / arena) * (kHeight - kTop - kBottom); };
  std::string out = fmt::format(
      "<svg class=\"memory\" role=\"img\" aria-label=\"memory over "
      "time\" "
      "viewBox=\"0 0 {:.0f} {:.0f}\">\n",
      kWidth, kHeight);
  const double by = step_of(arena, 5);
  for (double b = 0; b <= arena * 1.001; b += by)
    out += fmt::format(
        "<path class=\"scale\" d=\"M{:.1f} {:.1f}H{:.1f}\"/><text class=\"tick right\" x=\"{:.1f}\" "
        "y=\"{:.1f}\">{}</text>\n",
        kLeft, y_of(b), kWidth - kRight, kLeft - 8, y_of(b) + 4, bytes_words(b));
  const double every = std::max(1.0, step_of(static_cast<double>(steps.size()), 12));
  for (double s = 0; s < static_cast<double>(steps.size()); s += every)
    out += fmt::format("<text class=\"tick middle\" x=\"{:.1f}\" y=\"{:.1f}\">{:.0f}</text>\n", x_of(s + 0.5),
                       kHeight - kBottom + 18, s);
  out += fmt::format("<text class=\"tick middle\" x=\"{:.1f}\" y=\"{:.1f}\">step</text>\n",
                     (kLeft + kWidth - kRight) / 2, kHeight - 6);
  const std::vector<uint64_t> live = live_bytes(report, region);
  if (const auto most = std::max_element(live.begin(), live.end()); most != live.end() && *most > 0)
    out += fmt::format(
        "<g class=\"peak\"><title>step {} needs the most: {} at once</title><rect x=\"{:.1f}\" y=\"{:.1f}\" "
        "width=\"{:.1f}\" height=\"{:.1f}\"/></g>\n",
        most - live.begin(), bytes_words(static_cast<double>(*most)),
        x_of(static_cast<double>(most - live.begin())), kTop, std::max(x_of(1) - x_of(0), 1.0),
        kHeight - kTop - kBottom);
  Labels labels;
  const auto box = [&](const std::string& look, double first, double last, double offset, double bytes,
                       const std::string& hint, const std::string& label) {
    const double x = x_of(first), w = x_of(last + 1) - x, y = y_of(offset + bytes), h = y_of(offset) - y;
    out += fmt::format(
        "<g class=\"live {}\"><title>{}</title><rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" "
        "height=\"{:.2f}\"/>",
        look, escaped(hint), x, y, w, std::max(h, 0.6));
    out += "</g>\n";
    const auto letters = static_cast<size_t>(std::max(w - 8, 0.0) / kLetter);
    if (w > 46 && (letters >= label.size() || label != "workspace"))
      labels.add(x + 4, y, h, shortened(label, letters));
  };
  for (const auto& p : report.at("placements")) {
    const auto& v = report.at("values")[p.at("value").get<size_t>()];
    const double bytes = p.at("bytes"), first = p.at("first_step"), last = p.at("last_step"),
                 offset = p.at("offset");
    if (bytes <= 0 || p.at("region") != region) continue;
    const std::string name = v.at("name");
    const bool alias = p.at("alias_of").get<int>() >= 0;
    box(type_class(v.at("type").get<std::string>()) + (alias ? " alias" : ""), first, last, offset, bytes,
        fmt::format("{}\n{}{}\n{} at {}, steps {} to {}{}", name, v.at("type").get<std::string>(),
                    v.at("shape").dump(), bytes_words(bytes), bytes_words(offset), p.at("first_step").dump(),
                    p.at("last_step").dump(), alias ? "\nshares its memory with another value" : ""),
        name);
  }
  for (size_t s = 0; s < steps.size(); ++s)
    for (const Workspace& w : workspaces_of(steps[s]))
      if (w.bytes > 0 && w.region == region)
        box("work", static_cast<double>(s), static_cast<double>(s), static_cast<double>(w.offset),
            static_cast<double>(w.bytes),
            fmt::format("workspace of step {} ({} '{}')\n{}", s, steps[s].at("op").get<std::string>(),
                        steps[s].at("node").get<std::string>(), bytes_words(static_cast<double>(w.bytes))),
            "workspace");
  return out + "<g class=\"labels\">" + labels.svg() + "</g></svg>\n";
}

}  // namespace sinter::convert
