#include "converter/emit/debug_lines.h"

#include <zlib.h>

#include <cstring>
#include <map>
#include <new>
#include <nlohmann/json.hpp>
#include <sstream>
#include <unordered_map>
#include <vector>

#include "converter/diagnostics/errors.h"
#include "runtime/model/names.h"

namespace sinter::convert {
namespace {

using nlohmann::json;

constexpr uint64_t kMostText = uint64_t{1} << 30;
constexpr size_t kSizeBytes = 8;

[[noreturn]] void damaged() { throw DataError("the file's debug data is damaged"); }

int64_t integer(const json& value) {
  if (!value.is_number_integer()) damaged();
  return value.get<int64_t>();
}

std::string to_text(const json& value) { return value.dump(-1, ' ', false, json::error_handler_t::replace); }

// Numbered values: the file's names, then the values that are added.
class Numbers {
 public:
  explicit Numbers(const fb::Model& model) {
    for (uint32_t p = 0; p < detail::length(model.programs()); ++p) {
      const fb::Program& program = *model.programs()->Get(p);
      for (uint32_t v = 0; v < detail::length(program.values()); ++v)
        number(detail::value_name(model, program, v));
      const uint32_t steps = detail::length(program.steps()) + detail::length(program.prepare());
      for (uint32_t s = 0; s < steps; ++s) number(detail::step_name(model, program, s));
    }
    names_ = values_.size();
  }
  int64_t number(const json& value) {
    const auto [at, fresh] = numbers_.emplace(to_text(value), values_.size());
    if (fresh) add(value);
    return static_cast<int64_t>(at->second);
  }
  void add(json value) {
    sizes_.push_back(to_text(value).size());
    values_.push_back(std::move(value));
  }
  // Returns the values behind the names.
  json added() const {
    json list = json::array();
    for (size_t i = names_; i < values_.size(); ++i) list.push_back(values_[i]);
    return list;
  }
  // Returns a value. Throws DataError where it does not exist, or where the bytes read exceed kMostText.
  const json& value(int64_t number) {
    if (number < 0 || static_cast<uint64_t>(number) >= values_.size()) damaged();
    read_ += sizes_[static_cast<size_t>(number)];
    if (read_ > kMostText) damaged();
    return values_[static_cast<size_t>(number)];
  }

 private:
  std::vector<json> values_;
  std::vector<uint64_t> sizes_;
  std::unordered_map<std::string, size_t> numbers_;
  size_t names_ = 0;
  uint64_t read_ = 0;
};

json columns_of(const std::string& lines, const fb::Model& model) {
  Numbers numbers(model);
  std::map<json, size_t> known;
  json forms = json::array(), order = json::array();
  std::vector<std::vector<json>> cells;  // by form and key
  std::vector<std::vector<int64_t>> last;
  std::istringstream in(lines);
  for (std::string line; std::getline(in, line);) {
    const json object = json::parse(line);
    json keys = json::array();
    for (const auto& [key, value] : object.items()) keys.push_back(key);
    const auto [at, fresh] = known.emplace(keys, known.size());
    if (fresh) {
      forms.push_back(keys);
      cells.emplace_back(keys.size(), json::array());
      last.emplace_back(keys.size(), -1);
    }
    const size_t form = at->second;
    order.push_back(form);
    size_t k = 0;
    for (const auto& [key, value] : object.items()) {
      const auto step = [&](const json& v) {
        const int64_t number = numbers.number(v), before = last[form][k];
        last[form][k] = number;
        return number - before;
      };
      json cell;
      if (value.is_array()) {
        cell = json::array();
        for (const json& item : value) cell.push_back(step(item));
      } else {
        cell = step(value);
      }
      cells[form][k++].push_back(std::move(cell));
    }
  }
  json all = json::array();
  for (std::vector<json>& form : cells)
    for (json& column : form) all.push_back(std::move(column));
  return {{"values", numbers.added()}, {"forms", forms}, {"lines", order}, {"cells", all}};
}

json objects_of(const json& columns, const fb::Model& model) {
  const auto list = [](const json& in, auto key) -> const json& {
    const json& found = in.at(key);
    if (!found.is_array()) damaged();
    return found;
  };
  Numbers numbers(model);
  for (const json& value : list(columns, "values")) numbers.add(value);
  const json &forms = list(columns, "forms"), &cells = list(columns, "cells");
  std::vector<size_t> first(forms.size()), rows(forms.size(), 0);  // each form's column, and its lines so far
  for (size_t f = 0, column = 0; f < forms.size(); ++f) first[f] = column, column += list(forms, f).size();
  std::vector<int64_t> last(cells.size(), -1);
  json objects = json::array();
  for (const json& line : list(columns, "lines")) {
    const auto form = static_cast<size_t>(integer(line));
    const json& keys = list(forms, form);
    json object = json::object();
    for (size_t k = 0; k < keys.size(); ++k) {
      const size_t column = first[form] + k;
      const json& cell = list(cells, column).at(rows[form]);
      const auto value = [&](const json& step) -> const json& {
        if (__builtin_add_overflow(last[column], integer(step), &last[column])) damaged();
        return numbers.value(last[column]);
      };
      json& field = object[keys[k].get<std::string>()];
      if (!cell.is_array()) {
        field = value(cell);
        continue;
      }
      field = json::array();
      for (const json& step : cell) field.push_back(value(step));
    }
    ++rows[form];
    objects.push_back(std::move(object));
  }
  return objects;
}

}  // namespace

Bytes debug_segment(const std::string& lines, const fb::Model& model) {
  if (lines.empty()) return {};
  const std::string text = to_text(columns_of(lines, model));
  uLongf length = compressBound(text.size());
  Bytes out(kSizeBytes + length);
  const uint64_t size = text.size();
  std::memcpy(out.data(), &size, kSizeBytes);
  if (compress2(reinterpret_cast<Bytef*>(out.data() + kSizeBytes), &length,
                reinterpret_cast<const Bytef*>(text.data()), text.size(), Z_BEST_COMPRESSION) != Z_OK)
    throw std::bad_alloc();
  out.resize(kSizeBytes + length);
  return out;
}

json debug_objects(std::span<const std::byte> segment, const fb::Model& model) {
  if (segment.size() < kSizeBytes) return json::array();
  uint64_t size = 0;
  std::memcpy(&size, segment.data(), kSizeBytes);
  if (size > kMostText || size / 1100 > segment.size()) damaged();
  std::string text(size, '\0');
  uLongf length = size;
  if (uncompress(reinterpret_cast<Bytef*>(text.data()), &length,
                 reinterpret_cast<const Bytef*>(segment.data() + kSizeBytes),
                 segment.size() - kSizeBytes) != Z_OK ||
      length != size)
    damaged();
  const json whole = json::parse(text, nullptr, false);
  if (whole.is_object() && whole.contains("forms")) {
    try {
      return objects_of(whole, model);
    } catch (const json::exception&) {
      damaged();
    }
  }
  json objects = json::array();
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    json object = json::parse(line, nullptr, false);
    if (object.is_object()) objects.push_back(std::move(object));
  }
  return objects;
}

}  // namespace sinter::convert
