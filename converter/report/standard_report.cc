#include "converter/report/standard_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "converter/quantize/report/low_sqnr_outputs.h"

namespace sinter::convert {
namespace {

std::string counted(size_t count, const char* one, const char* many) {
  return fmt::format("{} {}", count, count == 1 ? one : many);
}

// Returns what runtimes compute otherwise than the integer operations; empty: nothing.
std::string differences(const StandardSummary& s) {
  std::string text;
  const auto add = [&](const std::string& line) { text += (text.empty() ? "" : "; ") + line; };
  if (s.tables > 0)
    add(fmt::format("{} of one value, which are tables of integers here, stay float operations between pairs",
                    counted(s.tables, "function", "functions")));
  if (s.wide > 0) add(counted(s.wide, "value of int16 needs opset 21", "values of int16 need opset 21"));
  if (s.recurrent > 0)
    add(fmt::format("{} in float with weights of 8 bits",
                    counted(s.recurrent, "recurrent layer computes", "recurrent layers compute")));
  if (const size_t count = s.form.float_biases.size(); count > 0)
    add(fmt::format("{} in float, because no int32 holds it in steps of its product",
                    counted(count, "bias stays", "biases stay")));
  return text;
}

}  // namespace

nlohmann::json to_json(const StandardSummary& s) {
  nlohmann::json json = {{"pairs", s.form.pairs},
                         {"integer_weights", s.form.weights},
                         {"integer_biases", s.form.biases},
                         {"float_biases", s.form.float_biases},
                         {"tables", s.tables},
                         {"int16_values", s.wide},
                         {"float_recurrent_layers", s.recurrent},
                         {"agreement", nlohmann::json::array()}};
  for (const OutputNoise& o : s.agreement) {
    json["agreement"].push_back({{"name", o.name}, {"sqnr_db", o.db}});
    if (o.equal) json["agreement"].back() = {{"name", o.name}, {"equal", *o.equal}};
  }
  return json;
}

std::string to_text(const StandardSummary& s) {
  if (s.form.pairs == 0 && s.agreement.empty()) return {};
  std::string text =
      fmt::format("onnx      {} by QuantizeLinear and DequantizeLinear, {} as int8, {} as int32\n",
                  counted(s.form.pairs, "value", "values"), counted(s.form.weights, "operand", "operands"),
                  counted(s.form.biases, "bias", "biases"));
  if (const double db = worst_of(s.agreement); !s.agreement.empty())
    text += db >= 999
                ? "          gives what the measured integer operations give\n"
                : fmt::format(
                      "          differs from the measured integer operations by roundings: {:.1f} dB in the "
                      "worst output\n",
                      db);
  if (const std::string other = differences(s); !other.empty()) text += "          " + other + "\n";
  return text;
}

}  // namespace sinter::convert
