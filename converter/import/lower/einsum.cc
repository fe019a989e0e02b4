// Einsum of any equation: operands are combined from left to right, each pair by one product.
#include <algorithm>
#include <map>

#include "converter/import/lowering.h"

namespace sinter::convert {
namespace {

// An operand with a label per axis. Labels are letters; the axes behind an ellipsis get numbers from 1000 on,
// counted from the right so that they align.
struct Labelled {
  ValueId value = kUnknown;
  std::vector<int> labels;
};

bool has(const std::vector<int>& labels, int label) {
  return std::find(labels.begin(), labels.end(), label) != labels.end();
}

class Einsum {
 public:
  explicit Einsum(NodeLowering& n) : n_(n) {}

  bool lower() {
    std::string equation = n_.attr_string("equation", "");
    equation.erase(std::remove(equation.begin(), equation.end(), ' '), equation.end());
    const size_t arrow = equation.find("->");
    const std::string left = equation.substr(0, arrow);
    std::vector<std::string> terms{""};
    for (const char c : left) {
      if (c == ',')
        terms.emplace_back();
      else
        terms.back() += c;
    }
    if (terms.size() != n_.input_count())
      return n_.refuse("equation '{}' has {} terms for {} operands", equation, terms.size(),
                       n_.input_count());
    std::vector<Labelled> operands;
    std::map<int, int> written;  // how often each label is in the equation
    for (size_t i = 0; i < terms.size(); ++i) {
      Labelled op{n_.input(i), {}};
      if (op.value < 0 || !parse(terms[i], n_.rank(op.value), &op.labels)) return false;
      for (const int label : op.labels) ++written[label];
      if (!diagonal(op)) return false;
      operands.push_back(op);
    }
    if (!sizes(operands)) return false;
    std::vector<int> result;
    if (arrow == std::string::npos)
      result = implicit(written);
    else if (!parse(equation.substr(arrow + 2), -1, &result))
      return false;
    for (const int label : result)
      if (size_.count(label) == 0 || std::count(result.begin(), result.end(), label) > 1)
        return n_.refuse("equation '{}' has a result axis that no operand has, or twice", equation);
    Labelled sum = operands[0];
    for (size_t i = 1; i < operands.size(); ++i) {
      std::vector<int> needed = result;
      for (size_t later = i + 1; later < operands.size(); ++later)
        needed.insert(needed.end(), operands[later].labels.begin(), operands[later].labels.end());
      sum = product(sum, operands[i], needed);
    }
    sum = reduce(sum, result);
    return n_.output(0, ordered(sum, result));
  }

 private:
  // rank -1: the result, whose ellipsis covers the longest of the operands.
  bool parse(const std::string& term, int64_t rank, std::vector<int>* labels) {
    int64_t letters = 0;
    for (const char c : term) letters += c != '.';
    const size_t dots = term.find("...");
    const int64_t hidden = dots == std::string::npos ? 0 : rank < 0 ? ellipsis_ : rank - letters;
    if (hidden < 0 || (rank >= 0 && letters + hidden != rank))
      return n_.refuse_shapes("term '{}' does not fit an operand of rank {}", term, rank);
    ellipsis_ = std::max(ellipsis_, hidden);
    for (size_t i = 0; i < term.size(); ++i) {
      if (i == dots) {
        for (int64_t d = 0; d < hidden; ++d) labels->push_back(1000 + static_cast<int>(hidden - 1 - d));
        i += 2;
      } else if (std::isalpha(static_cast<unsigned char>(term[i])) != 0) {
        labels->push_back(term[i]);
      } else {
        return n_.refuse("term '{}' has a character that is not a letter", term);
      }
    }
    return true;
  }

  // A label twice in one term takes the diagonal of the two axes.
  bool diagonal(Labelled& op) {
    for (size_t i = 0; i < op.labels.size(); ++i) {
      for (size_t j = i + 1; j < op.labels.size(); ++j) {
        if (op.labels[i] != op.labels[j]) continue;
        const Dims d = n_.dims(op.value);
        if (d[i] != d[j]) return n_.refuse("a diagonal of axes of {} and {}", d[i], d[j]);
        std::vector<int64_t> perm;
        std::vector<int> labels;
        Dims flat;
        for (size_t k = 0; k < d.size(); ++k)
          if (k != i && k != j)
            perm.push_back(static_cast<int64_t>(k)), labels.push_back(op.labels[k]), flat.push_back(d[k]);
        labels.push_back(op.labels[i]);
        perm.insert(perm.end(), {static_cast<int64_t>(i), static_cast<int64_t>(j)});
        flat.push_back(d[i] * d[i]);
        const ValueId flattened = n_.reshape(n_.transpose(op.value, perm), flat);
        op.value = n_.slice(flattened, static_cast<int64_t>(flat.size()) - 1, 0, d[i], d[i] + 1);
        op.labels = labels;
        return op.value >= 0 && diagonal(op);
      }
    }
    return true;
  }

