// The network as a drawing: steps in layers from top to bottom, each below all of its operands.
//
// Edges that skip layers pass through invisible nodes, one in each layer between. Nodes of a layer are sorted
// by the mean place of their neighbours, a few times down and up; then each is moved towards its neighbours
// as far as the order and the gaps allow (least squares under order constraints: pool adjacent violators).
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "converter/report/columns.h"
#include "converter/report/page.h"
#include "converter/report/short_names.h"

namespace sinter::convert {
namespace {

constexpr double kBoxWidth = 190, kBoxHeight = 38, kRow = 66, kGap = 18, kThin = 10, kMargin = 14;
constexpr double kEdge = 1e12;                           // a place beyond every drawing
constexpr size_t kMostBends = 40000;                     // the most invisible nodes
constexpr size_t kNameLetters = 27, kTitleLetters = 24;  // the letters that fit a box
constexpr int kSortSweeps = 10, kPlaceSweeps = 24;

struct Box {
  std::string title, detail, hint, note, look, link;
  int layer = 0;
  double x = 0, width = kThin;
  std::vector<int> up, down;
  bool bend = true;
};

struct Wire {
  std::vector<int> path;  // boxes
  std::string hint, look;
};

class Drawing {
 public:
  explicit Drawing(const nlohmann::json& report) : report_(report) {
    add_boxes();
    assign_layers();
    bend_wires();
    sort_layers();
    place();
  }
  std::string svg() const;
  double start() const;

 private:
  void add_boxes();
  void assign_layers();
  void bend_wires();
  void sort_layers();
  void place();
  void settle(std::vector<int>& layer, const std::vector<double>& wanted);

