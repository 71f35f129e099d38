// A transport before another one: whatever it is asked, the other one does.

#include "gossamer/transport/passing.h"

#include <gtest/gtest.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

namespace gossamer {
namespace passing_test {

/// Notes which of its functions were called.
class Noting final : public Transport {
 public:
  explicit Noting(std::multiset<std::string>& called) : called_(called) {}
  Request send(int, Tag, std::span<const std::byte>, Deadline, Owner) override {
    return note("send"), 7;
  }
  Request receive(int, Tag, std::span<std::byte>, Deadline) override { return note("receive"), 8; }
  Status poll(Request) override { return note("poll"), Status{}; }
  void release(Request) override { note("release"); }
  void progress(Deadline) override { note("progress"); }
  void close(int) override { note("close"); }
  void expel(int) override { note("expel"); }
  void leave_out(int) override { note("leave_out"); }
  TransportInfo describe() const override { return note("describe"), TransportInfo{.workers = 3}; }
  std::optional<Unheard> unheard(int) const override { return note("unheard"), Unheard{.rank = 2}; }
  void hold_back_newcomers() override { note("hold_back_newcomers"); }
  std::vector<Newcomer> newcomers() override { return note("newcomers"), std::vector<Newcomer>(2); }
  void let_in(const Newcomer&) override { note("let_in"); }
  void count_in(int, Standing) override { note("count_in"); }
  Standing standing(int) const override { return note("standing"), Standing::agreed; }
  std::uint64_t generation(int) const override { return note("generation"), 5; }

 private:
  void note(const char* function) const { called_.insert(function); }

  std::multiset<std::string>& called_;
};

TEST(PassingTransport, PassesEveryFunctionOnOnce) {
  std::multiset<std::string> called;
  PassingTransport passing(std::make_unique<Noting>(called));
  EXPECT_EQ(passing.send(1, {}, {}, {}, nullptr), 7U);
  EXPECT_EQ(passing.receive(1, {}, {}, {}), 8U);
  passing.poll(7);
  passing.release(7);
  passing.progress({});
  passing.close(1);
  passing.expel(1);
  passing.leave_out(1);
  EXPECT_EQ(passing.describe().workers, 3);
  EXPECT_EQ(passing.unheard(1)->rank, 2);
  passing.hold_back_newcomers();
  EXPECT_EQ(passing.newcomers().size(), 2U);
  passing.let_in({});
  passing.count_in(1, Standing::agreed);
  EXPECT_EQ(passing.standing(1), Standing::agreed);
  EXPECT_EQ(passing.generation(1), 5U);
  const std::multiset<std::string> all{// tests/structure/test_passing.py looks that these are all
                                       "close",
                                       "count_in",
                                       "standing",
                                       "describe",
                                       "expel",
                                       "generation",
                                       "hold_back_newcomers",
                                       "leave_out",
                                       "let_in",
                                       "newcomers",
                                       "poll",
                                       "progress",
                                       "receive",
                                       "release",
                                       "send",
                                       "unheard"};
  EXPECT_EQ(called, all);
}

}  // namespace passing_test
}  // namespace gossamer
