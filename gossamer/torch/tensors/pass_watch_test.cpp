#include "gossamer/torch/tensors/pass_watch.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

namespace gossamer {
namespace {

using Kind = TimelineEvent::Kind;

std::vector<Kind> kinds(const Recorder& recorder) {
  std::vector<Kind> found;
  for (const TimelineEvent& event : recorder.records().work) found.push_back(event.kind);
  return found;
}

struct Trained {
  at::Tensor one = at::ones({3}).requires_grad_(true);
  at::Tensor other = at::ones({3}).requires_grad_(true);
  Recorder recorder{0, 8};
  PassWatch watch{{one, other}, recorder};

  at::Tensor loss() const { return (one * other).sum(); }
  void step() {
    watch.begin_update();
    watch.end_update();
  }
};

TEST(PassWatch, TellsForwardBackwardAndUpdateApart) {
  Trained trained;
  trained.loss().backward();
  trained.step();
  const std::vector<Kind> one_step{Kind::forward, Kind::backward, Kind::update};
  EXPECT_EQ(kinds(trained.recorder), one_step);
}

TEST(PassWatch, HearsOfEveryPassOfAStep) {
  Trained trained;
  for (int k = 0; k < 2; ++k) trained.loss().backward();
  trained.step();
  EXPECT_EQ(kinds(trained.recorder),
            (std::vector<Kind>{Kind::forward, Kind::backward, Kind::forward, Kind::backward,
                               Kind::update}));
}

TEST(PassWatch, TakesAStepWithoutAPassForForward) {
  Trained trained;
  trained.step();
  EXPECT_EQ(kinds(trained.recorder), std::vector<Kind>{Kind::forward});
}

TEST(PassWatch, GoesOnAfterAPassThatFailed) {
  Trained trained;
  const at::Tensor inner = trained.one * 2;
  inner.register_hook([](const at::Tensor&) -> at::Tensor { throw std::runtime_error("no"); });
  EXPECT_THROW((inner.sum() + trained.other.sum()).backward(), std::runtime_error);
  trained.step();
  trained.loss().backward();
  trained.step();
  const std::vector<Kind> found = kinds(trained.recorder);
  const std::vector<Kind> last(found.end() - 3, found.end());
  EXPECT_EQ(last, (std::vector<Kind>{Kind::forward, Kind::backward, Kind::update}));
}

TEST(PassWatch, IsNotHeardOfOnceItIsGone) {
  Recorder recorder(0, 8);
  const at::Tensor tensor = at::ones({3}).requires_grad_(true);
  { const PassWatch watch({tensor}, recorder); }
  tensor.sum().backward();
  EXPECT_TRUE(recorder.records().work.empty());
}

}  // namespace
}  // namespace gossamer
