#include "gossamer/torch/tensors/replica.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "gossamer/base/index.h"
#include "gossamer/engine/tags.h"

namespace gossamer {
namespace {

bool has_rank(const Seating& seating, int rank) {
  for (int position = 0; position < seating.workers(); ++position) {
    if (seating.rank_at(position) == rank) return true;
  }
  return false;
}

/// By position of those that are left: whether it is new.
std::vector<char> new_ones(Collectives& collectives, bool is_new) {
  const Seating& left = collectives.circle();
  std::vector<double> own(at(left.workers()), 0.);
  own[at(left.position)] = is_new ? 1 : 0;
  std::vector<double> means(own.size());
  collectives.mean_among_those_left(DType::f64, own.data(), means.data(), std::ssize(own),
                                    stream::kRows);
  std::vector<char> are_new;
  for (const double mean : means) are_new.push_back(mean > 0 ? 1 : 0);
  return are_new;
}

std::string described(const std::vector<at::Tensor>& tensors) {
  std::string text;
  for (const at::Tensor& tensor : tensors) {
    text += c10::str(tensor.scalar_type(), tensor.sizes(), ' ');
  }
  return text;
}

std::string packed(const std::vector<at::Tensor>& tensors) {
  std::string all;
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor values = tensor.detach().cpu().contiguous();
    all.append(static_cast<const char*>(values.const_data_ptr()), values.nbytes());
  }
  return all;
}

void unpack(const std::string& all, const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  std::size_t begin = 0;
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor values = at::empty(tensor.sizes(), at::dtype(tensor.scalar_type()));
    std::memcpy(values.mutable_data_ptr(), all.data() + begin, values.nbytes());
    begin += values.nbytes();
    tensor.detach().copy_(values);
  }
}

void take(Collectives& collectives, int root, const ReplicaState& state) {
  const std::string what = collectives.receive_text(root);
  const std::string values = collectives.receive_text(root, 2);
  const std::vector<at::Tensor> tensors = state.tensors();
  if (described(tensors) != what) {
    throw std::runtime_error(
        "[Gossip] rank " + std::to_string(collectives.rank()) +
        " has come back with other parameters or another optimizer than rank " +
        std::to_string(root) + " has; start the same program");
  }
  unpack(values, tensors);
  state.took(tensors);
}

}  // namespace

ReplicaShare catch_up(Collectives& collectives, const Seating& before, bool is_new,
                      const ReplicaState& state) {
  const Seating& left = collectives.circle();
  bool are_more = false;
  for (int position = 0; position < left.workers(); ++position) {
    are_more = are_more || !has_rank(before, left.rank_at(position));
  }
  if (!are_more) return {};
  const std::vector<char> are_new = new_ones(collectives, is_new);
  const auto old = std::ranges::find(are_new, 0);
  const auto first = old == are_new.end() ? 0 : static_cast<int>(old - are_new.begin());
  if (first == left.position) {
    const std::vector<at::Tensor> tensors = state.tensors();
    const std::string what = described(tensors);
    const std::string values = packed(tensors);
    for (int position = 0; position < left.workers(); ++position) {
      if (position == first || are_new[at(position)] == 0) continue;
      collectives.send_text(left.rank_at(position), what);
      collectives.send_text(left.rank_at(position), values, 2);
    }
  } else if (is_new) {
    take(collectives, left.rank_at(first), state);
  }
  const auto counted = std::max<std::int64_t>(1, std::ranges::count(are_new, 0));
  return {.counts = !is_new || first == left.position,
          .scale = static_cast<double>(left.workers()) / static_cast<double>(counted)};
}

}  // namespace gossamer
