#include "gossamer/torch/tensors/replica.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "gossamer/engine/tags.h"

namespace gossamer {
namespace {

/// By place among those that are left: whether it is new.
std::vector<char> new_ones(Collectives& collectives, std::size_t count, std::size_t own,
                           bool is_new) {
  std::vector<double> said(count, 0.);
  said[own] = is_new ? 1 : 0;
  std::vector<double> means(count);
  collectives.mean_among_those_left(DType::f64, said.data(), means.data(), std::ssize(said),
                                    stream::kRows);
  std::vector<char> are_new;
  for (const double mean : means) are_new.push_back(mean > 0 ? 1 : 0);
  return are_new;
}

/// A line for all of them.
std::string described(const std::vector<at::Tensor>& tensors) {
  std::string text;
  for (const at::Tensor& tensor : tensors) {
    text += c10::str(tensor.scalar_type(), tensor.sizes(), ' ');
  }
  return text + '\n';
}

std::string packed(const std::vector<at::Tensor>& tensors) {
  std::string all = described(tensors);
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor values = tensor.detach().cpu().contiguous();
    all.append(static_cast<const char*>(values.const_data_ptr()), values.nbytes());
  }
  return all;
}

void unpack(const std::string& all, const std::vector<at::Tensor>& tensors) {
  const at::NoGradGuard no_grad;
  std::size_t begin = described(tensors).size();
  for (const at::Tensor& tensor : tensors) {
    const at::Tensor values = at::empty(tensor.sizes(), at::dtype(tensor.scalar_type()));
    std::memcpy(values.mutable_data_ptr(), all.data() + begin, values.nbytes());
    begin += values.nbytes();
    tensor.detach().copy_(values);
  }
}

void take(Collectives& collectives, int root, const ReplicaState& state) {
  const std::string all = collectives.receive_text(root);
  const std::vector<at::Tensor> tensors = state.tensors();
  if (!all.starts_with(described(tensors))) {
    throw std::runtime_error(
        "[Gossip] rank " + std::to_string(collectives.rank()) +
        " has come back with other parameters or another optimizer than rank " +
        std::to_string(root) + " has; start the same program");
  }
  unpack(all, tensors);
  state.took(tensors);
}

}  // namespace

ReplicaShare catch_up(Collectives& collectives, const Seating& before, bool is_new,
                      const ReplicaState& state) {
  const std::vector<int> left = collectives.took_part();
  if (std::ranges::all_of(left, [&](int rank) { return has_rank(before, rank); })) return {};
  const auto own = std::ranges::find(left, collectives.rank()) - left.begin();
  const auto are_new = new_ones(collectives, left.size(), static_cast<std::size_t>(own), is_new);
  const auto old = std::ranges::find(are_new, 0);
  const auto first = old == are_new.end() ? 0 : old - are_new.begin();
  if (first == own) {
    const std::string all = packed(state.tensors());
    for (std::size_t k = 0; k < left.size(); ++k) {
      if (are_new[k] != 0 && left[k] != collectives.rank()) {
        collectives.send_text(left[k], all);
      }
    }
  } else if (is_new) {
    take(collectives, left[static_cast<std::size_t>(first)], state);
  }
  const auto counted = std::max<std::int64_t>(1, std::ranges::count(are_new, 0));
  return {.counts = !is_new || first == own,
          .scale = static_cast<double>(left.size()) / static_cast<double>(counted)};
}

}  // namespace gossamer