  bool sizes(const std::vector<Labelled>& operands) {
    for (const Labelled& op : operands)
      for (size_t i = 0; i < op.labels.size(); ++i) {
        const int64_t d = n_.dims(op.value)[i];
        const auto [it, fresh] = size_.emplace(op.labels[i], d);
        if (fresh || it->second == d || d == 1) continue;
        if (it->second != 1)
          return n_.refuse("an axis has {} elements in one operand and {} in another", it->second, d);
        it->second = d;
      }
    return true;
  }

  // The result's labels without "->": the ellipsis, then the letters that are written once (a diagonal's are
  // written twice), in alphabetical order, capitals first.
  std::vector<int> implicit(const std::map<int, int>& written) const {
    std::vector<int> result;
    for (int64_t d = ellipsis_; d-- > 0;) result.push_back(1000 + static_cast<int>(d));
    for (const auto& [label, times] : written)
      if (label < 1000 && times == 1) result.push_back(label);
    return result;
  }

  // Sums over the axes that are not in the result.
  Labelled reduce(const Labelled& op, const std::vector<int>& needed) {
    ReduceAttrs a;
    a.fn = static_cast<int64_t>(ReduceFn::kSum);
    a.keepdims = 0;
    Labelled out{op.value, {}};
    for (size_t i = 0; i < op.labels.size(); ++i) {
      if (has(needed, op.labels[i]))
        out.labels.push_back(op.labels[i]);
      else
        a.axes.push(static_cast<int64_t>(i));
    }
    if (!a.axes.empty()) out.value = n_.emit(a, {op.value});
    return out;
  }

  // The axes in the given order; those that are 1 where others have more are repeated.
  ValueId ordered(const Labelled& op, const std::vector<int>& labels) {
    std::vector<int64_t> perm;
    Dims full;
    for (const int label : labels) {
      perm.push_back(std::find(op.labels.begin(), op.labels.end(), label) - op.labels.begin());
      full.push_back(size_.at(label));
    }
    return n_.broadcast(n_.transpose(op.value, perm), full);
  }

  int64_t extent(const std::vector<int>& labels) const {
    int64_t n = 1;
    for (const int label : labels) n *= size_.at(label);
    return n;
  }

  Labelled product(Labelled a, Labelled b, const std::vector<int>& needed) {
    std::vector<int> keep_a = needed, keep_b = needed;
    keep_a.insert(keep_a.end(), b.labels.begin(), b.labels.end());
    keep_b.insert(keep_b.end(), a.labels.begin(), a.labels.end());
    a = reduce(a, keep_a), b = reduce(b, keep_b);
    std::vector<int> both, summed, only_a, only_b;
    for (const int label : a.labels)
      (!has(b.labels, label) ? only_a : has(needed, label) ? both : summed).push_back(label);
    for (const int label : b.labels)
      if (!has(a.labels, label)) only_b.push_back(label);
    Labelled out{kUnknown, both};
    out.labels.insert(out.labels.end(), only_a.begin(), only_a.end());
    out.labels.insert(out.labels.end(), only_b.begin(), only_b.end());
    const auto joined = [](std::initializer_list<std::vector<int>> lists) {
      std::vector<int> all;
      for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
      return all;
    };
    Dims full;
    for (const int label : out.labels) full.push_back(size_.at(label));
    if (summed.empty() && out.labels.size() <= kMaxRank) {
      // Nothing is summed: an element-wise product with axes of 1 where an operand lacks one.
      ValueId x = ordered(a, joined({both, only_a})), y = ordered(b, joined({both, only_b}));
      Dims dx, dy;
      for (const int label : both) dx.push_back(size_.at(label)), dy.push_back(size_.at(label));
      for (const int label : only_a) dx.push_back(size_.at(label)), dy.push_back(1);
      for (const int label : only_b) dx.push_back(1), dy.push_back(size_.at(label));
      out.value = n_.mul(n_.reshape(x, dx), n_.reshape(y, dy));
      return out;
    }
    const ValueId x = n_.reshape(ordered(a, joined({both, only_a, summed})),
                                 {extent(both), extent(only_a), extent(summed)});
    const ValueId y = n_.reshape(ordered(b, joined({both, only_b, summed})),
                                 {extent(both), extent(only_b), extent(summed)});
    out.value = n_.reshape(n_.emit(MatMulAttrs{0, 1}, {x, y}), full);
    return out;
  }

  NodeLowering& n_;
  int64_t ellipsis_ = 0;
  std::map<int, int64_t> size_;
};

// Einsum-12.
bool lower_einsum(NodeLowering& n) { return Einsum(n).lower(); }

}  // namespace

std::span<const OnnxOperator> einsum_rules() {
  static constexpr OnnxOperator kRules[] = {
      {"Einsum", 12, lower_einsum, "N+", kInt32Sums},
  };
  return kRules;
}

}  // namespace sinter::convert
