#include <algorithm>
#include <cmath>

#include "gossamer/engine/lane.h"
#include "gossamer/engine/typed_span.h"
#include "gossamer/kernels/norm.h"

namespace gossamer {

double Lane::local_norm_squared(WorkerPool* pool) const {
  return visit_dtype(bucket_.dtype, [&]<class T>(T) {
    double sum = 0;
    for (const Segment& segment : bucket_.segments) {
      if (segment.group < 0) continue;
      const void* g = gradient_at(segment, segment.offset);
      sum += sum_squares(typed<T>(g, 0, segment.count), pool);
    }
    return sum;
  });
}

double Lane::mean_norm_squared(WorkerPool* pool) const {
  return visit_dtype(bucket_.dtype, [&]<class T>(T) {
    double sum = 0;
    for (const Piece& piece : current_->plan->pieces) {
      const Slice own{0, piece.offset, piece.count};
      const void* data =
          current_->exchanges[0]->at(piece.terms.empty() ? own : piece.terms[0].slice);
      sum += sum_squares(typed<T>(data, 0, piece.count), pool);
    }
    return sum;
  });
}

std::int64_t Lane::first_non_finite() const {
  return visit_dtype(bucket_.dtype, [&]<class T>(T) {
    for (const Segment& segment : bucket_.segments) {
      if (segment.group < 0) continue;
      const void* g = gradient_at(segment, segment.offset);
      const auto values = typed<T>(g, 0, segment.count);
      const auto found =
          std::ranges::find_if(values, [](T value) { return !std::isfinite(value); });
      if (found != values.end()) return segment.offset + (found - values.begin());
    }
    return std::int64_t{-1};
  });
}

double Lane::gradient_at(std::int64_t element) const {
  const auto segment = std::ranges::find_if(bucket_.segments, [&](const Segment& s) {
    return element >= s.offset && element < s.offset + s.count;
  });
  return visit_dtype(bucket_.dtype, [&]<class T>(T) {
    return static_cast<double>(*reinterpret_cast<const T*>(gradient_at(*segment, element)));
  });
}

}  // namespace gossamer