  const nlohmann::json& report_;
  std::vector<Box> boxes_;
  std::vector<Wire> wires_;
  std::vector<std::vector<int>> layers_;
  double width_ = 0;
};

std::string shape_words(const nlohmann::json& value) {
  return value.at("type").get<std::string>() + value.at("shape").dump();
}

void Drawing::add_boxes() {
  const auto& values = report_.at("values");
  std::map<int, int> producer;  // the box that computes a value
  std::map<std::string, const nlohmann::json*> noise;
  if (report_.contains("noise"))
    for (const auto& row : report_.at("noise")) noise[row.at("held_as").get<std::string>()] = &row;
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i].at("kind") != "input") continue;
    Box box;
    box.title = values[i].at("name").get<std::string>(), box.detail = shape_words(values[i]);
    box.hint = "input " + box.title + "\n" + box.detail, box.look = "io", box.bend = false,
    box.width = kBoxWidth;
    producer[static_cast<int>(i)] = static_cast<int>(boxes_.size());
    boxes_.push_back(std::move(box));
  }
  std::map<std::string, std::string> reasons;
  if (report_.contains("quantized"))
    for (const auto& layer : report_.at("quantized").at("layers"))
      if (!layer.at("integer").get<bool>())
        reasons[layer.at("node").get<std::string>()] =
            layer.at("reason").get<std::string>() + " " + layer.value("detail", std::string());
  const auto& steps = report_.at("plan");
  const auto wire = [&](int from, int to, const nlohmann::json& value) {
    wires_.push_back({{from, to},
                      value.at("name").get<std::string>() + "\n" + shape_words(value),
                      type_class(value.at("type").get<std::string>())});
  };
  for (size_t s = 0; s < steps.size(); ++s) {
    const auto& step = steps[s];
    Box box;
    box.bend = false, box.width = kBoxWidth;
    const std::string op = step.at("op"), node = step.at("node");
    box.title = op;
    box.hint = fmt::format("step {}: {} '{}'", s, op, node);
    std::string look = "pi", first;
    for (const auto& id : step.at("outputs")) {
      if (id.get<int>() < 0) continue;
      const auto& v = values[id.get<size_t>()];
      if (first.empty()) first = v.at("name"), look = type_class(v.at("type").get<std::string>());
      box.hint += "\ngives " + v.at("name").get<std::string>() + " " + shape_words(v);
      if (const auto at = noise.find(v.at("name").get<std::string>()); at != noise.end()) {
        const nlohmann::json& row = *at->second;
        const double db = row.at("sqnr_db");
        box.note = db >= 999 ? "" : db <= -999 ? "lost" : fmt::format("{:.1f}", db);
        box.hint += fmt::format("\n{} SQNR", db_words(row.at("sqnr_db")));
        if (!row.at("own_sqnr_db").is_null())
          box.hint += fmt::format(", {} with exact operands", db_words(row.at("own_sqnr_db")));
        if (const std::string why = row.at("cause"); !why.empty()) box.hint += "\n" + why;
        look += " " + noise_class(row.at("sqnr_db"));
        box.link = row.at("id").get<std::string>();
      }
    }
    bool integers = false;
    for (const auto& id : step.at("inputs"))
      if (id.get<int>() >= 0) {
        const auto& v = values[id.get<size_t>()];
        integers |= v.at("kind") != "constant" && v.at("type") == "int8";
      }
    if (op == "Quantize" || op == "Dequantize" || op == "Cast")
      look += " cast";
    else if (integers && op.starts_with("Q") && look.starts_with("pf"))
      look.replace(0, 2, "p8");
    if (step.at("elided").get<bool>()) look += " free";
    if (look.find(" n") == std::string::npos) look += " nx";
    box.detail = first.empty() ? node : first;
    box.look = look;
    box.hint += fmt::format(
        "\nkernel: {}", step.at("elided").get<bool>() ? "none needed" : step.at("kernel").get<std::string>());
    if (const double count = step.value("multiply_adds", 0.0); count > 0)
      box.hint += fmt::format("\n{} multiply-adds", readable_count(count));
    if (const auto at = reasons.find(node); at != reasons.end() && look.starts_with("pf"))
      box.hint += "\nfloat: " + at->second;
    const int index = static_cast<int>(boxes_.size());
    boxes_.push_back(std::move(box));
    std::set<int> read;
    for (const auto& id : step.at("inputs"))
      if (const auto at = producer.find(id.get<int>());
          at != producer.end() && read.insert(id.get<int>()).second)
        wire(at->second, index, values[id.get<size_t>()]);
    for (const auto& id : step.at("outputs"))
      if (id.get<int>() >= 0) producer[id.get<int>()] = index;
  }
  for (size_t i = 0; i < values.size(); ++i) {
    const auto at = producer.find(static_cast<int>(i));
    if (values[i].at("kind") != "output" || at == producer.end()) continue;
    Box box;
    box.title = values[i].at("name").get<std::string>(), box.detail = shape_words(values[i]);
    box.hint = "output " + box.title + "\n" + box.detail, box.look = "io", box.bend = false,
    box.width = kBoxWidth;
    wire(at->second, static_cast<int>(boxes_.size()), values[i]);
    boxes_.push_back(std::move(box));
  }
}

void Drawing::assign_layers() {
  // Boxes are in order of execution; inputs move down to their first reader.
  std::vector<int> lowest(boxes_.size(), -1);
  for (const Wire& w : wires_) {  // wires into a box come before wires out of it
    int& layer = boxes_[static_cast<size_t>(w.path[1])].layer;
    layer = std::max(layer, boxes_[static_cast<size_t>(w.path[0])].layer + 1);
  }
  std::vector<bool> source(boxes_.size(), true);
  for (const Wire& w : wires_) source[static_cast<size_t>(w.path[1])] = false;
  for (const Wire& w : wires_) {
    auto& low = lowest[static_cast<size_t>(w.path[0])];
    const int reader = boxes_[static_cast<size_t>(w.path[1])].layer;
    low = low < 0 ? reader : std::min(low, reader);
  }
  for (size_t i = 0; i < boxes_.size(); ++i)
    if (source[i] && lowest[i] > 0) boxes_[i].layer = lowest[i] - 1;
}

