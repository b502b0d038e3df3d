#include "model/run/measured_run.h"

#include <doctest/doctest.h>

#include "model/run/read_run.h"
#include "tests/support/describe_run.h"
#include "tests/support/temporary_folder.h"
#include "tests/support/toy_program.h"
#include "tests/support/xplane_fixture.h"

namespace spillway {
namespace {

using testing::describe_notes;

Program step() {
  return testing::read_module(
      "HloModule jit_step, is_scheduled=true\n\nENTRY %main {\n"
      "  %a = f32[25000] parameter(0)\n"
      "  %fusion.1 = f32[25000] negate(%a), metadata={scheduling_name=\"fusion\"}\n"
      "  %gemm.2 = f32[25000] exponential(%fusion.1)\n"
      "  ROOT %last.4 = f32[25000] negate(%gemm.2)\n}\n");
}

MeasuredRun two_steps(const std::string& module = "jit_step") {
  pb::XSpace space;
  testing::add_two_steps(space, 0);
  testing::PlaneFixture plane(space, "/device:GPU:1");
  plane.kernel(plane.line("Stream #1(Compute)", 1700000000000000000), "k", "fusion.1", 0, 9000000,
               "jit_init");
  MeasuredRun run = [&] {
    const testing::TemporaryFolder folder;
    return read_run(folder.write("host.xplane.pb", space.SerializeAsString())).value();
  }();
  for (MeasuredInstruction& in : run.instructions)
    if (in.module == "jit_step") in.module = module;
  for (MeasuredModule& in : run.modules)
    if (in.name == "jit_step") in.name = module;
  return run;
}

TEST_CASE("a run's times by the program's names, of its module alone") {
  const RunOfProgram of = match_run(step(), two_steps());
  CHECK(of.module == "jit_step");
  REQUIRE(of.step.has_value());
  CHECK(of.step->time.value() == doctest::Approx(3.5e-6));
  // The longest module of the run has an instruction of the same name.
  CHECK(of.times.at("fusion.1").value() == doctest::Approx(0.8e-6));
  CHECK(of.times.size() == 3);
  CHECK(describe_notes(of.notes) ==
        "of the time of the run's instructions 42 % have names that the program lacks: their time "
        "is the model's\n");
}

TEST_CASE("a module of another name is taken when its instructions are the program's") {
  const RunOfProgram of = match_run(step(), two_steps("jit_train"));
  // jit_init's one instruction has a name that the program has, and so all of its time.
  CHECK(of.module == "jit_init");
  Program named = step();
  MeasuredRun run = two_steps("jit_train");
  std::erase_if(run.instructions, [](const auto& in) { return in.module == "jit_init"; });
  const RunOfProgram found = match_run(named, run);
  CHECK(found.module == "jit_train");
  CHECK(describe_notes(found.notes)
            .starts_with("the run has no module 'jit_step': taken is 'jit_train', whose "
                         "instructions are these\n"));
}

TEST_CASE("another program's run is said to be one") {
  const Program other =
      testing::read_entry("  %x = f32[4] parameter(0)\n  ROOT %unheard.of = f32[4] negate(%x)\n");
  const RunOfProgram of = match_run(other, two_steps());
  CHECK(of.module.empty());
  CHECK(of.times.empty());
  CHECK_FALSE(of.step.has_value());
}

TEST_CASE("costs for the scheduler go by scheduling names") {
  const testing::TemporaryFolder folder;
  const auto run = read_run(
      folder.write("step.pbtxt",
                   "costs { name: \"fusion\" cost_us: 12.5 } costs { name: \"gemm.2\" cost_us: 3 }"
                   "costs { name: \"gone\" cost_us: 1 }"));
  REQUIRE(run.ok());
  CHECK(run->format == RunFormat::kPgle);
  const RunOfProgram of = match_run(step(), *run);
  CHECK(of.times.size() == 2);
  CHECK(of.times.at("fusion.1").value() == doctest::Approx(12.5e-6));
  CHECK(of.times.at("gemm.2").value() == doctest::Approx(3e-6));
  CHECK_FALSE(of.step.has_value());
}

TEST_CASE("what no reader knows") {
  const testing::TemporaryFolder folder;
  const auto run = read_run(folder.write("notes.txt", "nothing of the kind"));
  REQUIRE_FALSE(run.ok());
  CHECK(run.error().text == "is no profile of a run that is known");
  CHECK_FALSE(read_run(folder.path("missing")).ok());
  CHECK(read_run(folder.path("")).error().text == "no .xplane.pb in this folder or below");
}

}  // namespace
}  // namespace spillway
