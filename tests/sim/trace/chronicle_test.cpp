#include "sim/trace/chronicle.h"

#include <doctest/doctest.h>

#include "tests/sim/engine/random_program.h"
#include "tests/sim/engine/run_to_end.h"
#include "tests/sim/engine/toy.h"

namespace spillway {
namespace {

using engine::StepId;
using engine::testing::random_program;
using engine::testing::seconds;
using engine::testing::Toy;
using Kind = Happening::Kind;

constexpr std::size_t kAll = 10'000'000;

Chronicle write(const engine::EngineProgram& program, std::size_t most, bool extend) {
  ChronicleWriter writer(
      program, {engine::ResourceId(0), engine::ResourceId(1), engine::ResourceId(2)}, most);
  engine::run_to_end(program, {.extend_loops = extend}, &writer);
  return writer.take();
}

bool same(const Chronicle& a, const Chronicle& b) {
  if (a.happenings.size() != b.happenings.size()) return false;
  for (std::size_t k = 0; k < a.happenings.size(); ++k) {
    const Happening &x = a.happenings[k], &y = b.happenings[k];
    if (x.kind != y.kind || x.step != y.step || x.from != y.from || x.at != y.at) return false;
    const bool rates = x.kind == Kind::kRates;
    if (rates &&
        a.rates[static_cast<std::size_t>(x.number)] != b.rates[static_cast<std::size_t>(y.number)])
      return false;
    if (!rates && x.number != y.number) return false;
  }
  return true;
}

TEST_CASE("iterations written out are those that are simulated one by one") {
  int extended = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    const engine::EngineProgram program = random_program(seed, {.scale = 1'000'000});
    ChronicleWriter writer(
        program, {engine::ResourceId(0), engine::ResourceId(1), engine::ResourceId(2)}, kAll);
    const auto run = engine::run_to_end(program, {}, &writer);
    extended += run.effort.repeated_iterations > 0;
    CHECK(same(writer.take(), write(program, kAll, false)));
  }
  CHECK(extended > 100);  // or this test shows nothing
}

TEST_CASE("rates are bytes a second, shared where two copy") {
  Toy toy;  // 4 B/s each way, 6 B/s both ways
  const auto down = toy.start(toy.offload(12), toy.down);
  const auto up = toy.start(toy.reload(3), toy.up);
  toy.wait(up);
  toy.wait(down);
  ChronicleWriter writer(toy.program, {toy.d2h, toy.h2d, toy.hbm}, kAll);
  engine::run_to_end(toy.program, {}, &writer);
  const Chronicle chronicle = writer.take();
  REQUIRE(chronicle.rates.size() >= 3);
  const auto check_rates = [&](std::size_t k, double out, double in) {
    CHECK(chronicle.rates[k].device_to_host.value() == doctest::Approx(out));
    CHECK(chronicle.rates[k].host_to_device.value() == doctest::Approx(in));
    CHECK(chronicle.rates[k].hbm.value() == doctest::Approx(out + in));
  };
  check_rates(0, 3, 3);
  check_rates(1, 4, 0);
  check_rates(2, 0, 0);
}

TEST_CASE("what would be too much is left out, and said so") {
  Toy toy;
  const StepId loop = add_loop(toy.program, 1000, [&] { toy.run(toy.kernel(seconds(2))); });
  const Chronicle chronicle = write(toy.program, 50, true);
  CHECK(chronicle.happenings.size() < 20);
  std::int64_t iterations = 0, left_out = 0;
  for (const Happening& happening : chronicle.happenings) {
    if (happening.kind == Kind::kIteration) {
      CHECK(happening.number == iterations + left_out);
      CHECK(happening.at == seconds(2 * happening.number));
      ++iterations;
    }
    if (happening.kind != Kind::kLeftOut) continue;
    CHECK(happening.step == loop);
    CHECK(happening.at - happening.from == seconds(2 * happening.number));
    left_out += happening.number;
  }
  CHECK(left_out > 900);
  CHECK(iterations + left_out == 1000);
}

}  // namespace
}  // namespace spillway
