#include "model/spec/megatron_memory.h"

#include <doctest/doctest.h>
#include <fmt/format.h>

namespace spillway {
namespace {

// arXiv 2205.05198, tables 3 and 5 and figure 1: every printed digit.
TEST_CASE("Megatron's twelve memory figures come out of its formulas") {
  struct Row {
    const char* model;
    MegatronShape shape;
    const char *state, *none, *selective;
  };
  const Row rows[] = {
      {"22B", {6144, 64, 48, 2048, 4, 8, 1, 1}, "45.5625", "59.25", "9.5625"},
      {"175B", {12288, 96, 96, 2048, 1, 8, 8, 3}, "45.5625", "66.84375", "12.3516"},
      {"530B", {20480, 128, 105, 2048, 1, 8, 35, 3}, "31.640625", "114.023", "23.0762"},
      {"1T", {25600, 160, 128, 2048, 1, 8, 64, 1}, "32.958984", "131.25", "26.5625"},
  };
  const auto as_printed = [](double bytes, const std::string& like) {
    const std::size_t digits = like.size() - like.find('.') - 1;
    return fmt::format("{:.{}f}", bytes / (1 << 30), digits);
  };
  for (const Row& row : rows) {
    CAPTURE(row.model);
    CHECK(as_printed(megatron_state_bytes(row.shape), row.state) == row.state);
    CHECK(as_printed(megatron_activation_bytes(row.shape, MegatronRecompute::kNone, false),
                     row.none) == row.none);
    CHECK(as_printed(megatron_activation_bytes(row.shape, MegatronRecompute::kSelective, true),
                     row.selective) == row.selective);
  }
}

// Figure 7, relative to nothing recomputed: read off a plot, within 0.15 points.
TEST_CASE("what recomputing and splitting the sequence leave of activations") {
  const MegatronShape shape{20480, 128, 105, 2048, 1, 8, 35, 3};
  const double all = megatron_activation_bytes(shape, MegatronRecompute::kNone, false);
  const auto percent = [&](MegatronRecompute recompute, bool sequence) {
    return 100 * megatron_activation_bytes(shape, recompute, sequence) / all;
  };
  CHECK(percent(MegatronRecompute::kNone, true) == doctest::Approx(58.31).epsilon(0.003));
  CHECK(percent(MegatronRecompute::kSelective, false) == doctest::Approx(62.04).epsilon(0.003));
  CHECK(percent(MegatronRecompute::kSelective, true) == doctest::Approx(20.27).epsilon(0.006));
  CHECK(percent(MegatronRecompute::kFull, false) == doctest::Approx(9.42).epsilon(0.016));
}

}  // namespace
}  // namespace spillway
