#pragma once
/// Batches by number, kept in memory or made whenever they are asked for.

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "gossamer/base/errors.h"
#include "gossamer/torch/modules/model.h"

namespace gossamer {

class BatchList {
 public:
  using Make = std::function<Batch(std::size_t k)>;

  BatchList() = default;
  /// `make` must be pure and may be called from many threads at once.
  BatchList(std::size_t count, Make make) : count_(count), make_(std::move(make)) {}
  BatchList(std::vector<Batch> batches) : count_(batches.size()) {
    make_ = [kept = std::make_shared<const std::vector<Batch>>(std::move(batches))](std::size_t k) {
      return (*kept)[k];
    };
  }

  std::size_t size() const { return count_; }
  Batch operator[](std::size_t k) const {
    GOSSAMER_ASSERT(k < count_);
    return make_(k);
  }

 private:
  std::size_t count_ = 0;
  Make make_;
};

}  // namespace gossamer
