// The scales that networks for pictures are trained with, and data brought from one to another.
#pragma once

#include <string>
#include <vector>

#include "converter/quantize/samples/samples.h"

namespace sinter::convert {

// number = (pixel - mean) * scale, of pixels from 0 to 255.
struct UsualScale {
  const char* name;
  const char* flags;
  double mean, scale;
};

// The smallest and the largest number of data; low above high: there is none.
struct Reach {
  double low, high;
};
Reach reach_of(const std::vector<Sample>& samples);  // of float32 arrays

// The usual scales but the one that data of this reach has. None: it has none of them.
std::vector<const UsualScale*> other_scales(Reach reach);
// The samples' float32 arrays on another scale than that of their reach.
std::vector<Sample> rescaled(const std::vector<Sample>& samples, Reach reach, const UsualScale& to);
// The samples' float32 arrays times a number.
std::vector<Sample> multiplied(const std::vector<Sample>& samples, double factor);
// "0 to 1 (pictures: --scale 1/255), or ...".
std::string names_of_scales(const std::vector<const UsualScale*>& scales);

}  // namespace sinter::convert