void Drawing::bend_wires() {
  int deepest = 0;
  for (const Box& b : boxes_) deepest = std::max(deepest, b.layer);
  layers_.resize(static_cast<size_t>(deepest) + 1);
  for (size_t i = 0; i < boxes_.size(); ++i)
    layers_[static_cast<size_t>(boxes_[i].layer)].push_back(static_cast<int>(i));
  size_t bends = 0;
  for (Wire& w : wires_) {
    const int from = w.path[0], to = w.path[1];
    std::vector<int> path{from};
    const int first = boxes_[static_cast<size_t>(from)].layer + 1,
              last = boxes_[static_cast<size_t>(to)].layer;
    for (int layer = first; layer < last && bends < kMostBends; ++layer, ++bends) {
      Box bend;
      bend.layer = layer;
      layers_[static_cast<size_t>(layer)].push_back(static_cast<int>(boxes_.size()));
      path.push_back(static_cast<int>(boxes_.size()));
      boxes_.push_back(bend);
    }
    path.push_back(to);
    for (size_t i = 0; i + 1 < path.size(); ++i) {
      boxes_[static_cast<size_t>(path[i])].down.push_back(path[i + 1]);
      boxes_[static_cast<size_t>(path[i + 1])].up.push_back(path[i]);
    }
    w.path = path;
  }
}

void Drawing::sort_layers() {
  std::vector<double> place(boxes_.size(), 0);
  const auto number = [&](const std::vector<int>& layer) {
    for (size_t i = 0; i < layer.size(); ++i)
      place[static_cast<size_t>(layer[i])] =
          static_cast<double>(i) - static_cast<double>(layer.size() - 1) / 2;
  };
  for (const auto& layer : layers_) number(layer);
  for (int sweep = 0; sweep < kSortSweeps; ++sweep) {
    const bool down = sweep % 2 == 0;
    for (size_t k = 0; k < layers_.size(); ++k) {
      std::vector<int>& layer = layers_[down ? k : layers_.size() - 1 - k];
      std::map<int, double> mean;
      for (const int i : layer) {
        const Box& b = boxes_[static_cast<size_t>(i)];
        const std::vector<int>& others = down ? b.up : b.down;
        double sum = 0;
        for (const int o : others) sum += place[static_cast<size_t>(o)];
        mean[i] = others.empty() ? place[static_cast<size_t>(i)] : sum / static_cast<double>(others.size());
      }
      std::stable_sort(layer.begin(), layer.end(), [&](int a, int b) { return mean[a] < mean[b]; });
      number(layer);
    }
  }
}

// Moves the centres as near to the desired ones as the order and the gaps allow.
void Drawing::settle(std::vector<int>& layer, const std::vector<double>& wanted) {
  struct Pool {
    double sum;
    size_t count;
    double mean() const { return sum / static_cast<double>(count); }
  };
  std::vector<double> shift(layer.size(), 0);
  for (size_t i = 1; i < layer.size(); ++i)
    shift[i] =
        shift[i - 1] + kGap +
        (boxes_[static_cast<size_t>(layer[i - 1])].width + boxes_[static_cast<size_t>(layer[i])].width) / 2;
  std::vector<Pool> pools;
  for (size_t i = 0; i < layer.size(); ++i) {
    pools.push_back({wanted[i] - shift[i], 1});
    while (pools.size() > 1 && pools[pools.size() - 2].mean() > pools.back().mean()) {
      pools[pools.size() - 2].sum += pools.back().sum;
      pools[pools.size() - 2].count += pools.back().count;
      pools.pop_back();
    }
  }
  size_t i = 0;
  for (const Pool& pool : pools)
    for (size_t k = 0; k < pool.count; ++k, ++i)
      boxes_[static_cast<size_t>(layer[i])].x = pool.mean() + shift[i];
}

void Drawing::place() {
  for (auto& layer : layers_) settle(layer, std::vector<double>(layer.size(), 0));
  for (int sweep = 0; sweep < kPlaceSweeps; ++sweep) {
    const bool down = sweep % 2 == 0;
    for (size_t k = 0; k < layers_.size(); ++k) {
      std::vector<int>& layer = layers_[down ? k : layers_.size() - 1 - k];
      std::vector<double> wanted;
      for (const int i : layer) {
        const Box& b = boxes_[static_cast<size_t>(i)];
        const std::vector<int>& others =
            (down ? b.up : b.down).empty() ? (down ? b.down : b.up) : (down ? b.up : b.down);
        double sum = 0;
        for (const int o : others) sum += boxes_[static_cast<size_t>(o)].x;
        wanted.push_back(others.empty() ? b.x : sum / static_cast<double>(others.size()));
      }
      settle(layer, wanted);
    }
  }
  double low = kEdge, high = -kEdge;
  for (const Box& b : boxes_)
    low = std::min(low, b.x - b.width / 2), high = std::max(high, b.x + b.width / 2);
  for (Box& b : boxes_) b.x += kMargin - low;
  width_ = high - low + 2 * kMargin;
}

