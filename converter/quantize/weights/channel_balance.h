// How much noise int8 is expected to make of the channels between products, and the scales that make least.
//
// A tensor's step follows from its widest channel, a row's from its largest weight. With s the scale that a
// channel is divided by, rounding its tensor costs a reader W^2 s^2 A^2 / (12 * 255^2), A the scaled range of
// the tensor; rounding the reader's weights costs x^2 / s^2 R^2 / (12 * 127^2), R the largest scaled weight
// of a row. Each row counts in proportion to what it gives, so that no later scale changes the balance.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "converter/quantize/weights/channel_scales.h"

namespace sinter::convert {

class ChannelBalance {
 public:
  ChannelBalance(const Graph& graph, const ChannelScales& channels, const Observations& seen);

  struct Group {
    double range = 0;     // its largest value over that of the tensor, in any of its tensors
    double headroom = 1;  // what may come beyond what was seen, as a factor
    double column = 0;    // root mean square of its largest weight in a row over that row's largest
    int dense = 0;        // readers: products that sum over channels, those of them that are fully connected,
    int connected = 0;    // and depthwise convolutions
    int depthwise = 0;
  };
  const std::vector<Group>& groups() const { return groups_; }

  // The best scales for those groups that may change: range^alpha / column^(1 - alpha), for the best of these
  // alphas. Parts of the graph whose noise falls by less than `gain` (a factor) keep theirs.
  std::vector<double> best(const std::vector<bool>& may_change, const std::vector<double>& alphas,
                           double gain) const;

 private:
  struct Channel {
    int group;
    double low, high;
  };
  using Tensor = std::vector<Channel>;
  // A group of the columns that a row has, and the number of its weights times the input's mean square.
  struct Column {
    int group;
    double power;
  };
  using Columns = std::vector<Column>;
  // Thousands for each product: what its rows have in common is not in each.
  struct Row {
    double share;  // over what it gives
    const Columns* columns;
    std::vector<float> largest;  // of the weights, which are float32, by column
  };
  // Groups that depend on each other's scales.
  struct Part {
    std::vector<int> groups;
    std::vector<const Tensor*> tensors;
    std::vector<const Row*> rows;
  };
  void read(const Graph& graph, const Node& node, const Observations& seen);
  void look(const Graph& graph, const Observations& seen, ValueId id);
  std::vector<Part> parts() const;
  double noise(const Part& part, const std::vector<double>& scales) const;

  const ChannelScales& channels_;
  std::vector<Group> groups_;
  std::vector<double> importance_;
  std::vector<Tensor> tensors_;
  std::vector<std::unique_ptr<const Columns>> columns_;
  std::vector<Row> rows_;
};

}  // namespace sinter::convert