// Returns the middle of the first layer, where a reader starts.
double Drawing::start() const {
  double low = kEdge, high = -kEdge;
  for (const Box& b : boxes_)
    if (!b.bend && b.layer == 0) low = std::min(low, b.x), high = std::max(high, b.x);
  return low <= high ? (low + high) / 2 : width_ / 2;
}

std::string Drawing::svg() const {
  const double height = static_cast<double>(layers_.size()) * kRow + 2 * kMargin - (kRow - kBoxHeight);
  std::string out = fmt::format(
      "<svg class=\"network\" id=\"network-svg\" role=\"img\" "
      "aria-label=\"the "
      "network\" viewBox=\"0 0 {:.0f} {:.0f}\" width=\"{:.0f}\" height=\"{:.0f}\" data-start=\"{:.0f}\">\n",
      width_, height, width_, height, start());
  std::vector<std::string> names;
  for (const Box& b : boxes_) names.push_back(b.detail);
  names = short_names(names, kNameLetters);
  std::vector<std::string> titles;
  for (const Box& b : boxes_) titles.push_back(b.title);
  titles = short_names(titles, kTitleLetters);
  const auto top = [](const Box& b) { return kMargin + b.layer * kRow; };
  for (const Wire& w : wires_) {
    std::string d;
    double x0 = 0, y0 = 0;
    for (size_t i = 0; i < w.path.size(); ++i) {
      const Box& b = boxes_[static_cast<size_t>(w.path[i])];
      const double x = b.x, y = top(b);
      if (i == 0) {
        x0 = x, y0 = y + kBoxHeight;
        d = fmt::format("M{:.0f} {:.0f}", x0, y0);
        continue;
      }
      const double middle = (y0 + y) / 2;
      d += fmt::format("C{:.0f} {:.0f} {:.0f} {:.0f} {:.0f} {:.0f}", x0, middle, x, middle, x, y);
      x0 = x, y0 = y;
      if (b.bend) y0 = y + kBoxHeight, d += fmt::format("L{:.0f} {:.0f}", x0, y0);
    }
    out += fmt::format("<path class=\"wire {}\" d=\"{}\"><title>{}</title></path>\n", w.look, d,
                       escaped(w.hint));
  }
  for (size_t i = 0; i < boxes_.size(); ++i) {
    const Box& b = boxes_[i];
    if (b.bend) continue;
    const double x = b.x - b.width / 2, y = top(b);
    if (!b.link.empty()) out += fmt::format("<a href=\"#{}\">", b.link);
    out += fmt::format(
        "<g class=\"box {}\"><title>{}</title><rect x=\"{:.0f}\" y=\"{:.0f}\" width=\"{:.0f}\" "
        "height=\"{:.0f}\" "
        "rx=\"{}\"/><text class=\"op\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text><text class=\"name\" x=\"{:.0f}\" "
        "y=\"{:.0f}\">{}</text>",
        b.look, escaped(b.hint), x, y, b.width, kBoxHeight, b.look == "io" ? 18 : 5, x + 10, y + 16,
        escaped(b.note.empty() ? titles[i] : shortened(titles[i], 16)), x + 10, y + 30, escaped(names[i]));
    if (!b.note.empty())
      out += fmt::format("<text class=\"db\" x=\"{:.0f}\" y=\"{:.0f}\">{}</text>", x + b.width - 8, y + 16,
                         escaped(b.note));
    out += b.link.empty() ? "</g>\n" : "</g></a>\n";
  }
  return out + "</svg>\n";
}

}  // namespace

std::string network_drawing(const nlohmann::json& report) {
  return report.contains("plan") && !report.at("plan").empty() ? Drawing(report).svg() : std::string();
}

}  // namespace sinter::convert
